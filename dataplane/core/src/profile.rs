//! The profile that workers run: immutable, in cells, valid or non-existent (DESIGN 3 and law 6).
//!
//! [`ProfileSpec`] is plain data; [`Profile::new`] checks it whole and is the only way to a
//! [`Profile`]. Documents, units and defaults belong to the crates `api` and `plan`.

use crate::ids::{
    Cos, PerCos, PerDscp, PerPcp, PerPg, PerPriority, PerQueue, PgId, PoolId, PortId, PrioritySet,
    QueueId, QueueSet, MAX_POOLS,
};
use crate::units::{Alpha, BitRate, CellSize, Cells, Nanos, Prob16, Quanta, MAX_SEGMENT_CELLS};

mod check;
pub use check::ProfileError;

/// Bytes that an Ethernet header and three VLAN tags add to the MTU: the largest frame.
pub const FRAME_OVERHEAD: u16 = 14 + 12;

/// A dynamic or static bound on what may be borrowed (SPEC 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many cells.
    Static(Cells),
    /// alpha times the free cells of the pool.
    Dynamic(Alpha),
}

/// Where XOFF lies on a PG's Service occupancy (SPEC 3.3): a watermark, it holds no buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xoff {
    /// At so many cells, or at the limit where that is lower.
    At(Cells),
    /// At the limit of now (what SAI and SONiC mean).
    AtLimit,
}

/// How far below XOFF a PG resumes (SPEC 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xon {
    /// AC5P: an offset; resume at XOFF - XON.
    Offset(Cells),
    /// A level; resume at XON.
    Absolute(Cells),
}

/// The account of one PG: sizes and watermarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PgSpec {
    /// Whether loss is forbidden.
    pub lossless: bool,
    /// Size reserved to this PG.
    pub guaranteed: Cells,
    /// Size for frames in flight after XOFF; 0 for a lossy PG. A cap if `headroom_pool`.
    pub headroom: Cells,
    /// Whether Headroom comes from the shared headroom pool (SAI XOFF_SIZE) and not from its own.
    pub headroom_pool: bool,
    /// The pool it borrows Service from.
    pub pool: PoolId,
    /// How much it may borrow.
    pub limit: Limit,
    /// When to pause.
    pub xoff: Xoff,
    /// When to resume.
    pub xon: Xon,
    /// The resume level is never lower than this (SAI XON_TH), except as SPEC 3.3 bounds it.
    pub xon_floor: Cells,
    /// The priorities that XOFF of this PG pauses, as far as PFC is enabled on them.
    pub priorities: PrioritySet,
}

/// WRED of one queue (SPEC 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WredSpec {
    /// Below this depth nothing is marked.
    pub kmin: Cells,
    /// From this depth on everything is marked.
    pub kmax: Cells,
    /// The probability that the line reaches just below `kmax`.
    pub pmax: Prob16,
    /// Where the depth is taken.
    pub mark_at: MarkAt,
    /// What happens to frames that are not ECN-capable, on lossy queues.
    pub not_ect: NotEct,
    /// The average's weight as 1/2^n; 0 means the depth of now.
    pub ewma_shift: u8,
}

/// Where WRED decides (SPEC 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkAt {
    /// Before the frame leaves, itself included.
    Dequeue,
    /// After the frame has joined.
    Enqueue,
}

/// What WRED does to a frame without ECT (SPEC 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotEct {
    /// Drop it with the marking probability.
    Drop,
    /// Let it pass.
    Pass,
}

/// How a queue is served (SPEC 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Before all weighted queues; among strict ones the higher number first.
    Strict,
    /// By this share of bytes among weighted queues; at least 1.
    Weight(u16),
}

/// One egress queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// Cells reserved to it in the egress view.
    pub guarantee: Cells,
    /// What a lossy frame may fill beyond the guarantee; `None` for no limit of its own.
    pub limit: Option<Limit>,
    /// Marking; `None` for none.
    pub wred: Option<WredSpec>,
    /// Strict or weighted.
    pub service: Service,
    /// Served first until it has had this rate.
    pub min_rate: Option<BitRate>,
    /// Never faster than this.
    pub max_rate: Option<BitRate>,
}

/// What a port believes of a frame (SPEC 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// DSCP; PCP for what isn't IP, then the default.
    Dscp,
    /// PCP if tagged, then the default.
    Pcp,
    /// Nothing: the default CoS.
    Port,
}

/// The maps of one port (SPEC 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassMaps {
    /// What the port believes.
    pub trust: Trust,
    /// The CoS where nothing else decides.
    pub default_cos: Cos,
    /// DSCP to CoS.
    pub dscp_to_cos: PerDscp<Cos>,
    /// PCP to CoS.
    pub pcp_to_cos: PerPcp<Cos>,
    /// CoS to PG, used where the port is ingress.
    pub cos_to_pg: PerCos<PgId>,
    /// CoS to queue, used where the port is egress.
    pub cos_to_queue: PerCos<QueueId>,
    /// The queues that a received pause of a priority stops.
    pub priority_to_queues: PerPriority<QueueSet>,
}

/// How a paused peer is let go (SPEC 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// By a frame with time 0.
    Xon,
    /// By no longer refreshing: the time runs out.
    Expire,
}

/// PFC of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcSpec {
    /// Priorities that are paused and whose pauses are obeyed.
    pub enabled: PrioritySet,
    /// The time that XOFF frames carry.
    pub quanta: Quanta,
    /// How a pause ends.
    pub resume: Resume,
    /// 802.3x PAUSE is obeyed for the whole port; excludes PFC.
    pub link_pause: bool,
    /// RX backlog in frames above which lossless priorities are paused (SPEC 4.3).
    pub rx_backlog_mark: u32,
}

/// Everything a profile says of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// The declared speed: quanta and shaper count by it.
    pub speed: BitRate,
    /// The MTU: a frame may be [`FRAME_OVERHEAD`] longer.
    pub mtu: u16,
    /// Classification.
    pub maps: ClassMaps,
    /// The eight accounts.
    pub pgs: PerPg<PgSpec>,
    /// The eight queues.
    pub queues: PerQueue<QueueSpec>,
    /// PFC.
    pub pfc: PfcSpec,
    /// Bytes that may be in the TX ring at once (SPEC 4.2).
    pub tx_inflight: u32,
    /// How late the port may be and still catch up at more than its speed (SPEC 6).
    pub catch_up: Nanos,
    /// Its watchdog; `None` for none.
    pub watchdog: Option<WatchdogSpec>,
}

impl PortSpec {
    /// The queues that a watchdog watches: those that a pause can stop.
    pub fn pausable_queues(&self) -> QueueSet {
        let queues = self.pfc.enabled.iter().map(|priority| self.maps.priority_to_queues[priority]);
        queues.fold(QueueSet::EMPTY, QueueSet::or)
    }
}

impl PortSpec {
    /// The place of a port that isn't there now: nothing is reserved to it, lossless or paused.
    pub fn vacant() -> Self {
        let pg = PgSpec {
            lossless: false,
            guaranteed: Cells::ZERO,
            headroom: Cells::ZERO,
            headroom_pool: false,
            pool: PoolId::default(),
            limit: Limit::Static(Cells::ZERO),
            xoff: Xoff::AtLimit,
            xon: Xon::Offset(Cells(1)),
            xon_floor: Cells::ZERO,
            priorities: PrioritySet::EMPTY,
        };
        let queue = QueueSpec {
            guarantee: Cells::ZERO,
            limit: Some(Limit::Static(Cells::ZERO)),
            wred: None,
            service: Service::Weight(1),
            min_rate: None,
            max_rate: None,
        };
        let mtu = 1500;
        Self {
            speed: BitRate::gigabits(1),
            mtu,
            maps: ClassMaps {
                trust: Trust::Port,
                default_cos: Cos::default(),
                dscp_to_cos: PerDscp::from_fn(|_| Cos::default()),
                pcp_to_cos: PerPcp::from_fn(|_| Cos::default()),
                cos_to_pg: PerCos::from_fn(|_| PgId::default()),
                cos_to_queue: PerCos::from_fn(|_| QueueId::default()),
                priority_to_queues: PerPriority::from_fn(|_| QueueSet::EMPTY),
            },
            pgs: PerPg::from_fn(|_| pg),
            queues: PerQueue::from_fn(|_| queue),
            pfc: PfcSpec {
                enabled: PrioritySet::EMPTY,
                quanta: Quanta(u16::MAX),
                resume: Resume::Xon,
                link_pause: false,
                rx_backlog_mark: 256,
            },
            tx_inflight: 2 * u32::from(mtu + FRAME_OVERHEAD),
            catch_up: Nanos::millis(2),
            watchdog: None,
        }
    }

    /// The longest frame the port takes: MTU + 14 + 12 bytes of tags (SPEC 3.3).
    pub const fn largest_frame(&self) -> u16 {
        self.mtu.saturating_add(FRAME_OVERHEAD)
    }
}

/// What the watchdog does about a stormed queue (SPEC 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchdogAction {
    /// Its frames are dropped, those that wait and those that come.
    Drop,
    /// The pause is ignored.
    Forward,
    /// It is only told.
    Alert,
}

/// The watchdog of a port's pausable queues (SPEC 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchdogSpec {
    /// Paused and stalled for so long is a storm.
    pub detection_time: Nanos,
    /// It is over after so long without a pause.
    pub restoration_time: Nanos,
    /// What is done meanwhile.
    pub action: WatchdogAction,
    /// Whether storms that repeat double the restoration time.
    pub back_off: bool,
}

/// A profile as plain data: what `plan` makes, and what [`Profile::new`] checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileSpec {
    /// Its name.
    pub name: String,
    /// The cell's size.
    pub cell: CellSize,
    /// All cells there are; both views of SPEC 3.1 are checked against it.
    pub total: Cells,
    /// Names and sizes of the Service pools, the lossless one first by custom.
    pub pools: Vec<(String, Cells)>,
    /// The shared headroom pool's size; 0 for none.
    pub headroom_pool: Cells,
    /// What queues share beyond their guarantees.
    pub egress_shared: Cells,
    /// Copies of flooded frames that may be under way at once.
    pub flood_limit: u32,
    /// The ports, in the order of their ids.
    pub ports: Vec<PortSpec>,
}

/// A valid profile. Shared between workers as `Arc<Profile>`; a change is a new one.
#[derive(Debug)]
pub struct Profile {
    generation: u64,
    spec: ProfileSpec,
}

impl Profile {
    /// Checks `spec` whole.
    ///
    /// # Errors
    /// The first thing that is wrong, with its numbers; see [`ProfileError`].
    pub fn new(generation: u64, spec: ProfileSpec) -> Result<Self, ProfileError> {
        check::check(&spec)?;
        Ok(Self { generation, spec })
    }

    /// Which change made it; later is larger.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// All of it as data.
    pub const fn spec(&self) -> &ProfileSpec {
        &self.spec
    }

    /// What it says of a port; `None` for a port it doesn't have.
    #[inline]
    pub fn port(&self, port: PortId) -> Option<&PortSpec> {
        self.spec.ports.get(port.index())
    }

    /// Bytes a cell.
    #[inline]
    pub const fn cell(&self) -> CellSize {
        self.spec.cell
    }

    /// The size of a Service pool; 0 for one it doesn't have.
    #[inline]
    pub fn pool_size(&self, pool: PoolId) -> Cells {
        self.spec.pools.get(pool.index()).map_or(Cells::ZERO, |(_, size)| *size)
    }
}
