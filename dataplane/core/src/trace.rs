//! The bounded record of what happened: edges always, the rest on request (SPEC 3.8).
//!
//! Each worker has its own ring and is its only writer; the control plane merges by time.

use crate::drop::DropReason;
use crate::ids::{PgId, PortId, PrioritySet, QueueId, QueueSet};
use crate::mmu::Edge;
use crate::topology::PortSet;
use crate::units::{Cells, FrameLen, Time};

/// Kinds of events, as bits of the mask that chooses what is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceMask(pub u8);

impl TraceMask {
    /// XOFF and XON edges, backlog, storms and suspected deadlocks: always recorded.
    pub const EDGES: Self = Self(1);
    /// PFC and PAUSE frames, both directions.
    pub const PFC: Self = Self(2);
    /// WRED decisions that marked, with their depth.
    pub const MARKS: Self = Self(4);
    /// Drops.
    pub const DROPS: Self = Self(8);

    /// Whether all kinds of `other` are in it.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both; edges are never left out.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0 | Self::EDGES.0)
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A PG entered or left XOFF by the MMU.
    Edge(Edge),
    /// A priority's pause by receive backlog began (`true`) or ended.
    RxBacklog(PrioritySet, bool),
    /// A storm of these queues began (`true`) or is over (SPEC 8).
    Storm(QueueSet, bool),
    /// A PG is suspected of a deadlock, or is no more (SPEC 8).
    Deadlock {
        /// The PG.
        pg: PgId,
        /// The ports whose paused queues held all of its frames when it was suspected.
        ports: PortSet,
        /// Whether the suspicion began.
        begins: bool,
    },
    /// A PFC frame went out.
    PfcOut {
        /// The class-enable vector.
        enable: PrioritySet,
        /// The times, by priority; 0 resumes.
        quanta: [u16; 8],
    },
    /// A PFC frame came in.
    PfcIn {
        /// The class-enable vector.
        enable: PrioritySet,
        /// The times, by priority; 0 resumes.
        quanta: [u16; 8],
    },
    /// A frame was marked at this depth.
    Mark {
        /// The queue.
        queue: QueueId,
        /// The depth that decided.
        depth: Cells,
        /// Whether it became CE; `false` where WRED decided to mark, and couldn't.
        marked: bool,
    },
    /// A frame was dropped.
    Drop {
        /// Why.
        reason: DropReason,
        /// Its PG where the drop is at ingress.
        pg: Option<PgId>,
        /// Its queue where the drop is at egress.
        queue: Option<QueueId>,
        /// Its length.
        len: FrameLen,
    },
}

impl EventKind {
    const fn mask(&self) -> TraceMask {
        match self {
            Self::Edge(_) | Self::RxBacklog(..) | Self::Storm(..) | Self::Deadlock { .. } => {
                TraceMask::EDGES
            }
            Self::PfcOut { .. } | Self::PfcIn { .. } => TraceMask::PFC,
            Self::Mark { .. } => TraceMask::MARKS,
            Self::Drop { .. } => TraceMask::DROPS,
        }
    }
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, by the clock of `Worker::step`.
    pub time: Time,
    /// The port it concerns.
    pub port: PortId,
    /// What.
    pub kind: EventKind,
}

/// A ring of the latest events of one worker.
#[derive(Debug)]
pub struct Trace {
    events: Vec<Event>,
    capacity: usize,
    written: u64,
    mask: TraceMask,
}

impl Trace {
    /// A ring that keeps the latest `capacity` events (at least 1); edges only at first.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self { events: Vec::with_capacity(capacity), capacity, written: 0, mask: TraceMask::EDGES }
    }

    /// Chooses what is recorded from now on.
    pub fn set_mask(&mut self, mask: TraceMask) {
        self.mask = mask.with(TraceMask::EDGES);
    }

    /// What is recorded now.
    pub const fn mask(&self) -> TraceMask {
        self.mask
    }

    /// Whether events of this kind are recorded.
    #[inline]
    pub const fn wants(&self, mask: TraceMask) -> bool {
        self.mask.has(mask)
    }

    /// Records an event, unless its kind isn't wanted; overwrites the oldest when full.
    #[inline]
    pub fn record(&mut self, time: Time, port: PortId, kind: EventKind) {
        if !self.mask.has(kind.mask()) {
            return;
        }
        let event = Event { time, port, kind };
        if self.events.len() < self.capacity {
            self.events.push(event);
        } else {
            let at = (self.written % self.capacity as u64) as usize;
            self.events[at] = event;
        }
        self.written += 1;
    }

    /// Events ever written.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Events from number `since` on, oldest first, and the number of the first of them: larger
    /// than `since` where older ones were overwritten.
    pub fn since(&self, since: u64) -> (u64, impl Iterator<Item = &Event>) {
        let oldest = self.written - self.events.len() as u64;
        let first = since.clamp(oldest, self.written);
        let range = first..self.written;
        (first, range.map(move |n| &self.events[(n % self.capacity as u64) as usize]))
    }
}
