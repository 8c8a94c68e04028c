//! Replies about ports, classes, PFC and workers. Counters are u64, never go back, and start at
//! 0 with the process.

use holdfast_core::drop::DropCounters;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Frames dropped, by reason: every reason of SPEC 3.8 has its entry, also at 0.
pub type DropCounts = BTreeMap<String, u64>;

/// The core's drop counters as the API shows them.
pub fn drop_counts(counters: &DropCounters) -> DropCounts {
    counters.iter().map(|(reason, frames)| (reason.name().to_owned(), frames)).collect()
}

/// The answer to a call that has nothing to tell but that all workers have done it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {}

/// The answer to `preflight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreflightReply {
    /// Frames that the port's ring took.
    pub sent: u8,
}

/// The answer to `set_pg` and `set_wred`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetReply {
    /// Generation of the profile that now runs.
    pub generation: u64,
    /// What changed, one line each: `h1 pg 3 xoff: 4096 -> 5000 cells`.
    pub changed: Vec<String>,
}

/// The answer to `ping`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PongReply {
    /// The switch's name.
    pub name: String,
    /// Version of the dataplane.
    pub version: String,
    /// Process id of the dataplane.
    pub pid: u32,
    /// Since its start, ns.
    pub uptime_ns: u64,
    /// Generation of the profile that runs.
    pub generation: u64,
    /// The dataplane's clock, as in events, ns.
    pub now_ns: u64,
}

/// The answer to `segment`; the memory file comes beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentReply {
    /// Its size.
    pub bytes: u64,
    /// What its blocks look like: programs of the same layout understand each other's, hex.
    pub layout: String,
    /// Version of the dataplane.
    pub version: String,
}

/// The answer to `show_ports`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortsReply {
    /// In the order of the configuration.
    pub ports: Vec<PortStatus>,
    /// The worker threads.
    pub workers: Vec<WorkerStatus>,
}

/// Whether a port forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortState {
    /// It does.
    Up,
    /// Its link or netdev is gone, see `down_reason`.
    Down,
    /// `port hold`: it receives and sends nothing but PFC.
    Held,
}

/// How the XDP program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XdpMode {
    /// In the driver.
    Native,
    /// In the kernel's generic path.
    Generic,
    /// Not attached: the port is down.
    None,
}

/// Whether the peer obeys PFC (SPEC 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Peer {
    /// It was not paused long enough to be seen.
    Unknown,
    /// It stopped when it was told.
    Obeys,
    /// It went on: lossless can't hold for it.
    Deaf,
}

/// One port: link, rates, drops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortStatus {
    /// Its name.
    pub port: String,
    /// Whether it forwards.
    pub state: PortState,
    /// Why it is down.
    pub down_reason: Option<String>,
    /// The network namespace as configured; `None` for the switch's own.
    pub netns: Option<String>,
    /// The netdev.
    pub ifname: String,
    /// Declared speed, bit/s.
    pub speed_bits_per_second: u64,
    /// MTU, bytes.
    pub mtu: u16,
    /// The netdev's MAC: the source of our PFC frames.
    pub mac: String,
    /// How XDP is attached.
    pub xdp_mode: XdpMode,
    /// Whether the driver shares its memory with us.
    pub zero_copy: bool,
    /// RX queues bound.
    pub queues: u32,
    /// The worker that owns the port.
    pub worker: u8,
    /// The port it is wired to; `None` where the FDB decides.
    pub wire: Option<String>,
    /// Whether the peer obeys PFC.
    pub peer: Peer,
    /// What bring-up changed at the netdev or its peer, and what it couldn't reach.
    pub notes: Vec<String>,
    /// Frames received, MAC control not included.
    pub rx_frames: u64,
    /// Bytes received, without FCS.
    pub rx_bytes: u64,
    /// Frames sent, PFC not included.
    pub tx_frames: u64,
    /// Bytes sent, without FCS.
    pub tx_bytes: u64,
    /// Frames dropped, by reason: ingress reasons where it came in, egress reasons where it
    /// would have left.
    pub drops: DropCounts,
    /// Frames flooded, each counted once.
    pub flooded: u64,
    /// Frames that came in here and were handed to another worker.
    pub handovers: u64,
    /// Frames that the kernel lost because the RX or fill ring had no room (SPEC 4.3).
    pub receive_overrun: u64,
    /// Lossless frames lost: must stay 0.
    pub lossless_violations: u64,
    /// Frames waiting in the RX ring now.
    pub rx_backlog: u64,
    /// RX ring entries.
    pub rx_ring: u32,
    /// The RX backlog at which lossless priorities are paused, frames.
    pub rx_backlog_mark: u32,
    /// How long the worker may stall without loss, in smallest lossless frames at the declared
    /// speed, ns (SPEC 4.3).
    pub stall_survived_ns: u64,
    /// Bytes in the TX ring now.
    pub tx_in_ring_bytes: u64,
}

/// One worker thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// Its number.
    pub worker: u8,
    /// The core it is pinned to.
    pub cpu: Option<u32>,
    /// Ports it owns.
    pub ports: Vec<String>,
    /// Steps taken.
    pub steps: u64,
    /// Steps that found work.
    pub busy_steps: u64,
    /// Share of its time spent on frames since start, 0..1.
    pub busy_ratio: f64,
    /// The longest step, ns.
    pub longest_step_ns: u64,
    /// The longest time between two steps, ns.
    pub longest_gap_ns: u64,
    /// Frames handed to other workers.
    pub handovers: u64,
    /// Generation of the profile it runs.
    pub generation: u64,
}

/// The answer to `show_classify`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassifyReply {
    /// One entry a port.
    pub ports: Vec<ClassifyStatus>,
}

/// What a port received, by class (SPEC 2), and its maps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassifyStatus {
    /// The port.
    pub port: String,
    /// IP frames by DSCP: 64 counters.
    pub dscp_frames: Vec<u64>,
    /// Tagged frames by PCP: 8 counters.
    pub pcp_frames: Vec<u64>,
    /// Frames without IP and without a tag.
    pub unclassified_frames: u64,
    /// Frames by the CoS they were given: 8 counters.
    pub cos_frames: Vec<u64>,
    /// The maps in force.
    pub maps: ClassMapsView,
}

/// The maps of a port (SPEC 2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassMapsView {
    /// `dscp`, `pcp` or `port`.
    pub trust: String,
    /// CoS where nothing else decides.
    pub default_cos: u8,
    /// CoS of each DSCP: 64 entries.
    pub dscp_to_cos: Vec<u8>,
    /// CoS of each PCP: 8 entries.
    pub pcp_to_cos: Vec<u8>,
    /// PG of each CoS: 8 entries.
    pub cos_to_pg: Vec<u8>,
    /// Queue of each CoS: 8 entries.
    pub cos_to_queue: Vec<u8>,
    /// Queues that each priority pauses: 8 lists.
    pub priority_to_queues: Vec<Vec<u8>>,
}

/// The answer to `show_pfc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PfcReply {
    /// One entry a port.
    pub ports: Vec<PfcPort>,
    /// From the charge that decided XOFF to the kick that sent its frame (SPEC 4.1).
    pub xoff_reaction: Histogram,
}

/// PFC of one port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PfcPort {
    /// The port.
    pub port: String,
    /// The time our XOFF frames carry, quanta of 512 bit times.
    pub pause_quanta: u16,
    /// The same at the declared speed, ns.
    pub pause_ns: u64,
    /// MAC control frames without effect, by kind: `too_short`, `unknown_opcode`,
    /// `tagged`, `empty_vector`, `pause_not_enabled`.
    pub invalid: BTreeMap<String, u64>,
    /// 802.3x PAUSE frames obeyed, on ports with `link_pause`.
    pub link_pause_frames: u64,
    /// The eight priorities.
    pub priorities: Vec<PfcPriority>,
}

/// PFC of one priority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PfcPriority {
    /// 0..7.
    pub priority: u8,
    /// Whether pauses are sent and obeyed.
    pub enabled: bool,
    /// Why the peer is paused now: of `mmu`, `rx_backlog`, `admin`; empty if it isn't.
    pub causes: Vec<String>,
    /// Queues that a received pause stops.
    pub queues: Vec<u8>,
    /// What we sent.
    pub transmitted: PfcDirection,
    /// What we received.
    pub received: PfcDirection,
    /// Received for this priority though PFC isn't enabled on it: counted, not obeyed.
    pub not_enabled_frames: u64,
}

/// One direction of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PfcDirection {
    /// Frames that began a pause.
    pub xoff: u64,
    /// Frames that prolonged one.
    pub refresh: u64,
    /// Frames that ended one.
    pub xon: u64,
    /// Whether it is paused now.
    pub paused: bool,
    /// What is left of the pause, ns.
    pub remaining_ns: u64,
    /// Time spent paused, the present pause included, ns.
    pub paused_ns: u64,
    /// Times a pause began.
    pub transitions: u64,
}

/// A histogram of times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Events.
    pub count: u64,
    /// Their sum, ns.
    pub sum_ns: u64,
    /// The largest, ns.
    pub max_ns: u64,
    /// Events up to each bound, not cumulated, bounds ascending.
    pub buckets: Vec<HistogramBucket>,
}

/// One bucket of a [`Histogram`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramBucket {
    /// Upper bound, ns, inclusive; `None` for the last.
    pub up_to_ns: Option<u64>,
    /// Events in it.
    pub count: u64,
}
