//! Watches the links of all ports and keeps what must be put back when the switch ends.
//!
//! Workers see a link's state by an atomic in each step; this thread is who writes it, from the
//! kernel's messages. Once a second it publishes the errors of the links, and looks at what the
//! kernel sends no messages of: a worker must not wait for that. A port that can't go on as it is
//! it gives to the keeper of ports, which gives it back when it is open again.

use crate::control::{LinkNews, Moment, News};
use crate::ports::{Downs, KeeperOrder};
use crossbeam::channel::{bounded, unbounded, Receiver, Sender};
use holdfast_core::down::DownReason;
use holdfast_shm::counters::LinkBlock;
use holdfast_shm::BlockWriter;
use holdfast_xsk::{clock, wait, Bell, LinkEvent, PortGuard, XskError};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the errors of the links are read, and what else the kernel must be asked for.
const READ_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether a namespace's name still leads to it: no system call that waits.
const NETNS_EVERY: Duration = Duration::from_millis(100);

/// The link of one port.
pub struct Link {
    number: usize,
    /// Which port of this number it is: numbers are used again.
    life: u64,
    name: String,
    /// `None` while the keeper has the port.
    guard: Option<Box<PortGuard>>,
    /// What it publishes, and where.
    errors: LinkBlock,
    block: BlockWriter<LinkBlock>,
    /// Its errors can't be read, and that was said.
    unreadable: bool,
}

impl Link {
    /// The link of port `number` to be watched, the port number `life` of that number, whose errors
    /// go to `block`.
    pub fn new(
        (number, life): (usize, u64),
        name: String,
        guard: PortGuard,
        block: BlockWriter<LinkBlock>,
    ) -> Self {
        let guard = Some(Box::new(guard));
        Self { number, life, name, guard, errors: LinkBlock::default(), block, unreadable: false }
    }

    /// What puts the link back, if no other thread has it, and where its errors were published.
    pub(crate) fn into_parts(self) -> (Option<Box<PortGuard>>, BlockWriter<LinkBlock>) {
        (self.guard, self.block)
    }

    fn publish(&mut self, downs: &Downs) {
        let down = downs.of(self.number);
        self.errors.down =
            DownReason::ALL.map(|one| down.as_ref().is_some_and(|d| d.reason == one));
        self.block.publish(&self.errors);
    }

    /// Reads its errors of now; those before stay where they can't be read. Returns what isn't as
    /// it was any more.
    fn read(&mut self) -> Vec<LinkEvent> {
        let Some(guard) = &mut self.guard else { return Vec::new() };
        match guard.look() {
            Ok((errors, events)) => {
                self.errors.errors = *errors.counts();
                self.unreadable = false;
                events
            }
            Err(error) => {
                if !std::mem::replace(&mut self.unreadable, true) {
                    let name = &self.name;
                    log::warn!("port {name}: errors of its link aren't counted: {error}");
                }
                Vec::new()
            }
        }
    }
}

/// What the watch is told to do.
enum Order {
    /// Watch these, too.
    Add(Vec<Link>),
    /// Watch a port again.
    Resume(usize, Box<PortGuard>),
    /// Give a port to the keeper.
    GiveUp(usize, DownReason),
    /// Watch a port no more, and hand its link out.
    Take(usize, Sender<Link>),
}

/// Where orders for the watch are left. Clones are the same.
#[derive(Clone)]
pub(crate) struct LinkDesk {
    orders: Sender<Order>,
    bell: Arc<Bell>,
}

impl LinkDesk {
    /// Watches these from now on.
    pub(crate) fn add(&self, links: Vec<Link>) {
        self.leave(Order::Add(links));
    }

    /// Watches a port again that is open again.
    pub(crate) fn resume(&self, number: usize, guard: Box<PortGuard>) {
        self.leave(Order::Resume(number, guard));
    }

    /// Has a port be closed for this reason.
    pub(crate) fn give_up(&self, number: usize, reason: DownReason) {
        self.leave(Order::GiveUp(number, reason));
    }

    /// Takes a link out of the watch; `None` if it isn't watched, or the watch has ended.
    pub(crate) fn take(&self, number: usize) -> Option<Link> {
        let (answer, taken) = bounded(1);
        self.leave(Order::Take(number, answer));
        taken.recv().ok()
    }

    fn leave(&self, order: Order) {
        // A watch that has ended drops it, and with it the guard, which puts the link back.
        let _ = self.orders.send(order);
        self.bell.ring();
    }
}

/// Whom the watch tells what happens.
pub(crate) struct Told {
    /// The control thread, for the journal.
    pub(crate) news: Sender<LinkNews>,
    /// The keeper of ports.
    pub(crate) keeper: Sender<KeeperOrder>,
    /// Who asks why a port is down.
    pub(crate) downs: Downs,
}

/// The running watch. Dropping it ends the watch and puts the links' settings back.
pub struct LinkWatcher {
    stop: Arc<AtomicBool>,
    desk: LinkDesk,
    thread: Option<JoinHandle<()>>,
}

impl LinkWatcher {
    /// Starts a watch of no link yet; `wake` is called after each piece of news, so that a sleeping
    /// worker looks.
    ///
    /// # Errors
    /// [`XskError`] where the system gives no eventfd or thread.
    pub(crate) fn start(
        told: Told,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let stop = Arc::new(AtomicBool::new(false));
        let bell = Arc::new(Bell::new()?);
        let (orders, left) = unbounded();
        let (end, door) = (Arc::clone(&stop), Arc::clone(&bell));
        let thread = std::thread::Builder::new().name("links".to_owned()).spawn(move || {
            Watch { links: Vec::new(), told }.run(&left, &door, &end, wake);
        })?;
        Ok(Self { stop, desk: LinkDesk { orders, bell }, thread: Some(thread) })
    }

    /// Where orders for it are left.
    pub(crate) const fn desk(&self) -> &LinkDesk {
        &self.desk
    }
}

impl Drop for LinkWatcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.desk.bell.ring();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            log::error!("the watch of the links had ended by a panic");
        }
    }
}

/// The thread's own.
struct Watch {
    links: Vec<Link>,
    told: Told,
}

impl Watch {
    /// Watches until `end`. Then the guards go, which put their links back.
    fn run(mut self, left: &Receiver<Order>, door: &Bell, end: &AtomicBool, wake: impl Fn()) {
        let (mut next_reading, mut next_netns) = (Instant::now(), Instant::now());
        while !end.load(Ordering::Acquire) {
            let rang = match self.sleep(door, next_reading.min(next_netns)) {
                Ok(rang) => rang,
                Err(error) => {
                    log::warn!("links are no longer watched: {error}");
                    break;
                }
            };
            // Before looking: what is left from here on rings anew.
            door.clear();
            left.try_iter().for_each(|order| self.follow(order));
            if rang {
                self.each(|link| {
                    link.guard.as_mut().map_or_else(Vec::new, |guard| guard.take_link_events())
                });
                wake();
            }
            let now = Instant::now();
            if now >= next_netns {
                next_netns = now + NETNS_EVERY;
                self.each(|link| {
                    let gone = link.guard.as_mut().and_then(|guard| guard.look_at_netns());
                    gone.into_iter().collect()
                });
            }
            if now >= next_reading {
                next_reading = now + READ_EVERY;
                self.each(Link::read);
                let downs = &self.told.downs;
                self.links.iter_mut().for_each(|link| link.publish(downs));
            }
        }
        left.try_iter().for_each(|order| self.follow(order));
    }

    /// Sleeps until there is news, or at most until `end`; whether there is some.
    fn sleep(&self, bell: &Bell, end: Instant) -> Result<bool, XskError> {
        let guards = self.links.iter().filter_map(|link| link.guard.as_ref());
        let mut fds: Vec<BorrowedFd<'_>> = guards.map(|guard| guard.link_fd()).collect();
        fds.push(bell.as_fd());
        wait(&fds, Some(end.saturating_duration_since(Instant::now())))
    }

    fn follow(&mut self, order: Order) {
        match order {
            Order::Add(links) => {
                for mut link in links {
                    if link.guard.as_ref().is_some_and(|guard| !guard.link().is_up()) {
                        self.told.downs.set(link.number, DownReason::LinkDown);
                    }
                    link.publish(&self.told.downs);
                    self.links.push(link);
                }
            }
            Order::Resume(number, guard) => {
                let Some(link) = self.links.iter_mut().find(|link| link.number == number) else {
                    return;
                };
                match guard.link().is_up() {
                    true => self.told.downs.clear(number),
                    false => self.told.downs.set(number, DownReason::LinkDown),
                }
                link.guard = Some(guard);
                link.publish(&self.told.downs);
            }
            Order::GiveUp(number, reason) => {
                let link = self.links.iter_mut().find(|link| link.number == number);
                if let Some(link) = link {
                    Self::close(link, &self.told, reason);
                }
            }
            Order::Take(number, answer) => {
                let at = self.links.iter().position(|link| link.number == number);
                if let Some(at) = at {
                    // Who asked waits.
                    let _ = answer.send(self.links.swap_remove(at));
                }
            }
        }
    }

    /// Asks each link what has happened, says it, and gives up what can't go on as it is.
    fn each(&mut self, ask: impl Fn(&mut Link) -> Vec<LinkEvent>) {
        for link in &mut self.links {
            for event in ask(link) {
                self.told.say(link, &event);
                let down = match event {
                    LinkEvent::Gone => Some(DownReason::NetdevGone),
                    LinkEvent::NetnsGone => Some(DownReason::NetnsGone),
                    LinkEvent::Mtu(_) => Some(DownReason::MtuChanged),
                    LinkEvent::Queues(_) => Some(DownReason::QueuesChanged),
                    LinkEvent::ProgramGone => Some(DownReason::ProgramDetached),
                    LinkEvent::Up(up) => {
                        self.told.link_is(link, up);
                        None
                    }
                    LinkEvent::Missed => None,
                };
                if let Some(reason) = down {
                    Self::close(link, &self.told, reason);
                }
            }
        }
    }

    fn close(link: &mut Link, told: &Told, reason: DownReason) {
        let Some(guard) = link.guard.take() else { return };
        told.downs.set(link.number, reason);
        link.publish(&told.downs);
        told.tell(link.number, News::Down(reason));
        // A keeper that has ended drops the guard, which puts the link back.
        let _ =
            told.keeper.send(KeeperOrder::Close { number: link.number, life: link.life, guard });
    }
}

impl Told {
    fn tell(&self, port: usize, news: News) {
        // A full channel is noticed by who reads it.
        let _ = self.news.try_send(LinkNews { port, news, at: Moment::now(clock::now()) });
    }

    fn link_is(&self, link: &mut Link, up: bool) {
        if up {
            self.downs.clear(link.number);
        } else {
            self.downs.set(link.number, DownReason::LinkDown);
            // Frames that the kernel doesn't take while the link is down would be sent late.
            let _ = self.keeper.send(KeeperOrder::LinkDown { number: link.number });
        }
        link.publish(&self.downs);
    }

    fn say(&self, link: &Link, event: &LinkEvent) {
        let port = &link.name;
        match event {
            LinkEvent::Up(true) => log::info!("port {port}: link up"),
            LinkEvent::Up(false) => log::warn!("port {port}: link down; its frames are dropped"),
            LinkEvent::Gone => log::error!("port {port}: {}", DownReason::NetdevGone.text()),
            LinkEvent::NetnsGone => log::error!("port {port}: {}", DownReason::NetnsGone.text()),
            LinkEvent::Mtu(mtu) => log::warn!("port {port}: MTU is {mtu} now"),
            LinkEvent::Queues(queues) => log::warn!("port {port}: {queues} RX queues now"),
            LinkEvent::ProgramGone => {
                log::error!("port {port}: {}", DownReason::ProgramDetached.text());
            }
            LinkEvent::Missed => log::warn!("port {port}: news of its link were lost"),
        }
        match event {
            LinkEvent::Up(true) => self.tell(link.number, News::Up),
            LinkEvent::Up(false) => self.tell(link.number, News::Down(DownReason::LinkDown)),
            LinkEvent::Mtu(mtu) => self.tell(link.number, News::Mtu(*mtu)),
            LinkEvent::Missed => self.tell(link.number, News::Missed),
            // What takes the port down is told by who gives it up.
            _ => {}
        }
    }
}
