//! A pool: one atomic that says how many of its cells are lent (SPEC 3.2).
//!
//! Its size belongs to the profile, so each call brings it along. There is no per-worker credit:
//! cells that lie idle at one worker would make another one refuse a frame that fits.

use super::watermark::{View, Watermark};
use crate::explorer;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::units::Cells;

/// How old an answer of [`Pool`] may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// A plain load: may miss what another worker has just done.
    Recent,
    /// By a read-modify-write: the latest there is, and whoever changes the pool after it sees
    /// what this worker did to an account before it. That pairing replaces a SeqCst fence on the
    /// path of every release: of a worker that writes the account and then reads the pool, and one
    /// that writes the pool and then reads the account, at least one sees the other's write.
    Latest,
}

/// Cells lent out of a size that the caller knows.
#[derive(Debug)]
pub(super) struct Pool {
    lent: AtomicU32,
    /// Generation (its low 32 bits) above cells: what shrunk private sizes still hold (SPEC 3.6).
    withheld: AtomicU64,
    /// How far `lent` was above the size when the size last changed.
    overhang: AtomicU32,
    peak: Watermark,
}

impl Pool {
    pub(super) fn new() -> Self {
        Self {
            lent: AtomicU32::new(0),
            withheld: AtomicU64::new(0),
            overhang: AtomicU32::new(0),
            peak: Watermark::default(),
        }
    }

    /// Cells lent now.
    #[inline]
    pub(super) fn lent(&self, read: Read) -> Cells {
        Cells(match read {
            Read::Recent => self.lent.load(Ordering::Acquire),
            Read::Latest => self.lent.fetch_add(0, Ordering::AcqRel),
        })
    }

    /// Cells held back for private sizes that are still overfull.
    #[inline]
    pub(super) fn withheld(&self) -> Cells {
        Cells(self.withheld.load(Ordering::Acquire) as u32)
    }

    /// Size - lent - withheld, which counts as 0 where it is negative (SPEC 3.6).
    #[inline]
    pub(super) fn free(&self, size: Cells, read: Read) -> Cells {
        size.saturating_sub(self.withheld()).saturating_sub(self.lent(read))
    }

    /// Takes `cells` if that many are free and `fits` agrees with how many are.
    /// Returns the free cells after it.
    ///
    /// # Errors
    /// The free cells that were too few; nothing was taken.
    #[inline]
    pub(super) fn take(
        &self,
        size: Cells,
        cells: Cells,
        read: Read,
        fits: impl Fn(Cells) -> bool,
    ) -> Result<Cells, Cells> {
        let usable = size.saturating_sub(self.withheld());
        let mut lent = self.lent(Read::Recent);
        let mut latest = read == Read::Recent;
        loop {
            let free = usable.saturating_sub(lent);
            if free < cells || !fits(free) {
                if latest {
                    return Err(free);
                }
                lent = self.lent(Read::Latest);
                latest = true;
                continue;
            }
            let after = lent.0 + cells.0;
            let (success, failure) = (Ordering::SeqCst, Ordering::Acquire);
            match self.lent.compare_exchange(lent.0, after, success, failure) {
                Ok(_) => {
                    explorer::note(self, u64::from(after));
                    self.peak.note(Cells(after));
                    return Ok(free.saturating_sub(cells));
                }
                Err(now) => {
                    // What another worker wrote since: as late as a read-modify-write, but only
                    // success or a read of our own makes it `Latest`.
                    lent = Cells(now);
                    latest = read == Read::Recent;
                }
            }
        }
    }

    /// Takes `cells` even if there are none: egress of lossless frames only (SPEC 3.5).
    #[inline]
    pub(super) fn lend(&self, cells: Cells) {
        let before = self.lent.fetch_add(cells.0, Ordering::SeqCst);
        self.peak.note(Cells(before.saturating_add(cells.0)));
    }

    /// Takes back `cells` that were lent.
    #[inline]
    pub(super) fn give(&self, cells: Cells) {
        let before = self.lent.fetch_sub(cells.0, Ordering::SeqCst);
        debug_assert!(before >= cells.0, "{cells} returned, {before} were lent");
        explorer::note(self, u64::from(before.wrapping_sub(cells.0)));
    }

    /// Replaces the withheld cells unless a younger profile has set them already.
    pub(super) fn set_withheld(&self, generation: u64, cells: Cells) {
        let stamped = generation << 32 | u64::from(cells.0);
        let mut seen = self.withheld.load(Ordering::Acquire);
        while seen >> 32 <= stamped >> 32 && seen != stamped {
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            match self.withheld.compare_exchange(seen, stamped, success, failure) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Remembers how far the pool is above a size that was made smaller.
    pub(super) fn set_overhang(&self, size: Cells) {
        let over = self.lent(Read::Recent).saturating_sub(size);
        self.overhang.store(over.0, Ordering::Relaxed);
    }

    /// How far the pool may be above its size because that was made smaller (SPEC 3.6).
    pub(super) fn overhang(&self) -> Cells {
        Cells(self.overhang.load(Ordering::Relaxed))
    }

    pub(super) fn peak(&self, view: View) -> Cells {
        self.peak.get(view)
    }

    pub(super) fn clear_peak(&self) {
        self.peak.clear_user(|| Cells(self.lent.load(Ordering::SeqCst)));
    }
}

#[cfg(test)]
#[cfg(not(loom))] // Loom's atomics live in its models only.
mod tests {
    use super::*;

    #[test]
    fn free_never_wraps() {
        let pool = Pool::new();
        pool.lend(Cells(12));
        assert_eq!(pool.free(Cells(10), Read::Recent), Cells::ZERO);
        assert_eq!(pool.take(Cells(10), Cells(1), Read::Latest, |_| true), Err(Cells::ZERO));
        pool.give(Cells(3));
        pool.set_withheld(1, Cells(4));
        assert_eq!(pool.free(Cells(10), Read::Latest), Cells::ZERO);
        pool.set_withheld(1, Cells(0));
        assert_eq!(pool.take(Cells(10), Cells(1), Read::Recent, |_| true), Ok(Cells(0)));
    }

    #[test]
    fn an_older_profile_does_not_overwrite_what_is_withheld() {
        let pool = Pool::new();
        pool.set_withheld(7, Cells(5));
        pool.set_withheld(6, Cells(0));
        assert_eq!(pool.withheld(), Cells(5));
        pool.set_withheld(7, Cells(2));
        assert_eq!(pool.withheld(), Cells(2));
    }

    #[test]
    fn a_clear_keeps_what_is_lent() {
        let pool = Pool::new();
        pool.lend(Cells(9));
        pool.give(Cells(5));
        pool.clear_peak();
        assert_eq!((pool.peak(View::User), pool.peak(View::Persistent)), (Cells(4), Cells(9)));
    }
}
