//! How long the switch keeps a frame, by samples (`holdfast_forwarding_latency_seconds`).
//!
//! One frame of the whole switch at a time is timed: its descriptor says so, and the probe keeps
//! the time of the RX burst that it came in with. The worker that sends it counts how long it
//! stayed until the kick that handed it to the kernel. So the others cost no more than one bit
//! that is looked at on the way out.
//!
//! Timed is one admitted frame of a burst, each place in a burst in turn, at most every
//! [`PROBE_EVERY`] at each worker. While it waits, at a held or paused port for instance, no other
//! one is timed. Frames with copies, those that are dropped, and those that wait for room because
//! the worker was late are not counted.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::units::{Nanos, Time};
use crossbeam::utils::CachePadded;

/// How often a worker chooses a frame.
pub const PROBE_EVERY: Nanos = Nanos::millis(1);

/// No frame is timed.
const FREE: u64 = u64::MAX;

/// When the frame came that is being timed. Shared by all workers.
///
/// It belongs to whoever owns that frame; relaxed accesses suffice, for frames change their owner
/// by rings, which order what was done before.
#[derive(Debug)]
pub struct Probe(CachePadded<AtomicU64>);

impl Default for Probe {
    fn default() -> Self {
        Self(CachePadded::new(AtomicU64::new(FREE)))
    }
}

impl Probe {
    /// Begins to time a frame that was taken from an RX ring at `now`; `false` if another one is
    /// being timed.
    #[must_use]
    pub fn begin(&self, now: Time) -> bool {
        let time = now.0.min(FREE - 1);
        self.0.compare_exchange(FREE, time, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The frame left at `left`: how long it was kept. The next one may begin.
    pub fn end(&self, left: Time) -> Nanos {
        left.since(Time(self.0.swap(FREE, Ordering::Relaxed)))
    }

    /// The frame was dropped: the next one may begin.
    pub fn give_up(&self) {
        self.0.store(FREE, Ordering::Relaxed);
    }

    /// Whether no frame is being timed.
    pub fn is_free(&self) -> bool {
        self.0.load(Ordering::Relaxed) == FREE
    }
}
