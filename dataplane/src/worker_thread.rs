//! A worker's thread: steps while there is work, then spins, yields, announces, looks again, and
//! sleeps in poll until a frame, a bell or the next deadline (DESIGN 4).

use crate::host::lossless_frames;
use crate::mailbox::{Doorbell, Mailbox};
use crate::publication::Publication;
use holdfast_core::durations::Durations;
use holdfast_core::ids::{PerPort, PgId, PortId, QueueId, QueueSet, MAX_PORTS};
use holdfast_core::io::PortIo;
use holdfast_core::port::Port;
use holdfast_core::units::{Nanos, Time};
use holdfast_core::worker::{Step, Worker};
use holdfast_xsk::{clock, XskPort};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A worker with real ports.
pub type LiveWorker = Worker<XskPort>;

/// Steps without work before the worker yields its core.
const SPIN_STEPS: u32 = 32;
/// Steps without work, yielding in between, before it sleeps.
const YIELD_STEPS: u32 = 48;
/// A deadline nearer than this is waited for awake: a sleep costs about as much.
const SHORTEST_SLEEP: Nanos = Nanos::micros(30);
/// It never sleeps longer, so that a lost wake-up would cost no more than this.
const LONGEST_SLEEP: Nanos = Nanos::millis(50);
/// How often the counters of sockets and XDP programs are read.
const LOSSES_EVERY: Nanos = Nanos::millis(10);
/// How long a stopping worker goes on sending what is queued (SPEC 14).
const DRAIN: Nanos = Nanos::millis(1_000);

/// What a worker's thread knows of its time. One writer; readers are the control thread.
#[derive(Debug)]
pub struct WorkerStats {
    /// Steps taken.
    pub steps: AtomicU64,
    /// Steps that found work.
    pub busy_steps: AtomicU64,
    /// Time in steps that found work, ns.
    pub busy_ns: AtomicU64,
    /// The longest step, ns.
    pub longest_step_ns: AtomicU64,
    /// The longest time between the starts of two steps while awake, ns: a stall of the core.
    pub longest_gap_ns: AtomicU64,
    /// Times it slept.
    pub sleeps: AtomicU64,
    /// Steps that found work by their time, in the buckets of [`Durations`].
    pub step_times: [AtomicU64; Durations::BUCKETS],
    /// What its ports have lost; 0 for those of other workers.
    pub losses: PerPort<PortLosses>,
    /// Frames of lossless classes of its ports, both ways, at most [`LOSSES_EVERY`] old.
    pub lossless_frames: PerPort<AtomicU64>,
    /// The kernel's number of its thread; 0 before it runs.
    pub thread: AtomicI32,
}

/// What a port has lost, and its storms, at most [`LOSSES_EVERY`] old.
#[derive(Debug, Default)]
pub struct PortLosses {
    /// Frames that the kernel lost.
    pub overrun: AtomicU64,
    /// Lossless frames lost.
    pub violations: AtomicU64,
    /// Storms detected, all queues together.
    pub storms: AtomicU64,
    /// The queues that are stormed now, one bit each.
    pub stormed: AtomicU64,
    /// Those of the last storm, over or not.
    pub last_stormed: AtomicU64,
    /// When that was detected, by the clock of `Worker::step`.
    pub last_storm_ns: AtomicU64,
    /// Suspected deadlocks, all PGs together.
    pub suspicions: AtomicU64,
    /// The PGs that are suspected now, one bit each.
    pub suspected: AtomicU64,
    /// Those that were suspected last, whether they still are or not.
    pub last_suspected: AtomicU64,
    /// When, by the clock of `Worker::step`.
    pub last_suspicion_ns: AtomicU64,
    /// The ports whose queues held the frames of these, one bit each.
    pub waited_for: AtomicU64,
}

impl PortLosses {
    /// Begins anew, for another port of the number. Nobody writes meanwhile.
    pub fn forget(&self) {
        let Self { overrun, violations, storms, stormed, last_stormed, last_storm_ns, .. } = self;
        let Self { suspicions, suspected, last_suspected, last_suspicion_ns, waited_for, .. } =
            self;
        let lost = [overrun, violations];
        let stormed = [storms, stormed, last_stormed, last_storm_ns];
        let stuck = [suspicions, suspected, last_suspected, last_suspicion_ns, waited_for];
        for word in lost.into_iter().chain(stormed).chain(stuck) {
            word.store(0, Ordering::Relaxed);
        }
    }
}

impl Default for WorkerStats {
    fn default() -> Self {
        Self {
            steps: AtomicU64::default(),
            busy_steps: AtomicU64::default(),
            busy_ns: AtomicU64::default(),
            longest_step_ns: AtomicU64::default(),
            longest_gap_ns: AtomicU64::default(),
            sleeps: AtomicU64::default(),
            step_times: Default::default(),
            losses: PerPort::from_fn(|_| PortLosses::default()),
            lossless_frames: PerPort::from_fn(|_| AtomicU64::default()),
            thread: AtomicI32::default(),
        }
    }
}

impl WorkerStats {
    fn add(counter: &AtomicU64, n: u64) {
        counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    fn raise(mark: &AtomicU64, value: u64) {
        if value > mark.load(Ordering::Relaxed) {
            mark.store(value, Ordering::Relaxed);
        }
    }
}

/// What a worker's thread starts with.
pub struct WorkerThread {
    /// The worker.
    pub worker: LiveWorker,
    /// Where questions and orders come in.
    pub mailbox: Mailbox<LiveWorker>,
    /// The doors of all workers, to ring.
    pub doors: Vec<Arc<Doorbell>>,
    /// Its clockwork, for others to read.
    pub stats: Arc<WorkerStats>,
    /// Set when the switch shall end.
    pub stop: Arc<AtomicBool>,
    /// When the kernel is asked next what it lost.
    pub next_losses: Time,
    /// Where it publishes its counters.
    pub publication: Publication,
    /// When it last found work.
    pub worked: Time,
    /// The core to stay on.
    pub cpu: Option<usize>,
}

impl WorkerThread {
    /// Runs until `stop`, then drains for up to a second; returns when nothing is left to send.
    pub fn run(mut self) {
        self.prepare();
        let mut idle = 0;
        let mut last = clock::now();
        while !self.stop.load(Ordering::Relaxed) {
            let now = clock::now();
            WorkerStats::raise(&self.stats.longest_gap_ns, now.since(last).0);
            last = now;
            let step = self.step(now);
            if step.work > 0 {
                idle = 0;
                continue;
            }
            idle += 1;
            if idle < SPIN_STEPS {
                std::hint::spin_loop();
            } else if idle < YIELD_STEPS || step.next_deadline < now.after(SHORTEST_SLEEP) {
                std::thread::yield_now();
            } else {
                self.sleep(now, step.next_deadline);
                last = clock::now();
                idle = 0;
            }
        }
        self.drain();
    }

    fn prepare(&self) {
        self.stats.thread.store(nix::unistd::gettid().as_raw(), Ordering::Relaxed);
        if let Some(cpu) = self.cpu {
            if let Err(error) = pin(cpu) {
                log::warn!(
                    "worker {}: can't stay on core {cpu}: {error}",
                    self.worker.id().index()
                );
            }
        }
        // Sleeps end within microseconds of the deadline and not only within the default 50.
        if let Err(error) = nix::sys::prctl::set_timerslack(1) {
            log::debug!("timer slack stays at its default: {error}");
        }
    }

    /// Frames that the kernel dropped are seen at most this long after (SPEC 4.3).
    fn read_losses(&mut self, now: Time) {
        if now < self.next_losses {
            return;
        }
        self.next_losses = now.after(LOSSES_EVERY);
        let ids: [Option<PortId>; MAX_PORTS] = {
            let mut ports = self.worker.ports().iter().map(Port::id);
            std::array::from_fn(|_| ports.next())
        };
        for id in ids.into_iter().flatten() {
            // Not of a port that is down: while its netdev is being removed, the kernel may hold
            // whoever asks until that is done. What was lost by then is read when it is up again.
            let up = self.worker.port_mut(id).filter(|port| port.io().is_up());
            if let Some(Ok(losses)) = up.map(|port| port.io().losses()) {
                self.worker.count_losses(id, losses);
            }
            if let Some(port) = self.worker.port_mut(id) {
                let (told, counters) = (&self.stats.losses[id], port.counters());
                told.overrun.store(counters.receive_overrun, Ordering::Relaxed);
                told.violations.store(counters.lossless_violations, Ordering::Relaxed);
                tell_storms(told, port);
                tell_suspicions(told, port);
            }
            self.count_lossless(id);
        }
    }

    fn count_lossless(&mut self, id: PortId) {
        let profile = Arc::clone(self.worker.profile());
        if let (Some(port), Some(spec)) = (self.worker.port_mut(id), profile.port(id)) {
            let frames = lossless_frames(port.counters(), spec);
            self.stats.lossless_frames[id].store(frames, Ordering::Relaxed);
        }
    }

    fn step(&mut self, now: Time) -> Step {
        self.read_losses(now);
        self.mailbox.serve(&mut self.worker);
        let step = self.worker.step(now);
        for (number, door) in self.doors.iter().enumerate() {
            if step.bells.0 & (1 << number) != 0 {
                door.ring_if_asleep();
            }
        }
        WorkerStats::add(&self.stats.steps, 1);
        if step.work > 0 {
            let took = clock::now().since(now).0;
            WorkerStats::add(&self.stats.busy_steps, 1);
            WorkerStats::add(&self.stats.busy_ns, took);
            WorkerStats::raise(&self.stats.longest_step_ns, took);
            if let Some(bucket) = self.stats.step_times.get(Durations::bucket(Nanos(took))) {
                WorkerStats::add(bucket, 1);
            }
            self.worked = now;
        }
        self.publication.turn(&mut self.worker, &self.stats, now);
        step
    }

    /// Announces, looks again, sleeps.
    fn sleep(&mut self, now: Time, deadline: Time) {
        let door = Arc::clone(self.mailbox.door());
        door.announce_sleep();
        if self.step(now).work == 0 && !door.mail_waits() && !self.stop.load(Ordering::Relaxed) {
            self.publication.finish_round(&mut self.worker, &self.stats, now);
            let stale = self.worked >= self.publication.round_began();
            let news = if stale { self.publication.due() } else { Time::NEVER };
            let until = deadline.min(now.after(LONGEST_SLEEP)).min(news);
            let span = Duration::from_nanos(until.since(clock::now()).0);
            let mut fds: Vec<BorrowedFd<'_>> = Vec::with_capacity(MAX_PORTS + 1);
            fds.extend(self.worker.ports().iter().flat_map(|port| port.io().fds()));
            fds.push(door.bell().as_fd());
            WorkerStats::add(&self.stats.sleeps, 1);
            if let Err(error) = holdfast_xsk::wait(&fds, Some(span)) {
                log::debug!("poll: {error}");
            }
        }
        door.awake();
    }

    /// Takes nothing in any more, lets every peer go, and sends what is queued, for up to
    /// [`DRAIN`]; the rest is dropped with the reason `shutdown` (SPEC 14).
    fn drain(&mut self) {
        let start = clock::now();
        self.worker.stop_accepting(start);
        // Another worker may still hand frames over to this one: a few quiet steps end it.
        let mut quiet = 0;
        while quiet < SPIN_STEPS && clock::now() < start.after(DRAIN) {
            let step = self.step(clock::now());
            if step.work == 0 && !self.worker.has_queued() {
                quiet += 1;
                std::thread::sleep(Duration::from_micros(100));
            } else {
                quiet = 0;
            }
        }
        self.worker.discard_queued();
    }
}

/// Leaves what the control thread tells of a port's storms.
fn tell_storms<P>(told: &PortLosses, port: &Port<P>) {
    let (mut storms, mut stormed, mut last) = (0, QueueSet::EMPTY, (0, QueueSet::EMPTY));
    for (queue, watch) in QueueId::all().map(|queue| (queue, port.watchdog(queue))) {
        storms += watch.detections();
        let only = QueueSet::only(queue);
        if watch.is_stormed() {
            stormed = stormed.or(only);
        }
        match watch.last_detected() {
            Some(at) if at.0 > last.0 => last = (at.0, only),
            Some(at) if at.0 == last.0 => last.1 = last.1.or(only),
            _ => {}
        }
    }
    told.last_storm_ns.store(last.0, Ordering::Relaxed);
    told.last_stormed.store(u64::from(last.1 .0), Ordering::Relaxed);
    told.stormed.store(u64::from(stormed.0), Ordering::Relaxed);
    told.storms.store(storms, Ordering::Relaxed);
}

/// Leaves what the control thread tells of a port's suspected deadlocks.
fn tell_suspicions<P>(told: &PortLosses, port: &Port<P>) {
    let all = PgId::all().map(|pg| (1u64 << pg.number(), port.suspicion(pg)));
    let (mut total, mut suspected) = (0, 0);
    let (mut at, mut last, mut waited_for) = (0, 0, 0);
    for (bit, suspicion) in all {
        total += suspicion.suspected();
        suspected |= if suspicion.since().is_some() { bit } else { 0 };
        let Some(Time(when)) = suspicion.last_suspected() else { continue };
        if when > at {
            (at, last, waited_for) = (when, 0, 0);
        }
        if when == at {
            last |= bit;
            waited_for |= suspicion.waits_for().0;
        }
    }
    told.last_suspicion_ns.store(at, Ordering::Relaxed);
    told.last_suspected.store(last, Ordering::Relaxed);
    told.waited_for.store(waited_for, Ordering::Relaxed);
    told.suspected.store(suspected, Ordering::Relaxed);
    told.suspicions.store(total, Ordering::Relaxed);
}

/// All workers' threads. Dropping it ends them in order: they drain, close their ports and are
/// joined.
pub struct WorkerThreads {
    stop: Arc<AtomicBool>,
    doors: Vec<Arc<Doorbell>>,
    threads: Vec<JoinHandle<()>>,
}

impl WorkerThreads {
    /// No thread yet; `doors` are those of all workers that will be.
    pub fn new(doors: Vec<Arc<Doorbell>>) -> Self {
        Self { stop: Arc::new(AtomicBool::new(false)), doors, threads: Vec::new() }
    }

    /// Starts the next worker, made with all doors and the flag that ends it.
    ///
    /// # Errors
    /// The system's, where it gives no thread.
    pub fn start(
        &mut self,
        make: impl FnOnce(Vec<Arc<Doorbell>>, Arc<AtomicBool>) -> WorkerThread,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let thread = make(self.doors.clone(), Arc::clone(&self.stop));
        let spawn = std::thread::Builder::new().name(format!("worker{}", self.threads.len()));
        self.threads.push(spawn.spawn(move || thread.run())?);
        Ok(())
    }
}

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.doors.iter().for_each(|door| door.bell().ring());
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                log::error!("a worker had ended by a panic");
            }
        }
    }
}

fn pin(cpu: usize) -> nix::Result<()> {
    let mut set = nix::sched::CpuSet::new();
    set.set(cpu)?;
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)
}
