//! What the machine gives the switch, read at the time of the call: `lint --live` judges it.

use super::port::XdpMode;
use serde::{Deserialize, Serialize};

/// The answer to `show_host`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReply {
    /// One entry a port.
    pub ports: Vec<HostPort>,
    /// All worker threads, whatever port was asked for.
    pub workers: Vec<HostWorker>,
}

/// One port and the netdev below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPort {
    /// The port.
    pub port: String,
    /// The network namespace as configured; `None` for the switch's own.
    pub netns: Option<String>,
    /// The netdev's name.
    pub ifname: String,
    /// How XDP was attached.
    pub xdp_mode: XdpMode,
    /// RX queues bound.
    pub queues: u32,
    /// The worker that owns the port.
    pub worker: u8,
    /// How long no frame of a lossless class has come in or left, ns; since the start of the switch
    /// where there was none. Looked at once a second.
    pub lossless_idle_ns: u64,
    /// The netdev's settings; `None` where they couldn't be read, see `unread`.
    pub netdev: Option<HostNetdev>,
    /// Why they couldn't be read.
    pub unread: Option<String>,
}

/// Settings of a netdev that others may change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostNetdev {
    /// The driver; empty where it doesn't say.
    pub driver: String,
    /// Whether NICs of this driver may keep PFC frames to themselves (SPEC 9).
    pub may_keep_pfc: bool,
    /// Offloads that are on and ought to be off, by the names of `ethtool -k`.
    pub offloads: Vec<String>,
    /// RX queues that frames can come in on.
    pub channels: u32,
    /// The speed of its wire, bit/s; `None` where there is no wire (veth, tap) or no link.
    pub link_bits_per_second: Option<u64>,
    /// The other end of a veth; `None` for what isn't one.
    pub peer: Option<HostPeer>,
}

/// The other end of a veth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPeer {
    /// Whether it could be looked at: it may be in a namespace that can't be entered from here.
    pub reached: bool,
    /// Offloads that are on there and ought to be off.
    pub offloads: Vec<String>,
}

/// How the kernel schedules one worker thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostWorker {
    /// Its number.
    pub worker: u8,
    /// The kernel's number of its thread, as `chrt` and `taskset` take it; `None` before it runs.
    pub thread: Option<u32>,
    /// Ports it owns.
    pub ports: Vec<String>,
    /// Cores it may run on; empty where the kernel doesn't say.
    pub cpus: Vec<u32>,
    /// `other`, `batch`, `idle`, `fifo`, `rr`, `deadline` or `unknown` (sched(7)).
    pub policy: String,
    /// Real-time priority, 1..99; 0 for none.
    pub priority: u32,
}
