//! Who waits for whom in one switch (SPEC 8): the edges from which `holdfast deadlock` makes the
//! waits-for graph of several.

use serde::{Deserialize, Serialize};

/// The answer to `show_waits`. The reply of another switch joins to it by the addresses: who
/// pauses a queue is the port with the address [`WaitsQueue::paused_by`], and there the PGs in XOFF
/// whose priorities the queue is paused by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitsReply {
    /// The switch's name.
    pub switch: String,
    /// Process id of the dataplane: names of switches on two machines may be the same.
    pub pid: u32,
    /// The dataplane's clock when it was asked, ns.
    pub now_ns: u64,
    /// All its ports.
    pub ports: Vec<WaitsPort>,
    /// The PGs in XOFF.
    pub pgs: Vec<WaitsPg>,
    /// The queues that hold frames of these.
    pub queues: Vec<WaitsQueue>,
}

/// A port and its address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitsPort {
    /// Its name.
    pub port: String,
    /// The source address of the PFC frames that it sends.
    pub mac: String,
}

/// A PG in XOFF: it pauses its peer until its frames have left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitsPg {
    /// Its port.
    pub port: String,
    /// Its number, 0..7.
    pub pg: u8,
    /// The priorities that it pauses.
    pub priorities: Vec<u8>,
    /// Cells that it holds.
    pub cells: u32,
    /// How long the peer has been paused without a gap, ns; 0 where PFC isn't enabled for it.
    pub paused_ns: u64,
    /// When it was suspected of a deadlock, ns of the dataplane's clock: from then on none of its
    /// frames has moved, and each queue below was paused for `detection_ns` before. `None` if it
    /// isn't suspected.
    pub suspected_at_ns: Option<u64>,
    /// What of it waits where. What is in a TX ring or between two workers is on its way, and in
    /// none of these.
    pub waits_for: Vec<WaitsHold>,
}

/// Frames of one PG in one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitsHold {
    /// The egress port.
    pub port: String,
    /// The queue, 0..7.
    pub queue: u8,
    /// Cells of them.
    pub cells: u32,
    /// How many.
    pub frames: u32,
}

/// A queue that holds frames of PGs in XOFF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitsQueue {
    /// The egress port.
    pub port: String,
    /// Its number, 0..7.
    pub queue: u8,
    /// Whether a received pause stops it.
    pub paused: bool,
    /// The priorities by which it is paused; all that stop it where 802.3x pauses the whole port.
    pub priorities: Vec<u8>,
    /// How long it has been paused with frames in it and sent none, ns; 0 if it isn't so.
    pub stands_ns: u64,
    /// After so long it counts as stuck, ns: `detection_time` of the port's watchdog, or 200 ms.
    pub detection_ns: u64,
    /// The source address of the last PFC or PAUSE frame that its port received; `None` if there
    /// was none since the link came up.
    pub paused_by: Option<String>,
}
