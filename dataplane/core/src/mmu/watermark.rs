//! High watermarks in two views (SPEC 3.8).
//!
//! These atomics are the machine's even where loom explores the account: they decide nothing,
//! and would only multiply the interleavings to explore.

use crate::units::Cells;
use core::sync::atomic::{AtomicU32, Ordering};

/// Which of the two views of a watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Since the last clear on request.
    User,
    /// Since boot.
    Persistent,
}

/// The highest occupancy of something, in both views.
#[derive(Debug, Default)]
pub(super) struct Watermark {
    user: AtomicU32,
    persistent: AtomicU32,
}

impl Watermark {
    /// Takes notice of an occupancy that was just reached.
    #[inline]
    pub(super) fn note(&self, occupancy: Cells) {
        raise(&self.user, occupancy);
        raise(&self.persistent, occupancy);
    }

    /// Begins anew in both views. Nobody notes an occupancy meanwhile.
    pub(super) fn forget(&self) {
        self.user.store(0, Ordering::SeqCst);
        self.persistent.store(0, Ordering::SeqCst);
    }

    pub(super) fn get(&self, view: View) -> Cells {
        Cells(match view {
            View::User => self.user.load(Ordering::Relaxed),
            View::Persistent => self.persistent.load(Ordering::Relaxed),
        })
    }

    /// Lowers the user's view to the present occupancy. That is read *after* the zero is written:
    /// a peak is reached before it is noted, so that one which finds the old mark came before the
    /// clear, and one that comes later finds the zero. Both sides write one atomic and then read
    /// the other, which SeqCst orders and which costs nothing on x86.
    pub(super) fn clear_user(&self, occupancy: impl FnOnce() -> Cells) {
        self.user.swap(0, Ordering::SeqCst);
        raise(&self.user, occupancy());
    }
}

#[inline]
fn raise(mark: &AtomicU32, occupancy: Cells) {
    if mark.load(Ordering::SeqCst) < occupancy.0 {
        mark.fetch_max(occupancy.0, Ordering::SeqCst);
    }
}

#[cfg(test)]
#[cfg(not(loom))] // Loom's atomics live in its models only.
mod tests {
    use super::*;

    #[test]
    fn a_clear_keeps_the_present_and_the_persistent_view() {
        let mark = Watermark::default();
        mark.note(Cells(9));
        mark.note(Cells(4));
        mark.clear_user(|| Cells(4));
        assert_eq!(mark.get(View::User), Cells(4));
        assert_eq!(mark.get(View::Persistent), Cells(9));
    }

    #[test]
    fn a_peak_between_the_two_halves_of_a_clear_is_kept() {
        let mark = Watermark::default();
        mark.note(Cells(9));
        mark.clear_user(|| {
            mark.note(Cells(7));
            Cells(2)
        });
        assert_eq!(mark.get(View::User), Cells(7));
    }
}
