//! What a port's owner counts (SPEC 3.8). Plain words: each has one writer.

use crate::drop::DropCounters;
use crate::ids::{PerCos, PerDscp, PerPcp, PerPg, PerQueue};

/// Frames and their bytes, without FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames.
    pub frames: u64,
    /// Bytes from destination MAC to the last payload byte.
    pub bytes: u64,
}

impl Traffic {
    /// Counts one frame.
    #[inline]
    pub fn count(&mut self, bytes: u64) {
        self.frames += 1;
        self.bytes += bytes;
    }
}

/// What one PG's ingress side counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PgCounters {
    /// Frames admitted.
    pub admitted: Traffic,
    /// Frames refused by the MMU: `headroom_overflow` or `lossy_ingress`.
    pub dropped: DropCounters,
    /// Bytes of those.
    pub dropped_bytes: u64,
}

/// What one egress queue counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Frames that left.
    pub transmitted: Traffic,
    /// Frames dropped here, by reason.
    pub dropped: DropCounters,
    /// ECT frames that became CE.
    pub marked: u64,
    /// Frames that were CE already when they would have been marked.
    pub ce_passed: u64,
    /// Frames that would have been marked, but are one of several copies.
    pub mark_skipped: u64,
}

/// What one port counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Data frames received, MAC control excluded.
    pub received: Traffic,
    /// Data frames sent, MAC control excluded.
    pub transmitted: Traffic,
    /// Drops by reason, wherever they happened: ingress reasons at the ingress port, egress
    /// reasons at the egress port.
    pub dropped: DropCounters,
    /// Frames received per DSCP.
    pub received_dscp: PerDscp<u64>,
    /// Frames received per PCP of the outer tag.
    pub received_pcp: PerPcp<u64>,
    /// Frames per CoS, as classified.
    pub received_cos: PerCos<u64>,
    /// Frames that found neither IP nor a tag.
    pub received_unclassed: u64,
    /// Flooded frames, each counted once.
    pub flooded: u64,
    /// Frames whose source didn't fit into the FDB.
    pub fdb_full: u64,
    /// Stations that were known elsewhere and moved to this port.
    pub fdb_moves: u64,
    /// Frames handed over to another worker.
    pub handed_over: u64,
    /// Per PG.
    pub pgs: PerPg<PgCounters>,
    /// Per queue.
    pub queues: PerQueue<QueueCounters>,
    /// Frames that the kernel lost because the worker was late (SPEC 4.3).
    pub receive_overrun: u64,
    /// Lossless frames lost: `headroom_overflow` and receive overrun (SPEC 3.5). Must stay 0.
    pub lossless_violations: u64,
}
