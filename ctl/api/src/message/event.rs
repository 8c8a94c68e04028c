//! Events of the bounded trace ring (SPEC 3.8): edges always, other kinds on request.

use serde::{Deserialize, Serialize};

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// XOFF or XON of a PG; always recorded.
    Edge,
    /// A pause by receive backlog began or ended (SPEC 4.3); always recorded.
    RxBacklog,
    /// A storm began or is over (SPEC 8); always recorded.
    Storm,
    /// A PG is suspected of a deadlock, or is no more (SPEC 8); always recorded.
    Deadlock,
    /// A PFC frame sent.
    PfcOut,
    /// A PFC frame received.
    PfcIn,
    /// A frame that WRED decided to mark.
    Mark,
    /// A frame dropped.
    Drop,
}

/// The answer to `trace`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceReply {
    /// In the order they happened, the rings of all workers merged by time.
    pub events: Vec<Event>,
    /// The cursor for the next call: one number a worker, of no other meaning.
    pub next: Vec<u64>,
    /// Events after the cursor that the rings had overwritten before this call.
    pub lost: u64,
    /// The kinds that are recorded now.
    pub recording: Vec<EventKind>,
}

/// Which way an edge goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// The PG went into XOFF.
    Xoff,
    /// It left XOFF.
    Xon,
}

/// One event; times are ns of the dataplane's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// XOFF or XON of a PG, with its account after the event.
    Edge {
        /// When.
        time_ns: u64,
        /// The port.
        port: String,
        /// The PG.
        pg: u8,
        /// Which way.
        edge: Edge,
        /// The cause of pause it belongs to (SPEC 3.3): `mmu`. Pauses by `rx_backlog` are
        /// events of their own, for they leave the PG's account alone.
        cause: String,
        /// Guaranteed in use, cells.
        guaranteed: u32,
        /// Service in use, cells.
        service: u32,
        /// Headroom in use, cells.
        headroom: u32,
        /// The limit then, cells.
        limit: u32,
        /// The resume level then, cells.
        resume: u32,
    },
    /// A pause by receive backlog began or ended (SPEC 4.3).
    RxBacklog {
        /// When.
        time_ns: u64,
        /// The port.
        port: String,
        /// The priorities.
        priorities: Vec<u8>,
        /// Whether it began.
        paused: bool,
    },
    /// A storm began or is over (SPEC 8).
    Storm {
        /// When.
        time_ns: u64,
        /// The port.
        port: String,
        /// Its queues: one event for all that storm at once.
        queues: Vec<u8>,
        /// Whether it began.
        begins: bool,
    },
    /// A PG is suspected of a deadlock, or is no more (SPEC 8).
    Deadlock {
        /// When.
        time_ns: u64,
        /// The port.
        port: String,
        /// The PG.
        pg: u8,
        /// The ports whose paused queues held all of its frames when it was suspected.
        waits_for: Vec<String>,
        /// Whether the suspicion began.
        begins: bool,
    },
    /// A PFC frame sent.
    PfcOut {
        /// When.
        time_ns: u64,
        /// The port.
        port: String,
        /// Priorities in the class-enable vector.
        priorities: Vec<u8>,
        /// Their eight times, quanta.
        quanta: [u16; 8],
    },
    /// A PFC frame received.
    PfcIn {
        /// When.
        time_ns: u64,
        /// The port.
        port: String,
        /// Priorities in the class-enable vector.
        priorities: Vec<u8>,
        /// Their eight times, quanta.
        quanta: [u16; 8],
    },
    /// A frame that WRED decided to mark.
    Mark {
        /// When.
        time_ns: u64,
        /// The egress port.
        port: String,
        /// The queue.
        queue: u8,
        /// The depth that decided, cells.
        depth: u32,
        /// Whether it became CE; `false` where WRED decided to mark and couldn't.
        marked: bool,
    },
    /// A frame dropped.
    Drop {
        /// When.
        time_ns: u64,
        /// The port that counts it.
        port: String,
        /// Why (SPEC 3.8).
        reason: String,
        /// Its PG, where it was refused at ingress.
        pg: Option<u8>,
        /// Its queue, where it was dropped at egress.
        queue: Option<u8>,
        /// Its length, bytes without FCS.
        bytes: u32,
    },
}

impl Event {
    /// Its kind.
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::Edge { .. } => EventKind::Edge,
            Self::RxBacklog { .. } => EventKind::RxBacklog,
            Self::Storm { .. } => EventKind::Storm,
            Self::Deadlock { .. } => EventKind::Deadlock,
            Self::PfcOut { .. } => EventKind::PfcOut,
            Self::PfcIn { .. } => EventKind::PfcIn,
            Self::Mark { .. } => EventKind::Mark,
            Self::Drop { .. } => EventKind::Drop,
        }
    }
}
