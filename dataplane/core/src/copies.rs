//! Frames with several copies: who is the last to let go (SPEC 3.5).
//!
//! All copies share one piece of memory and one receipt. The count starts at 1 for the ingress,
//! grows before each copy is queued, and whoever brings it to 0 releases, also with 0 copies.
//! How many copies may be under way at once is bounded by `flood_limit`, so hand-over rings and
//! queues can't be full.

use crate::sync::atomic::{AtomicU32, Ordering};
use crossbeam::utils::CachePadded;

/// The counts of all frames, by first chunk, and the copy budget. Shared by all workers.
#[derive(Debug)]
pub struct Copies {
    counts: Box<[AtomicU32]>,
    under_way: CachePadded<AtomicU32>,
}

impl Copies {
    /// Counts for so many chunks.
    pub fn new(chunks: u32) -> Self {
        Self {
            counts: (0..chunks).map(|_| AtomicU32::new(0)).collect(),
            under_way: CachePadded::new(AtomicU32::new(0)),
        }
    }

    /// Starts the count of a frame at 1: the ingress holds it.
    pub fn begin(&self, chunk: u32) {
        if let Some(count) = self.counts.get(chunk as usize) {
            count.store(1, Ordering::Relaxed);
        }
    }

    /// Takes one copy from the budget and counts it; `false`, and nothing done, if it is used up.
    #[must_use]
    pub fn add(&self, chunk: u32, flood_limit: u32) -> bool {
        let taken = self.under_way.fetch_add(1, Ordering::Relaxed);
        if taken >= flood_limit {
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        if let Some(count) = self.counts.get(chunk as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// Ends a copy and gives it back to the budget; `true` for the last holder of the frame.
    #[must_use]
    pub fn end(&self, chunk: u32) -> bool {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        self.let_go(chunk)
    }

    /// The ingress lets go; `true` if no copy is left.
    #[must_use]
    pub fn let_go(&self, chunk: u32) -> bool {
        // Acquire/Release: the last holder frees memory that the others have read.
        self.counts
            .get(chunk as usize)
            .is_some_and(|count| count.fetch_sub(1, Ordering::AcqRel) == 1)
    }

    /// Who holds the frame now: its copies, and the ingress until it lets go.
    pub fn holders(&self, chunk: u32) -> u32 {
        self.counts.get(chunk as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Copies under way now.
    pub fn under_way(&self) -> u32 {
        self.under_way.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn last_holder_releases_whoever_it_is() {
        let copies = Copies::new(4);
        copies.begin(2);
        assert!(copies.add(2, 2) && copies.add(2, 2));
        assert!(!copies.add(2, 2), "the budget is two copies");
        assert!(!copies.end(2));
        assert!(!copies.let_go(2));
        assert_eq!(copies.under_way(), 1);
        assert!(copies.end(2));
        assert_eq!(copies.under_way(), 0);
        copies.begin(2);
        assert!(copies.let_go(2), "a flood to nobody is released by the ingress");
    }
}
