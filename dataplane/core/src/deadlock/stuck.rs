//! How many cells of each PG stand in stuck queues: where workers that own queues tell those that
//! own the PGs.

use crate::ids::{PerPg, PerPort, PgId, PortId};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::topology::PortSet;
use crate::units::Cells;
use crossbeam::utils::CachePadded;

/// Cells in parts of 2^-32: of a frame whose copies stand in several queues each has its share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share(u64);

impl Share {
    const PARTS: u32 = 32;

    /// All cells of an account.
    pub(crate) fn whole(cells: Cells) -> Self {
        Self(u64::from(cells.0) << Self::PARTS)
    }

    /// The share in a frame of `cells` of each of its `holders`, rounded down.
    pub(crate) fn of(cells: Cells, holders: u32) -> Self {
        Self(Self::whole(cells).0 / u64::from(holders.max(1)))
    }

    pub(crate) const fn is_nothing(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }

    /// Whether it is the same but for what shares were rounded by: less than a cell, for there are
    /// fewer frames than parts.
    pub(crate) const fn is(self, whole: Self) -> bool {
        self.0 <= whole.0 && whole.0 - self.0 < 1 << Self::PARTS
    }
}

/// What stands of one PG.
#[derive(Debug, Default)]
struct StuckPg {
    share: AtomicU64,
    /// Egress ports whose stuck queues hold some of it, one bit each. The port's owner writes it.
    ports: AtomicU64,
    /// How often a stuck queue moved that held some of it.
    moves: AtomicU64,
}

/// What all frames of a PG wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllStuck {
    /// The ports whose stuck queues hold them.
    pub(crate) ports: PortSet,
    /// Grows whenever a stuck queue moves that held some of them.
    pub(crate) moves: u64,
}

impl StuckPg {
    fn add(&self, egress: PortId, share: Share) {
        self.ports.fetch_or(PortSet::only(egress).0, Ordering::SeqCst);
        self.share.fetch_add(share.0, Ordering::SeqCst);
    }

    fn moved(&self, egress: PortId, share: Share, last: bool) {
        // In this order: whoever has read the share before finds another number of moves when it
        // reads that again, which is before a frame leaves; whoever has read that number has the
        // new share.
        self.share.fetch_sub(share.0, Ordering::SeqCst);
        self.moves.fetch_add(1, Ordering::SeqCst);
        if last {
            self.ports.fetch_and(!PortSet::only(egress).0, Ordering::SeqCst);
        }
    }

    /// Only the caller charges the PG: between its reads of the share and of what is held, cells
    /// can only have gone. If those were of a stuck queue, that has told before that it moves.
    fn all(&self, held: impl FnOnce() -> Cells) -> Option<AllStuck> {
        let moves = self.moves.load(Ordering::SeqCst);
        let share = Share(self.share.load(Ordering::SeqCst));
        if share.is_nothing() || !share.is(Share::whole(held())) {
            return None;
        }
        let ports = PortSet(self.ports.load(Ordering::SeqCst));
        let same = self.moves.load(Ordering::SeqCst) == moves;
        same.then_some(AllStuck { ports, moves })
    }
}

/// The cells of all PGs that stand in stuck queues. Shared by all workers.
#[derive(Debug, Default)]
pub struct StuckCells {
    pgs: PerPort<PerPg<StuckPg>>,
    /// Stuck queues of all ports: without any there is nothing to look at.
    queues: CachePadded<AtomicU32>,
}

impl StuckCells {
    /// Whether no queue of the switch is stuck.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queues.load(Ordering::Acquire) == 0
    }

    /// One more queue is stuck; its cells follow.
    pub(crate) fn enter(&self) {
        self.queues.fetch_add(1, Ordering::AcqRel);
    }

    /// One stuck queue less; its cells were taken back before.
    pub(crate) fn leave(&self) {
        self.queues.fetch_sub(1, Ordering::AcqRel);
    }

    /// Cells of a PG stand in a stuck queue of `egress`.
    pub(crate) fn add(&self, (port, pg): (PortId, PgId), egress: PortId, share: Share) {
        self.pgs[port][pg].add(egress, share);
    }

    /// Takes back what was added for a queue that will be counted anew.
    pub(crate) fn recount(&self, (port, pg): (PortId, PgId), share: Share) {
        self.pgs[port][pg].share.fetch_sub(share.0, Ordering::SeqCst);
    }

    /// Takes back what was added for a queue that moves from now on. `last`: no other queue of
    /// `egress` holds any of it.
    pub(crate) fn moved(
        &self,
        (port, pg): (PortId, PgId),
        egress: PortId,
        share: Share,
        last: bool,
    ) {
        self.pgs[port][pg].moved(egress, share, last);
    }

    /// How often a stuck queue moved that held some of a PG.
    pub(crate) fn moves(&self, port: PortId, pg: PgId) -> u64 {
        self.pgs[port][pg].moves.load(Ordering::SeqCst)
    }

    /// What the frames of a PG wait for if all of them stand: if stuck queues hold as many cells as
    /// its account, which `held` reads. For the owner of its port, who alone charges it.
    pub(crate) fn all(
        &self,
        port: PortId,
        pg: PgId,
        held: impl FnOnce() -> Cells,
    ) -> Option<AllStuck> {
        self.pgs[port][pg].all(held)
    }
}

#[cfg(all(test, loom))]
mod interleavings;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn shares_of_all_holders_are_the_whole_frame_and_nothing_less_is() {
        for holders in [1, 3, 7, 63] {
            let mut sum = Share::default();
            (0..holders).for_each(|_| sum.add(Share::of(Cells(7), holders)));
            assert!(sum.is(Share::whole(Cells(7))), "{holders} holders");
            assert!(!sum.is(Share::whole(Cells(8))) && !sum.is(Share::whole(Cells(6))));
        }
        let mut some = Share::default();
        (0..62).for_each(|_| some.add(Share::of(Cells(63), 63)));
        assert!(!some.is(Share::whole(Cells(63))), "one copy is elsewhere");
        assert!(!Share::default().is(Share::whole(Cells(1))));
    }
}
