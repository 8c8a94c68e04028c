//! Egress scheduling of one port (SPEC 6): which queue sends next, and when.
//!
//! [`Scheduler`] chooses among queues, [`Shaper`] holds a rate, [`Pacer`] bounds what lies in the
//! TX ring, so that the queue lives in the MMU (DESIGN law 4).

mod dwrr;
pub mod pacer;
pub mod shaper;

use crate::ids::{PerQueue, QueueId, QueueSet};
use crate::profile::{PortSpec, Service};
use crate::units::{FrameLen, Time};
use dwrr::Dwrr;

pub use pacer::Pacer;
pub use shaper::Shaper;

/// Strict priority, DWRR and per-queue rates of one port. Owned by the port's worker.
///
/// Order: queues below their `min_rate` first, the one that waits longest of them; then strict
/// queues, the higher number first; then weighted ones by bytes. A queue at its `max_rate` waits
/// whatever it is. Rates count wire bytes as the port's speed does, so that they can be added up
/// against it; weights share frame bytes.
#[derive(Debug)]
pub struct Scheduler {
    strict: u8,
    weighted: Dwrr,
    floored: u8,
    floors: PerQueue<Shaper>,
    capped: u8,
    caps: PerQueue<Shaper>,
}

impl Scheduler {
    /// A scheduler that has sent nothing yet.
    pub fn new(port: &PortSpec) -> Self {
        let idle = || PerQueue::from_fn(|_| Shaper::new(port.speed, port.catch_up));
        let mut scheduler = Self {
            strict: 0,
            weighted: Dwrr::new(),
            floored: 0,
            floors: idle(),
            capped: 0,
            caps: idle(),
        };
        scheduler.adopt(port);
        scheduler
    }

    /// Takes over a changed profile; what was sent so far keeps counting.
    pub fn adopt(&mut self, port: &PortSpec) {
        (self.strict, self.floored, self.capped) = (0, 0, 0);
        for (queue, spec) in port.queues.iter() {
            let bit = QueueSet::only(queue).0;
            if spec.service == Service::Strict {
                self.strict |= bit;
            }
            if let Some(rate) = spec.min_rate {
                self.floored |= bit;
                self.floors[queue].adopt(rate, port.catch_up);
            }
            if let Some(rate) = spec.max_rate {
                self.capped |= bit;
                self.caps[queue].adopt(rate, port.catch_up);
            }
        }
        self.weighted.adopt(&PerQueue::from_fn(|queue| match port.queues[queue].service {
            Service::Strict => 0,
            Service::Weight(weight) => weight,
        }));
    }

    /// The queue that sends next, of `ready` ones: those that hold a frame and may send it.
    /// `None` if `ready` is empty or `max_rate` holds all of it back.
    ///
    /// Asked again with the same arguments it answers the same; only
    /// [`charge`](Self::charge) moves on.
    #[inline]
    pub fn pick(
        &mut self,
        now: Time,
        ready: QueueSet,
        head_len: impl Fn(QueueId) -> FrameLen,
    ) -> Option<QueueId> {
        let open = ready.0 & !self.held_back(now);
        let floored = open & self.floored;
        if floored != 0 {
            if let Some(queue) = self.below_floor(QueueSet(floored), now) {
                return Some(queue);
            }
        }
        let strict = open & self.strict;
        if strict != 0 {
            return QueueId::new(strict.ilog2() as u8);
        }
        self.weighted.pick(open, head_len)
    }

    /// A frame of `queue` was handed to the port.
    #[inline]
    pub fn charge(&mut self, queue: QueueId, len: FrameLen, now: Time) {
        let bit = QueueSet::only(queue).0;
        if self.strict & bit == 0 {
            self.weighted.charge(queue, len);
        }
        if self.floored & bit != 0 {
            self.floors[queue].charge_no_lead(len.on_wire(), now);
        }
        if self.capped & bit != 0 {
            self.caps[queue].charge(len.on_wire(), now);
        }
    }

    /// `queue` holds no frame any more: it saves nothing up for later.
    #[inline]
    pub fn emptied(&mut self, queue: QueueId) {
        self.weighted.emptied(queue);
    }

    /// When [`pick`](Self::pick) can answer at the earliest: `now` if it would now, the first end
    /// of a wait if `max_rate` holds all of `ready` back, never if `ready` is empty.
    pub fn deadline(&self, now: Time, ready: QueueSet) -> Time {
        if ready.is_empty() {
            return Time::NEVER;
        }
        if ready.0 & !self.held_back(now) != 0 {
            return now;
        }
        ready.iter().map(|queue| self.caps[queue].ready_at()).min().unwrap_or(Time::NEVER)
    }

    #[inline]
    fn held_back(&self, now: Time) -> u8 {
        if self.capped == 0 {
            return 0;
        }
        let held = QueueSet(self.capped).iter().filter(|queue| !self.caps[*queue].ready(now));
        held.fold(0, |set, queue| set | QueueSet::only(queue).0)
    }

    fn below_floor(&self, queues: QueueSet, now: Time) -> Option<QueueId> {
        let below = queues.iter().filter(|queue| self.floors[*queue].ready(now));
        below.min_by_key(|queue| self.floors[*queue].ready_at())
    }
}
