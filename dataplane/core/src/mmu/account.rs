//! The account of one PG: three occupancies and the XOFF bit in one word (SPEC 3.2).

use crate::explorer::{self, Fault};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::units::{Cells, MAX_SEGMENT_CELLS};
use core::fmt;

const FIELD_BITS: u32 = 21;
const SERVICE_AT: u32 = FIELD_BITS;
const HEADROOM_AT: u32 = 2 * FIELD_BITS;
const XOFF: u64 = 1 << (3 * FIELD_BITS);
const FIELD: u64 = MAX_SEGMENT_CELLS as u64;
const _: () = assert!(FIELD == (1 << FIELD_BITS) - 1 && 3 * FIELD_BITS == 63);

/// Where a frame's cells are charged; a whole frame goes into one of them (SPEC 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Reserved to the PG.
    Guaranteed,
    /// Lent by a pool.
    Service,
    /// For frames in flight after XOFF.
    Headroom,
}

/// Cells by segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// Cells of Guaranteed.
    pub guaranteed: Cells,
    /// Cells of Service.
    pub service: Cells,
    /// Cells of Headroom.
    pub headroom: Cells,
}

impl Segments {
    /// All three together.
    pub const fn total(self) -> Cells {
        Cells(self.guaranteed.0 + self.service.0 + self.headroom.0)
    }
}

/// One value of an account: a consistent view of its occupancies and its XOFF bit.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    #[cfg(loom)]
    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Cells in Guaranteed.
    #[inline]
    pub const fn guaranteed(self) -> Cells {
        Cells((self.0 & FIELD) as u32)
    }

    /// Cells in Service.
    #[inline]
    pub const fn service(self) -> Cells {
        Cells((self.0 >> SERVICE_AT & FIELD) as u32)
    }

    /// Cells in Headroom.
    #[inline]
    pub const fn headroom(self) -> Cells {
        Cells((self.0 >> HEADROOM_AT & FIELD) as u32)
    }

    /// Whether the PG pauses its peer.
    #[inline]
    pub const fn in_xoff(self) -> bool {
        self.0 & XOFF != 0
    }

    /// The three occupancies.
    pub const fn segments(self) -> Segments {
        Segments {
            guaranteed: self.guaranteed(),
            service: self.service(),
            headroom: self.headroom(),
        }
    }

    /// Whether no cell is charged.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 & !XOFF == 0
    }

    /// With XOFF set.
    #[inline]
    #[must_use]
    pub const fn paused(self) -> Self {
        Self(self.0 | XOFF)
    }

    /// With XOFF cleared.
    #[inline]
    #[must_use]
    pub const fn resumed(self) -> Self {
        Self(self.0 & !XOFF)
    }

    /// With `cells` more in `segment`. The caller has checked them against a size, and no size is
    /// above [`MAX_SEGMENT_CELLS`], so that the field can't overflow.
    #[inline]
    #[must_use]
    pub(super) const fn plus(self, segment: Segment, cells: Cells) -> Self {
        let at = match segment {
            Segment::Guaranteed => 0,
            Segment::Service => SERVICE_AT,
            Segment::Headroom => HEADROOM_AT,
        };
        Self(self.0 + ((cells.0 as u64) << at))
    }

    /// With `cells` less, and where they came from: Headroom first, then Service, then Guaranteed
    /// (SPEC 3.4).
    #[inline]
    pub(super) fn minus(self, cells: Cells) -> (Self, Segments) {
        let headroom = self.headroom().min(cells);
        let rest = cells.saturating_sub(headroom);
        let service = self.service().min(rest);
        let guaranteed = self.guaranteed().min(rest.saturating_sub(service));
        let taken = Segments { guaranteed, service, headroom };
        debug_assert_eq!(taken.total(), cells, "released more than was charged: {self:?}");
        let word = self.0
            - u64::from(guaranteed.0)
            - (u64::from(service.0) << SERVICE_AT)
            - (u64::from(headroom.0) << HEADROOM_AT);
        (Self(word), taken)
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Segments { guaranteed, service, headroom } = self.segments();
        let pause = if self.in_xoff() { "XOFF" } else { "XON" };
        write!(f, "{}G + {}S + {}H, {pause}", guaranteed.0, service.0, headroom.0)
    }
}

/// The atomic that holds a [`Word`].
#[derive(Debug)]
pub(super) struct Account(AtomicU64);

impl Account {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(super) fn load(&self) -> Word {
        // SeqCst for the watermarks only (see there); an Acquire is all the account needs.
        Word(self.0.load(Ordering::SeqCst))
    }

    /// Replaces `from` by `to` if the account still is `from`; `false` leaves it as it is.
    /// With `to == from` it proves that nothing has changed since `from` was read.
    #[inline]
    pub(super) fn replace(&self, from: Word, to: Word) -> bool {
        if explorer::seeded(Fault::CheckThenCharge) {
            return self.check_then_store(from, to);
        }
        let done = self.0.compare_exchange(from.0, to.0, Ordering::SeqCst, Ordering::Relaxed);
        if done.is_ok() {
            explorer::note(self, to.0);
        }
        done.is_ok()
    }

    /// [`Fault::CheckThenCharge`]: another worker may write between the two.
    #[cold]
    fn check_then_store(&self, from: Word, to: Word) -> bool {
        let same = self.load() == from;
        if same {
            self.0.store(to.0, Ordering::SeqCst);
            explorer::note(self, to.0);
        }
        same
    }
}

#[cfg(test)]
#[cfg(not(loom))] // Loom's atomics live in its models only.
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(guaranteed: u32, service: u32, headroom: u32) -> Word {
        Word::default()
            .plus(Segment::Guaranteed, Cells(guaranteed))
            .plus(Segment::Service, Cells(service))
            .plus(Segment::Headroom, Cells(headroom))
    }

    #[test]
    fn full_fields_do_not_touch_each_other() {
        let max = MAX_SEGMENT_CELLS;
        for fields in [(max, 0, 0), (0, max, 0), (0, 0, max), (max, max, max)] {
            let word = word(fields.0, fields.1, fields.2);
            let read = (word.guaranteed().0, word.service().0, word.headroom().0);
            assert_eq!(read, fields);
            assert!(!word.in_xoff() && word.paused().in_xoff());
            assert_eq!(word.paused().resumed(), word);
        }
    }

    #[test]
    fn release_takes_headroom_then_service_then_guaranteed() {
        let (left, taken) = word(4, 3, 2).paused().minus(Cells(1));
        assert_eq!(left, word(4, 3, 1).paused());
        assert_eq!(taken.headroom, Cells(1));
        let (left, taken) = word(4, 3, 2).paused().minus(Cells(4));
        assert_eq!(left, word(4, 1, 0).paused());
        assert_eq!((taken.headroom, taken.service), (Cells(2), Cells(2)));
        let (left, taken) = word(4, 3, 2).minus(Cells(7));
        assert_eq!(left, word(2, 0, 0));
        assert_eq!((taken.service, taken.guaranteed), (Cells(3), Cells(2)));
    }

    proptest! {
        #[test]
        fn what_is_taken_is_what_is_missing(
            g in 0..=MAX_SEGMENT_CELLS, s in 0..=MAX_SEGMENT_CELLS, h in 0..=MAX_SEGMENT_CELLS,
            n: u16, xoff: bool,
        ) {
            let start = if xoff { word(g, s, h).paused() } else { word(g, s, h) };
            let n = Cells(u32::from(n)).min(start.segments().total());
            let (left, taken) = start.minus(n);
            prop_assert_eq!(taken.total(), n);
            prop_assert_eq!(left.in_xoff(), xoff);
            prop_assert_eq!(left.guaranteed().0 + taken.guaranteed.0, g);
            prop_assert_eq!(left.service().0 + taken.service.0, s);
            prop_assert_eq!(left.headroom().0 + taken.headroom.0, h);
            if taken.service > Cells::ZERO { prop_assert_eq!(left.headroom(), Cells::ZERO); }
            if taken.guaranteed > Cells::ZERO { prop_assert_eq!(left.service(), Cells::ZERO); }
        }
    }
}
