//! Who must be woken: the flag between a worker that goes to sleep and those that have work for it.
//!
//! The worker announces its sleep and then looks once more for work; another worker leaves work and
//! then looks whether it must ring. Each writes one place and reads the other's, so each needs a
//! fence in between, or both could miss the other: the work would lie until the worker's timer.

use crate::explorer::{seeded, Fault};
use crate::sync::atomic::{fence, AtomicBool, Ordering};

/// Whether a worker is about to sleep, or sleeps.
#[derive(Debug)]
pub struct SleepFlag(AtomicBool);

impl SleepFlag {
    /// Of a worker that is awake.
    #[allow(clippy::new_without_default, reason = "loom's atomics aren't made by default")]
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// By the worker: it will sleep, unless it finds work when it looks once more after this.
    pub fn announce(&self) {
        self.0.store(true, Ordering::Relaxed);
        if !seeded(Fault::MissingFence) {
            fence(Ordering::SeqCst);
        }
    }

    /// By the worker: it is awake, and looks for work after this.
    pub fn awake(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// By anybody, after the work was left where the worker looks for it: whether to ring.
    #[must_use]
    pub fn must_ring(&self) -> bool {
        // Pairs with the fence of `announce`: it is seen asleep, or it sees the work.
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed)
    }
}
