//! A switch in memory on a thread of its own, with a console: what tests ask questions of.

#[allow(clippy::needless_range_loop)]
#[path = "../../core/tests/lab/mod.rs"]
mod switch_lab;

pub(crate) use switch_lab::{ipv4, pg, port_spec, station, Lab, LOSSLESS};

use super::{Board, PortFacts, RingReading};
use crate::mailbox::{Mailbox, Workers};
use crate::ports::Downs;
use crate::worker_thread::WorkerStats;
use holdfast_api::message::XdpMode;
use holdfast_core::io::PortIo;
use holdfast_core::memory::MemoryPort;
use holdfast_core::units::{FrameLen, Nanos, Time};
use holdfast_core::worker::Worker;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

type Act = Box<dyn FnOnce(&mut Lab) + Send>;

/// The running switch. Its ports are named `p0`, `p1`, ...
pub(crate) struct Rig {
    acts: Sender<Act>,
    stop: Arc<AtomicBool>,
    /// While set, the workers don't look at their mailboxes.
    pub(crate) deaf: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The clock of the labs.
pub(crate) fn clock() -> Time {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let origin = ORIGIN.get_or_init(Instant::now);
    Time(1_000 + origin.elapsed().as_nanos() as u64)
}

/// Reads the rings of a port in memory.
pub(crate) fn rings(port: &mut MemoryPort) -> RingReading {
    RingReading { backlog: port.rx_backlog(), chunks: port.chunks_held() as u32, down_reason: None }
}

impl Rig {
    /// A switch of equal ports with their stations known, its mailboxes and what is known of it.
    pub(crate) fn start(
        workers: usize,
        ports: usize,
    ) -> (Self, Workers<Worker<MemoryPort>>, Board) {
        let (asking, boxes) = Workers::new(workers).unwrap();
        let (acts, waiting) = channel::<Act>();
        let (parts, made) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let deaf = Arc::new(AtomicBool::new(false));
        let (ended, silent) = (Arc::clone(&stop), Arc::clone(&deaf));
        // The memory of the lab belongs to one thread: the switch is made where it runs.
        let thread = std::thread::spawn(move || {
            let mut lab = Lab::new(workers, ports, port_spec());
            lab.now = clock();
            lab.teach();
            let worker = &lab.workers[0];
            let shared = Arc::clone(worker.shared());
            let profile = Arc::clone(worker.profile());
            parts.send((shared, profile, Arc::clone(&lab.topology))).unwrap();
            while !ended.load(Ordering::Relaxed) {
                if !silent.load(Ordering::Relaxed) {
                    serve(&boxes, &mut lab);
                }
                // One at a time, so that a step lies between what two of them did.
                if let Ok(act) = waiting.try_recv() {
                    act(&mut lab);
                }
                lab.now = clock();
                lab.steps(1, Nanos(0));
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        let (shared, profile, topology) = made.recv().unwrap();
        let facts = |n| PortFacts {
            name: format!("p{n}"),
            netns: None,
            ifname: format!("eth{n}"),
            xdp_mode: XdpMode::Generic,
            zero_copy: false,
            queues: 1,
            rx_ring: 2048,
            notes: vec!["checksum offload off".to_owned()],
            since: Time::default(),
        };
        let board = Board {
            name: "lab".to_owned(),
            shared,
            topology,
            profile,
            notes: Vec::new(),
            headroom_terms: Vec::new(),
            ports: (0..ports).map(facts).map(Some).collect(),
            threads: (0..workers).map(|_| (Arc::new(WorkerStats::default()), None)).collect(),
            chunks: 4096,
            started: clock(),
            smallest_lossless_frame: FrameLen(1086),
            downs: Downs::default(),
        };
        let rig = Self { acts, stop, deaf, thread: Some(thread) };
        (rig, asking, board)
    }

    /// Does something with the switch, between two steps, and waits for it.
    pub(crate) fn act<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Lab) -> T + Send + 'static,
    ) -> T {
        let (done, result) = channel();
        self.acts.send(Box::new(move |lab| done.send(act(lab)).unwrap())).unwrap();
        result.recv().unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(boxes: &[Mailbox<Worker<MemoryPort>>], lab: &mut Lab) {
    for (mailbox, worker) in boxes.iter().zip(&mut lab.workers) {
        mailbox.serve(worker);
    }
}
