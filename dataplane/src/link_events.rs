//! Watches the links of all ports and keeps what must be put back when the switch ends.
//!
//! Workers see a link's state by an atomic in each step; this thread is who writes it, from the
//! kernel's messages. Once a second it publishes the errors of the links, for which it asks the
//! kernel: a worker must not wait for that.

use crate::control::{LinkNews, Moment};
use crossbeam::channel::{bounded, Receiver, Sender};
use holdfast_shm::counters::LinkBlock;
use holdfast_shm::BlockWriter;
use holdfast_xsk::{clock, wait, Bell, LinkEvent, PortGuard, XskError};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the errors of the links are read.
const READ_EVERY: Duration = Duration::from_secs(1);

/// The link of one port.
pub struct Link {
    guard: PortGuard,
    /// Where its errors are published.
    block: BlockWriter<LinkBlock>,
    /// They can't be read, and that was said.
    unreadable: bool,
}

impl Link {
    /// A link to be watched, whose errors go to `block`.
    pub const fn new(guard: PortGuard, block: BlockWriter<LinkBlock>) -> Self {
        Self { guard, block, unreadable: false }
    }

    /// Publishes its errors of now; those before stay where they can't be read.
    fn publish_errors(&mut self, port: &str) {
        match self.guard.link_errors() {
            Ok(errors) => {
                self.block.publish(&LinkBlock { errors: *errors.counts() });
                self.unreadable = false;
            }
            Err(error) if !self.unreadable => {
                log::warn!("port {port}: errors of its link aren't counted: {error}");
                self.unreadable = true;
            }
            Err(_) => {}
        }
    }
}

/// News that may wait for the control thread, which takes them once a second. A link that flaps
/// faster has the rest left out.
const NEWS: usize = 256;

/// The running watch. Dropping it ends the watch and puts the links' settings back.
pub struct LinkWatcher {
    stop: Arc<AtomicBool>,
    bell: Arc<Bell>,
    hand_over: Sender<Vec<Link>>,
    thread: Option<JoinHandle<Vec<Link>>>,
}

impl LinkWatcher {
    /// Starts a watch that waits for what to watch; `wake` is called after each piece of news, so
    /// that a sleeping worker looks. The second of the two is where the news can be read.
    ///
    /// # Errors
    /// [`XskError`] where the system gives no eventfd or thread.
    pub fn start(
        names: Vec<String>,
        wake: impl Fn() + Send + 'static,
    ) -> Result<(Self, Receiver<LinkNews>), Box<dyn std::error::Error>> {
        let (tell, news) = bounded(NEWS);
        let stop = Arc::new(AtomicBool::new(false));
        let bell = Arc::new(Bell::new()?);
        let (end, door) = (Arc::clone(&stop), Arc::clone(&bell));
        let (hand_over, take_over) = bounded::<Vec<Link>>(1);
        let thread = std::thread::Builder::new().name("links".to_owned()).spawn(move || {
            let mut links = Vec::new();
            let mut next_reading = Instant::now();
            while !end.load(Ordering::Acquire) {
                let rang = match sleep(&links, &door, next_reading) {
                    Ok(rang) => rang,
                    Err(error) => {
                        log::warn!("links are no longer watched: {error}");
                        break;
                    }
                };
                // Before looking: what is handed over from here on rings anew.
                door.clear();
                if let Ok(given) = take_over.try_recv() {
                    links = given;
                }
                if rang {
                    take_news(&mut links, &names, &tell);
                    wake();
                }
                if Instant::now() >= next_reading {
                    next_reading = Instant::now() + READ_EVERY;
                    links.iter_mut().zip(&names).for_each(|(link, name)| link.publish_errors(name));
                }
            }
            links.extend(take_over.try_iter().flatten());
            links
        })?;
        Ok((Self { stop, bell, hand_over, thread: Some(thread) }, news))
    }

    /// Watches these from now on, in the order of the names.
    ///
    /// # Errors
    /// If the thread has ended already; then their settings are back.
    pub fn watch(&mut self, links: Vec<Link>) -> Result<(), Box<dyn std::error::Error>> {
        self.hand_over
            .try_send(links)
            .map_err(|_| "links can't be watched: the watch has ended")?;
        self.bell.ring();
        Ok(())
    }
}

impl Drop for LinkWatcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.bell.ring();
        let links = self.thread.take().and_then(|thread| thread.join().ok());
        for mut link in links.into_iter().flatten() {
            link.guard.restore();
        }
    }
}

/// Logs what has happened to the links, and tells the control thread.
fn take_news(links: &mut [Link], names: &[String], tell: &Sender<LinkNews>) {
    for (port, (link, name)) in links.iter_mut().zip(names).enumerate() {
        for event in link.guard.take_link_events() {
            say(name, &event);
            // A full channel is noticed by who reads it.
            let at = Moment::now(clock::now());
            let _ = tell.try_send(LinkNews { port, event, at });
        }
    }
}

/// Sleeps until there is news, or at most until `end`; whether there is some.
fn sleep(links: &[Link], bell: &Bell, end: Instant) -> Result<bool, XskError> {
    let mut fds: Vec<BorrowedFd<'_>> = links.iter().map(|link| link.guard.link_fd()).collect();
    fds.push(bell.as_fd());
    wait(&fds, Some(end.saturating_duration_since(Instant::now())))
}

fn say(port: &str, event: &LinkEvent) {
    match event {
        LinkEvent::Up(true) => log::info!("port {port}: link up"),
        LinkEvent::Up(false) => log::warn!("port {port}: link down; its frames are dropped"),
        LinkEvent::Gone => log::error!("port {port}: its netdev is gone"),
        LinkEvent::Mtu(mtu) => {
            log::warn!("port {port}: MTU is {mtu} now; the switch keeps to the MTU of its start");
        }
        LinkEvent::Missed => log::warn!("port {port}: news of its link were lost"),
    }
}
