//! What is in the blocks. Counters only grow while the process lives; occupancies are in cells,
//! times in ns of `CLOCK_MONOTONIC`.

use crate::words::{blocks, fingerprint};
use holdfast_core::counters::Traffic;
use holdfast_core::down::DownReason;
use holdfast_core::drop::DropCounters;
use holdfast_core::durations::Durations;
use holdfast_core::ids::{PerDscp, PerPcp, PerPg, PerPriority, PerQueue, MAX_POOLS};
use holdfast_core::link_errors::LinkError;
use holdfast_core::pfc::PauseCause;
use holdfast_wire::InvalidKind;

/// Bounds of a [`Times`], as powers of two of a microsecond: below 1 us, 2 us, ... and longer.
pub const TIME_BUCKETS: usize = Durations::BUCKETS;

blocks! {
    /// How often something took how long.
    Times {
        /// Those below 2^n us, in the bucket of the smallest n; the last also has all longer ones.
        below: [u64; TIME_BUCKETS],
        /// Sum of the times in ns.
        total: u64,
    }

    /// One PG of a port (SPEC 3.8).
    PgBlock {
        /// Cells in Guaranteed, Service and Headroom.
        occupancy: [u64; 3],
        /// The most there ever were since the start.
        watermark: [u64; 3],
        /// Whether it pauses its peer.
        xoff: bool,
        /// XOFF_eff of now, cells.
        xoff_threshold: u64,
        /// R of now, cells.
        resume: u64,
        /// The limit of now on Service, cells.
        limit: u64,
        /// Size of its Headroom, cells.
        headroom: u64,
        /// Frames admitted.
        admitted: Traffic,
        /// Frames refused.
        dropped: DropCounters,
        /// Times that it was suspected of a deadlock (SPEC 8).
        deadlocks_suspected: u64,
        /// Times that this ended.
        deadlocks_resolved: u64,
        /// Whether it is suspected now.
        suspected: bool,
    }

    /// One egress queue of a port.
    QueueBlock {
        /// Cells queued and in the TX ring.
        occupancy: u64,
        /// The most there ever were since the start.
        watermark: u64,
        /// Frames that left.
        transmitted: Traffic,
        /// Frames dropped here.
        dropped: DropCounters,
        /// ECT frames that became CE.
        marked: u64,
        /// Frames that were CE already.
        ce_passed: u64,
        /// Frames with copies, that are never marked.
        mark_skipped: u64,
        /// Storms that its watchdog detected.
        storms_detected: u64,
        /// Storms that ended.
        storms_restored: u64,
        /// Whether one lasts.
        stormed: bool,
    }

    /// PFC of one priority in one direction.
    PauseBlock {
        /// Frames that began a pause.
        xoff: u64,
        /// Frames that went on with one.
        refresh: u64,
        /// Frames that ended one.
        xon: u64,
        /// Time paused, a pause that still lasts included.
        paused_ns: u64,
        /// Pauses begun.
        transitions: u64,
        /// Whether it is paused now.
        paused: bool,
    }

    /// PFC of one priority.
    PriorityBlock {
        /// Why it should be paused now, in the order of [`PauseCause::ALL`].
        causes: [bool; PauseCause::ALL.len()],
        /// What we told the peer.
        transmitted: PauseBlock,
        /// What the peer told us.
        received: PauseBlock,
    }

    /// One port, published by the worker that owns it.
    PortBlock {
        /// When this copy was made.
        written_ns: u64,
        /// Whether its link is usable.
        up: bool,
        /// Data frames received.
        received: Traffic,
        /// Data frames sent.
        transmitted: Traffic,
        /// Drops by reason.
        dropped: DropCounters,
        /// Frames that the kernel lost because the worker was late.
        receive_overrun: u64,
        /// Lossless frames lost.
        lossless_violations: u64,
        /// Frames received that wait for the worker or for room.
        rx_backlog: u64,
        /// Whether the peer goes on sending what it was told to pause (SPEC 4.3).
        peer_deaf: bool,
        /// Frames received per DSCP.
        received_dscp: PerDscp<u64>,
        /// Frames received per PCP of the outer tag.
        received_pcp: PerPcp<u64>,
        /// MAC control frames without effect, in the order of [`InvalidKind::ALL`].
        invalid: [u64; InvalidKind::COUNT],
        /// From the charge that decided XOFF to the kick that sent its frame.
        xoff_reaction: Times,
        /// From the RX burst in which frames were taken to the kick that sent them here, sampled.
        forwarding_latency: Times,
        /// Its PGs.
        pgs: PerPg<PgBlock>,
        /// Its queues.
        queues: PerQueue<QueueBlock>,
        /// PFC.
        priorities: PerPriority<PriorityBlock>,
    }

    /// One worker.
    WorkerBlock {
        /// When this copy was made.
        written_ns: u64,
        /// Generation of the profile it runs.
        generation: u64,
        /// Steps taken.
        steps: u64,
        /// Steps that found work.
        busy_steps: u64,
        /// Time in those, in ns.
        busy_ns: u64,
        /// The share of the last whole second that those took, in millionths.
        busy_millionths: u64,
        /// How long a step took that found work.
        step_times: Times,
        /// Times it slept.
        sleeps: u64,
        /// Chunks of memory that lie free at it.
        free_chunks: u64,
    }

    /// One pool of cells.
    PoolBlock {
        /// Its size.
        size: u64,
        /// Cells lent.
        lent: u64,
        /// The most there ever were since the start.
        watermark: u64,
    }

    /// What all workers share, published by the first of them.
    SharedBlock {
        /// When this copy was made.
        written_ns: u64,
        /// Service pools by their number.
        pools: [PoolBlock; MAX_POOLS],
        /// The shared headroom pool; size 0 for none.
        headroom_pool: PoolBlock,
        /// The shared pool of the egress view.
        egress_pool: PoolBlock,
        /// Stations in the FDB.
        fdb_entries: u64,
    }

    /// The link of one port, published once a second by the thread that follows links.
    LinkBlock {
        /// Errors since the port was opened, in the order of [`LinkError::ALL`].
        errors: [u64; LinkError::COUNT],
        /// Why the port is down, in the order of [`DownReason::ALL`]; none of them where it is up.
        down: [bool; DownReason::COUNT],
    }

    /// What the control thread did.
    ControlBlock {
        /// Profiles put into force by `apply`.
        applies_accepted: u64,
        /// Profiles refused by `apply`; dry runs don't count.
        applies_refused: u64,
    }
}

/// Differs for programs that would not understand each other's blocks.
pub const LAYOUT: u64 = {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < DEFINITIONS.len() {
        hash = fingerprint(hash, DEFINITIONS[at].0, DEFINITIONS[at].1);
        at += 1;
    }
    hash
};
