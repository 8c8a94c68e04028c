//! Closes ports that can't go on as they are, and opens them again, on a thread that nobody waits
//! for.

use super::retry::Retry;
use super::{Downs, PortCall};
use crate::config::Config;
use crate::control::{LinkNews, Moment, News};
use crate::link_events::LinkDesk;
use crate::mailbox::{WorkerEnded, Workers};
use crate::opening::{self, Opened};
use crate::report::PortFacts;
use crate::switch::PortInfo;
use crate::worker_thread::LiveWorker;
use crossbeam::channel::{bounded, Receiver, RecvTimeoutError, Sender};
use holdfast_api::switch_doc::PortDoc;
use holdfast_core::down::DownReason;
use holdfast_core::ids::PortId;
use holdfast_core::io::PortIo;
use holdfast_core::profile::Profile;
use holdfast_shm::counters::LinkBlock;
use holdfast_shm::BlockWriter;
use holdfast_xsk::{clock, look, Memory, Netns, PortGuard, UndoLog, XskError, XskPort};
use mio::Waker;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long frames may stay in the TX ring of a port whose link is down: a driver that still
/// completes them does it sooner.
const STUCK: Duration = Duration::from_millis(50);

/// How long the end of the switch waits for a keeper that the kernel holds.
const HELD: Duration = Duration::from_secs(3);

/// What the keeper is to do.
pub(crate) enum KeeperOrder {
    /// Close a port, put its link back, and open it again when that can be.
    Close {
        /// Its number.
        number: usize,
        /// Which port of that number.
        life: u64,
        /// What puts it back.
        guard: Box<PortGuard>,
    },
    /// Close it if frames are stuck in it: its link is down.
    LinkDown {
        /// Its number.
        number: usize,
    },
    /// Open a port that is new.
    Add {
        /// The number that it gets.
        number: usize,
        /// What it is to be.
        doc: Box<PortDoc>,
        /// Told when it is open, or why it can't be.
        answer: Sender<Result<(), String>>,
    },
    /// End a port for good. Nothing is done where there is none of that number.
    Remove {
        /// Its number.
        number: usize,
        /// Told when it is closed and its link is as it was.
        answer: Sender<Result<(), String>>,
    },
    /// End.
    Stop,
}

/// What the keeper works with.
pub(crate) struct KeeperParts {
    /// Both files.
    pub(crate) config: Arc<Config>,
    /// Where frames lie.
    pub(crate) memory: Memory,
    /// What will be put back.
    pub(crate) undo: UndoLog,
    /// Who owns the ports.
    pub(crate) workers: Workers<LiveWorker>,
    /// The owner of each place for a port, by number.
    pub(crate) owners: Vec<usize>,
    /// Where the errors of links are published of ports that aren't there yet, by number.
    pub(crate) blocks: BTreeMap<usize, BlockWriter<LinkBlock>>,
    /// RX queues of each port that the memory was laid out for.
    pub(crate) queues: Vec<u32>,
    /// The link watcher.
    pub(crate) links: LinkDesk,
    /// Why ports are down.
    pub(crate) downs: Downs,
    /// The journal.
    pub(crate) news: Sender<LinkNews>,
    /// The control thread, and what makes it look.
    pub(crate) calls: Sender<PortCall>,
    /// See `calls`.
    pub(crate) waker: Arc<Waker>,
}

/// The running keeper.
pub(crate) struct PortKeeper {
    orders: Sender<KeeperOrder>,
    thread: JoinHandle<()>,
}

impl PortKeeper {
    /// Starts it; `orders` are its own, for the end, and `left` is where all of them arrive.
    ///
    /// # Errors
    /// The system's, where it gives no thread.
    pub(crate) fn start(
        parts: KeeperParts,
        orders: Sender<KeeperOrder>,
        left: Receiver<KeeperOrder>,
    ) -> std::io::Result<Self> {
        let docs = parts.config.switch.ports.iter().cloned().enumerate().collect();
        let work = Work {
            parts,
            docs,
            lives: BTreeMap::new(),
            closed: BTreeMap::new(),
            to_look_at: BTreeMap::new(),
        };
        let thread = std::thread::Builder::new().name("ports".to_owned());
        Ok(Self { orders, thread: thread.spawn(move || work.run(&left))? })
    }

    /// Ends it. Workers are to have ended before: it may be waiting for one. The kernel may hold it
    /// for long: then it is left where it is.
    pub(crate) fn stop(self) {
        // If it has ended already, nobody takes the order.
        let _ = self.orders.send(KeeperOrder::Stop);
        let patience = Instant::now() + HELD;
        while !self.thread.is_finished() {
            if Instant::now() > patience {
                log::error!("the kernel holds the keeper of ports: it is left behind");
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.thread.join().is_err() {
            log::error!("the keeper of ports had ended by a panic");
        }
    }
}

/// A port that is closed.
pub(super) struct Closed {
    /// Somebody took the netdev down: it isn't for us to take it up.
    down_by_admin: bool,
    retry: Retry,
}

/// Why a port isn't open.
pub(super) enum NotYet {
    /// What is in the way.
    Because(String),
    /// The switch ends.
    Ends,
}

impl NotYet {
    fn into_text(self) -> String {
        match self {
            Self::Because(text) => text,
            Self::Ends => "the switch ends".to_owned(),
        }
    }
}

impl From<WorkerEnded> for NotYet {
    fn from(_: WorkerEnded) -> Self {
        Self::Ends
    }
}

/// The keeper's own. What it does for ports that come and go for good is in `lifetimes`.
pub(super) struct Work {
    pub(super) parts: KeeperParts,
    /// What each port is to be, by number.
    pub(super) docs: BTreeMap<usize, PortDoc>,
    /// How many ports had a number before.
    pub(super) lives: BTreeMap<usize, u64>,
    pub(super) closed: BTreeMap<usize, Closed>,
    /// Ports whose link is down, and when to look for stuck frames.
    pub(super) to_look_at: BTreeMap<usize, Instant>,
}

impl Work {
    fn run(mut self, left: &Receiver<KeeperOrder>) {
        loop {
            let tries = self.closed.values().map(|closed| closed.retry.next());
            let due = tries.chain(self.to_look_at.values().copied()).min();
            let order = match due {
                Some(due) => left.recv_deadline(due),
                None => left.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match order {
                Ok(KeeperOrder::Close { number, life, guard }) => {
                    // One of a port that was removed meanwhile only puts its link back.
                    if life == self.life(number) && self.close(number, guard).is_err() {
                        return;
                    }
                }
                Ok(KeeperOrder::Add { number, doc, answer }) => {
                    // The control thread waits for it.
                    let _ = answer.send(self.add(number, *doc).map_err(NotYet::into_text));
                }
                Ok(KeeperOrder::Remove { number, answer }) => match self.remove(number) {
                    Ok(()) => drop(answer.send(Ok(()))),
                    Err(_) => return,
                },
                Ok(KeeperOrder::LinkDown { number }) => {
                    self.to_look_at.insert(number, Instant::now() + STUCK);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if self.what_is_due(Instant::now()).is_err() {
                        return;
                    }
                }
                Ok(KeeperOrder::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    pub(super) fn owner(&self, number: usize) -> usize {
        self.parts.owners.get(number).copied().unwrap_or_default()
    }

    pub(super) fn life(&self, number: usize) -> u64 {
        self.lives.get(&number).copied().unwrap_or_default()
    }

    fn doc(&self, number: usize) -> Option<&PortDoc> {
        self.docs.get(&number)
    }

    /// Takes the port's rings from its worker, closes them, gives back what was in them, and then
    /// puts the link back: in this order, or frames would be lost in between.
    fn close(&mut self, number: usize, guard: Box<PortGuard>) -> Result<(), WorkerEnded> {
        self.to_look_at.remove(&number);
        let (id, owner) = (PortId::from_bits(number as u8), self.owner(number));
        let closed = XskPort::closed(&self.parts.memory);
        let detached =
            self.parts.workers.ask_one(owner, move |w| w.detach(id, closed, clock::now()))?;
        if let Some(io) = detached {
            let remains = io.close();
            self.parts.workers.ask_one(owner, move |w| w.give_back(id, remains, clock::now()))?;
        }
        let seen = self.doc(number).map(|doc| look(&netns(doc), &doc.ifname));
        let down_by_admin = matches!(seen, Some(Ok(seen)) if !seen.admin_up);
        drop(guard);
        let retry = Retry::new(Instant::now());
        self.closed.insert(number, Closed { down_by_admin, retry });
        Ok(())
    }

    fn what_is_due(&mut self, now: Instant) -> Result<(), WorkerEnded> {
        let stuck: Vec<usize> = due(&self.to_look_at, now, |at| *at);
        for number in stuck {
            self.to_look_at.remove(&number);
            if self.is_stuck(number)? {
                self.parts.links.give_up(number, DownReason::LinkDown);
            }
        }
        for number in due(&self.closed, now, |closed| closed.retry.next()) {
            match self.open_again(number) {
                Ok(()) => drop(self.closed.remove(&number)),
                Err(NotYet::Because(error)) => self.failed(number, &error),
                Err(NotYet::Ends) => return Err(WorkerEnded { worker: self.owner(number) }),
            }
        }
        Ok(())
    }

    /// Whether a port that is down has frames in its TX ring.
    fn is_stuck(&self, number: usize) -> Result<bool, WorkerEnded> {
        let id = PortId::from_bits(number as u8);
        self.parts.workers.ask_one(self.owner(number), move |worker| {
            worker.port_mut(id).is_some_and(|port| {
                let held = port.io().held();
                !port.io().is_up() && held.tx + held.control > 0
            })
        })
    }

    fn failed(&mut self, number: usize, error: &str) {
        let news = self.parts.downs.fail(number, error);
        let Some(closed) = self.closed.get_mut(&number) else { return };
        if closed.retry.failed(Instant::now(), news) {
            let name = self.doc(number).map_or("", |doc| &doc.name);
            log::warn!("port {name}: can't be opened again yet: {error}");
            self.tell(number, News::NotOpened(error.to_owned()));
        }
    }

    fn tell(&self, port: usize, news: News) {
        // A full channel is noticed by who reads it.
        let _ = self.parts.news.try_send(LinkNews { port, news, at: Moment::now(clock::now()) });
    }

    fn open_again(&mut self, number: usize) -> Result<(), NotYet> {
        let because = |error: Box<dyn Error>| NotYet::Because(one_line(&error.to_string()));
        let Some(doc) = self.doc(number).cloned() else { return Ok(()) };
        self.look_first(number, &doc)?;
        let KeeperParts { config, memory, undo, .. } = &self.parts;
        let Opened { io, guard } = opening::open(memory, config, &doc, undo).map_err(because)?;
        let status = guard.status().clone();
        let fits = opening::mtu(config, &doc, status.mtu)
            .map_err(because)
            .and_then(|mtu| self.ask_control(number, &doc, &guard, mtu));
        if let Err(why) = fits {
            // Nothing was in it yet, and nobody is behind it.
            let _ = io.close();
            return Err(why);
        }
        let (id, mac) = (PortId::from_bits(number as u8), status.mac);
        let attached = self.parts.workers.ask_one(self.owner(number), move |worker| {
            worker.attach(id, io, mac).map_err(Box::new)
        })?;
        if let Err(io) = attached {
            let _ = io.close();
            return Ok(());
        }
        log::info!("port {}: open again, {mac}", doc.name);
        let (mac, mtu, queues) = (mac.to_string(), status.mtu, status.queues);
        self.tell(number, News::Opened { mac, mtu, queues });
        self.parts.links.resume(number, Box::new(guard));
        Ok(())
    }

    /// Whether it is worth a try to open a closed port, before anything is changed.
    fn look_first(&mut self, number: usize, doc: &PortDoc) -> Result<(), NotYet> {
        let Some(closed) = self.closed.get_mut(&number) else { return Ok(()) };
        let seen = match look(&netns(doc), &doc.ifname) {
            Ok(seen) => seen,
            Err(error) => {
                if matches!(error, XskError::NoDevice { .. } | XskError::Netns { .. }) {
                    // Whatever comes in its place wasn't taken down by anybody.
                    closed.down_by_admin = false;
                }
                return Err(NotYet::Because(error.to_string()));
            }
        };
        if closed.down_by_admin && !seen.admin_up {
            let text = format!("{} is down: ip link set {} up", doc.ifname, doc.ifname);
            return Err(NotYet::Because(text));
        }
        self.queues_fit(number, doc, seen.queues)
    }

    /// Whether there is memory for the rings of a port whose netdev has so many RX queues.
    pub(super) fn queues_fit(
        &self,
        number: usize,
        doc: &PortDoc,
        present: u32,
    ) -> Result<(), NotYet> {
        let reserved = self.parts.queues.get(number).copied().unwrap_or(1);
        let wanted = doc.queues.unwrap_or(present);
        if wanted <= reserved {
            return Ok(());
        }
        Err(NotYet::Because(format!(
            "{} has {wanted} RX queues, the memory is laid out for {reserved}: lower them by \
             ethtool -L, set `queues`, or restart the switch",
            doc.ifname
        )))
    }

    /// Asks the control thread whether the port fits as it is now.
    pub(super) fn ask_control(
        &self,
        number: usize,
        doc: &PortDoc,
        guard: &PortGuard,
        mtu: u16,
    ) -> Result<Arc<Profile>, NotYet> {
        let (answer, answered) = bounded(1);
        let facts = Box::new(PortFacts::from(PortInfo {
            name: doc.name.clone(),
            netns: doc.netns.clone(),
            ifname: doc.ifname.clone(),
            status: guard.status().clone(),
        }));
        let lossless = Some(guard.lossless().clone());
        let call = PortCall::Opened { number, mtu, facts, lossless, answer };
        if self.parts.calls.send(call).is_err() {
            return Err(NotYet::Ends);
        }
        self.parts.waker.wake().map_err(|error| NotYet::Because(error.to_string()))?;
        // Without an answer the control thread has ended.
        answered.recv().map_err(|_| NotYet::Ends)?.map_err(NotYet::Because)
    }
}

pub(super) fn netns(doc: &PortDoc) -> Netns {
    Netns::parse(doc.netns.as_deref())
}

/// The ports whose time has come.
fn due<T>(all: &BTreeMap<usize, T>, now: Instant, at: impl Fn(&T) -> Instant) -> Vec<usize> {
    all.iter().filter(|(_, one)| at(one) <= now).map(|(number, _)| *number).collect()
}

/// An error of a file has several lines: where, and what to do.
pub(super) fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
