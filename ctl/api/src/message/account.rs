//! Replies about PGs, queues, marking, pools and watermarks. All sizes and levels in cells.

use super::port::DropCounts;
use super::profile::WatchdogView;
use holdfast_core::profile::{MarkAt, NotEct, WredSpec};
use serde::{Deserialize, Serialize};

/// The three segments of a PG's account, cells (SPEC 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segments {
    /// Of its own floor.
    pub guaranteed: u32,
    /// Borrowed from the pool.
    pub service: u32,
    /// In flight after XOFF.
    pub headroom: u32,
}

/// A high watermark in its two views (SPEC 3.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watermarks<T> {
    /// Since it was last cleared.
    pub user: T,
    /// Since the start.
    pub persistent: T,
}

/// The answer to `show_pg`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PgReply {
    /// Ports in order, PGs in order.
    pub pgs: Vec<PgStatus>,
}

/// One PG.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PgStatus {
    /// The port.
    pub port: String,
    /// The PG.
    pub pg: u8,
    /// Whether loss is forbidden.
    pub lossless: bool,
    /// Whether it is in XOFF now.
    pub xoff: bool,
    /// The pool it borrows from.
    pub pool: String,
    /// Priorities its XOFF pauses.
    pub priorities: Vec<u8>,
    /// Cells held now.
    pub occupancy: Segments,
    /// Levels and sizes in force.
    pub thresholds: PgThresholds,
    /// Highest occupancy of each segment.
    pub watermark: Watermarks<Segments>,
    /// Frames admitted.
    pub rx_frames: u64,
    /// Bytes admitted, without FCS.
    pub rx_bytes: u64,
    /// Times XOFF began.
    pub xoff_edges: u64,
    /// Times XOFF ended.
    pub xon_edges: u64,
    /// Frames refused, by reason.
    pub drops: DropCounts,
    /// Lossless frames lost: must stay 0.
    pub lossless_violations: u64,
}

/// Levels and sizes of a PG, cells; levels as SPEC 3.3 computes them from the limit of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PgThresholds {
    /// Size reserved to it.
    pub guaranteed: u32,
    /// Size for frames in flight.
    pub headroom: u32,
    /// What it may borrow now.
    pub limit: u32,
    /// XOFF as configured; `None` for "the limit".
    pub xoff: Option<u32>,
    /// XOFF now: the lower of XOFF and the limit.
    pub xoff_effective: u32,
    /// XON as configured.
    pub xon: u32,
    /// Resume level now (R of SPEC 3.3).
    pub resume: u32,
}

/// The answer to `show_queue`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueReply {
    /// Ports in order, queues in order.
    pub queues: Vec<QueueStatus>,
}

/// One egress queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// The port.
    pub port: String,
    /// The queue.
    pub queue: u8,
    /// Whether a received pause stops it now.
    pub paused: bool,
    /// Whether its port is held (`port_hold`).
    pub held: bool,
    /// `strict`, or its weight.
    pub service: String,
    /// Cells queued and in the TX ring.
    pub occupancy: u32,
    /// Frames waiting.
    pub frames: u64,
    /// Cells reserved to it.
    pub guarantee: u32,
    /// What lossy frames may fill beyond that now; `None` for no limit of its own.
    pub limit: Option<u32>,
    /// Highest occupancy.
    pub watermark: Watermarks<u32>,
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes sent, without FCS.
    pub tx_bytes: u64,
    /// Frames dropped, by reason.
    pub drops: DropCounts,
}

/// The answer to `show_ecn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EcnReply {
    /// Ports in order, queues in order.
    pub queues: Vec<EcnStatus>,
}

/// Marking of one queue (SPEC 5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EcnStatus {
    /// The port.
    pub port: String,
    /// The queue.
    pub queue: u8,
    /// The line; `None` where nothing is marked.
    pub wred: Option<WredView>,
    /// Depth now, cells: the average where one is configured.
    pub depth: u32,
    /// ECT made CE.
    pub marked: u64,
    /// Came as CE already.
    pub ce_passed: u64,
    /// Without ECT, dropped by WRED.
    pub wred_dropped: u64,
    /// Would have been marked, but has several copies (SPEC 3.5).
    pub mark_skipped: u64,
}

/// A marking line (SPEC 5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WredView {
    /// Nothing below, cells.
    pub kmin: u32,
    /// Everything from here on, cells.
    pub kmax: u32,
    /// Probability at `kmax`, 0..1.
    pub pmax: f64,
    /// `dequeue` or `enqueue`.
    pub mark_at: String,
    /// `drop` or `pass`.
    pub not_ect: String,
    /// Exponent n of the average's weight 1/2^n; 0 for none.
    pub ewma_weight: u8,
}

impl From<&WredSpec> for WredView {
    fn from(spec: &WredSpec) -> Self {
        let mark_at = match spec.mark_at {
            MarkAt::Dequeue => "dequeue",
            MarkAt::Enqueue => "enqueue",
        };
        let not_ect = match spec.not_ect {
            NotEct::Drop => "drop",
            NotEct::Pass => "pass",
        };
        Self {
            kmin: spec.kmin.0,
            kmax: spec.kmax.0,
            pmax: f64::from(spec.pmax.units()) / 65_536.0,
            mark_at: mark_at.to_owned(),
            not_ect: not_ect.to_owned(),
            ewma_weight: spec.ewma_shift,
        }
    }
}

/// The answer to `show_buffer`: pool use and each PG's limit side by side (SPEC 3.8).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BufferReply {
    /// Bytes a cell.
    pub cell_bytes: u32,
    /// All cells.
    pub total: u32,
    /// The ingress view of SPEC 3.1.
    pub ingress: IngressUse,
    /// The egress view.
    pub egress: EgressUse,
    /// Service pools.
    pub pools: Vec<PoolStatus>,
    /// The shared headroom pool; `None` where Headroom is private.
    pub headroom_pool: Option<PoolStatus>,
    /// Copies of flooded frames under way.
    pub flood_copies: u64,
    /// How many may be.
    pub flood_limit: u32,
    /// Chunks of frame memory.
    pub chunks: u64,
    /// Chunks that hold no frame and lie in no ring.
    pub free_chunks: u64,
    /// Of these, on their way home to the worker that has them free.
    pub returning_chunks: u64,
    /// Of these, lent to the receiving rings of ports.
    pub ring_chunks: u64,
    /// The rest: they hold frames in queues and in TX rings. With nothing queued this is 0, or
    /// memory has got lost.
    pub frame_chunks: i64,
}

/// How the total is divided at ingress, cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngressUse {
    /// Sum of PG Guaranteed.
    pub guaranteed: u32,
    /// Sum of Headroom.
    pub headroom: u32,
    /// Sum of Service pools.
    pub pools: u32,
    /// What no part claims.
    pub left_over: u32,
}

/// How the total is divided at egress, cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressUse {
    /// Sum of queue guarantees.
    pub guarantees: u32,
    /// What queues share.
    pub shared: u32,
    /// What no part claims.
    pub left_over: u32,
    /// Lent from the shared part now; lossless queues may exceed it (SPEC 3.5).
    pub lent: u64,
}

/// One pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// Its name.
    pub pool: String,
    /// Its size.
    pub size: u32,
    /// Lent now.
    pub lent: u32,
    /// Free now; negative after it was made smaller than what it had lent (SPEC 3.6).
    pub free: i64,
    /// Highest lent.
    pub watermark: Watermarks<u32>,
    /// The PGs that borrow from it, those with cells or lossless.
    pub pgs: Vec<PoolPg>,
}

/// One borrower of a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolPg {
    /// The port.
    pub port: String,
    /// The PG.
    pub pg: u8,
    /// Borrowed now.
    pub service: u32,
    /// What it may borrow now.
    pub limit: u32,
    /// Headroom in use.
    pub headroom: u32,
    /// Whether it is in XOFF.
    pub xoff: bool,
}

/// The answer to `watermark_show`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatermarkReply {
    /// PGs.
    pub pgs: Vec<PgWatermark>,
    /// Queues.
    pub queues: Vec<QueueWatermark>,
    /// Pools.
    pub pools: Vec<PoolWatermark>,
}

/// Watermarks of one PG.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PgWatermark {
    /// The port.
    pub port: String,
    /// The PG.
    pub pg: u8,
    /// Highest occupancy of each segment.
    pub watermark: Watermarks<Segments>,
}

/// Watermark of one queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueWatermark {
    /// The port.
    pub port: String,
    /// The queue.
    pub queue: u8,
    /// Highest occupancy.
    pub watermark: Watermarks<u32>,
}

/// Watermark of one pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolWatermark {
    /// The pool.
    pub pool: String,
    /// Highest lent.
    pub watermark: Watermarks<u32>,
}

/// The answer to `show_watchdog`: the queues that pauses can stop at ports with a watchdog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchdogReply {
    /// In the order of ports and queues.
    pub queues: Vec<WatchdogStatus>,
}

/// One watched queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchdogStatus {
    /// The port.
    pub port: String,
    /// The queue.
    pub queue: u8,
    /// What is watched for, and what is done.
    pub watchdog: WatchdogView,
    /// Whether a storm lasts.
    pub stormed: bool,
    /// For how long by now, ns; 0 without a storm.
    pub stormed_ns: u64,
    /// The time without a pause after which this storm is over: longer for one that repeats; the
    /// configured one without a storm.
    pub restoration_ns: u64,
    /// Storms that began.
    pub detected: u64,
    /// Storms that ended.
    pub restored: u64,
    /// Frames dropped because of storms.
    pub dropped_frames: u64,
}
