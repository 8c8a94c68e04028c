//! XOFF and XON edges, and how the port's owner learns of them (SPEC 3.3).

use super::account::Word;
use super::limits::Levels;
use super::{DropReason, Mmu, PgId, PortId, PrioritySet, Profile, Site};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::units::Cells;

/// Which way an edge goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// The PG began to pause its peer.
    Xoff,
    /// The PG let its peer go.
    Xon,
}

/// One edge, as the compare-and-swap that made it saw the PG (SPEC 3.8). The caller adds the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The ingress port.
    pub port: PortId,
    /// The priority group.
    pub pg: PgId,
    /// Which way.
    pub kind: EdgeKind,
    /// Occupancy of Guaranteed right after the edge, as the other two.
    pub guaranteed: Cells,
    /// Occupancy of Service.
    pub service: Cells,
    /// Occupancy of Headroom.
    pub headroom: Cells,
    /// The limit on Service that the decision used.
    pub limit: Cells,
    /// R: the resume level at that limit.
    pub resume: Cells,
    /// XOFF_eff: the pause level at that limit.
    pub xoff: Cells,
}

/// A PG "may be in XOFF": one bit each.
const XOFF: u32 = 0xff;
/// "An edge happened."
const WORK: u32 = 1 << 8;

/// What the workers tell the port's owner.
#[derive(Debug)]
pub(super) struct PortEdges(AtomicU32);

impl PortEdges {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }
}

impl Site<'_> {
    /// Reports an edge that this worker's compare-and-swap has made: the port's bits after it, so
    /// that the owner, who clears a bit before it reads the account, can't miss it.
    #[cold]
    pub(super) fn announce(
        &self,
        kind: EdgeKind,
        word: Word,
        free: Cells,
        edge: &mut impl FnMut(Edge),
    ) {
        let bits = if kind == EdgeKind::Xoff { WORK | 1 << self.pg.index() } else { WORK };
        self.mmu.port(self.port).edges.0.fetch_or(bits, Ordering::AcqRel);
        let Levels { limit, xoff, resume } = Levels::at(self.spec, free);
        edge(Edge {
            port: self.port,
            pg: self.pg,
            kind,
            guaranteed: word.guaranteed(),
            service: word.service(),
            headroom: word.headroom(),
            limit,
            resume,
            xoff,
        });
    }
}

impl Mmu {
    /// Whether a PG of `port` had an edge since the last call. For the port's owner, who reads the
    /// level ([`Mmu::pfc_level`]) after it. Costs a load when there was none.
    #[inline]
    pub fn take_work(&self, port: PortId) -> bool {
        let bits = &self.port(port).edges.0;
        if bits.load(Ordering::Acquire) & WORK == 0 {
            return false;
        }
        bits.fetch_and(!WORK, Ordering::AcqRel);
        true
    }

    /// Whether the PG is in XOFF.
    #[inline]
    pub fn in_xoff(&self, port: PortId, pg: PgId) -> bool {
        self.account(port, pg).word.load().in_xoff()
    }

    /// The PGs of `port` that are in XOFF, a bit each. For the port's owner in each step; costs a
    /// load when there is none.
    #[inline]
    pub fn xoff_set(&self, port: PortId) -> u8 {
        let bits = self.port(port).edges.0.load(Ordering::Acquire) & XOFF;
        if bits == 0 {
            return 0;
        }
        PgId::all()
            .filter(|pg| bits & 1 << pg.index() != 0 && self.still_in_xoff(port, *pg))
            .fold(0, |set, pg| set | 1 << pg.index())
    }

    /// Clears the bit of a PG that has left XOFF. Whoever enters XOFF sets the bit after the
    /// account: it comes after our clearing and stays, or before and our second look sees it.
    fn still_in_xoff(&self, port: PortId, pg: PgId) -> bool {
        if self.in_xoff(port, pg) {
            return true;
        }
        let bit = 1 << pg.index();
        let edges = &self.port(port).edges.0;
        edges.fetch_and(!bit, Ordering::AcqRel);
        let again = self.in_xoff(port, pg);
        if again {
            edges.fetch_or(bit, Ordering::AcqRel);
        }
        again
    }

    /// The priorities that `port` must pause because of its PGs: those of PGs in XOFF, as far as
    /// PFC is enabled on them (SPEC 3.3). PFC frames are built from this level, not from edges.
    pub fn pfc_level(&self, profile: &Profile, port: PortId) -> PrioritySet {
        let Some(spec) = profile.port(port) else { return PrioritySet::EMPTY };
        let paused = PgId::all().filter(|pg| spec.pgs[*pg].lossless && self.in_xoff(port, *pg));
        let priorities = paused.fold(PrioritySet::EMPTY, |set, pg| set.or(spec.pgs[pg].priorities));
        priorities.and(spec.pfc.enabled)
    }
}

/// Why a PG refuses a frame.
#[inline]
pub(super) const fn refusal(lossless: bool) -> DropReason {
    if lossless {
        DropReason::HeadroomOverflow
    } else {
        DropReason::LossyIngress
    }
}
