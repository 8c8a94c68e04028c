//! A port whose queues never run dry, for the tests of the scheduler.
#![allow(dead_code)] // Each test file uses a part.

use holdfast_core::ids::*;
use holdfast_core::profile::*;
use holdfast_core::sched::{Scheduler, Shaper};
use holdfast_core::units::*;
use std::cell::Cell;

pub(crate) const SPEED: BitRate = BitRate::gigabits(10);
pub(crate) const CATCH_UP: Nanos = Nanos::micros(50);

pub(crate) fn q(n: u8) -> QueueId {
    QueueId::new(n).unwrap()
}

pub(crate) fn queue(service: Service) -> QueueSpec {
    let guarantee = Cells::ZERO;
    QueueSpec { guarantee, limit: None, wred: None, service, min_rate: None, max_rate: None }
}

pub(crate) fn weight(weight: u16) -> QueueSpec {
    queue(Service::Weight(weight))
}

/// A port with these queues; those that aren't named have weight 1.
pub(crate) fn port(queues: &[(u8, QueueSpec)]) -> PortSpec {
    let cos = Cos::default();
    let pg = PgSpec {
        lossless: false,
        guaranteed: Cells::ZERO,
        headroom: Cells::ZERO,
        headroom_pool: false,
        pool: PoolId::default(),
        limit: Limit::Static(Cells::ZERO),
        xoff: Xoff::AtLimit,
        xon: Xon::Offset(Cells::ZERO),
        xon_floor: Cells::ZERO,
        priorities: PrioritySet::EMPTY,
    };
    let mut table = PerQueue::from_fn(|_| weight(1));
    for (number, spec) in queues {
        table[q(*number)] = *spec;
    }
    PortSpec {
        speed: SPEED,
        mtu: 9_200,
        maps: ClassMaps {
            trust: Trust::Port,
            default_cos: cos,
            dscp_to_cos: PerDscp::from_fn(|_| cos),
            pcp_to_cos: PerPcp::from_fn(|_| cos),
            cos_to_pg: PerCos::default(),
            cos_to_queue: PerCos::default(),
            priority_to_queues: PerPriority::default(),
        },
        pgs: PerPg::from_fn(|_| pg),
        queues: table,
        pfc: PfcSpec {
            enabled: PrioritySet::EMPTY,
            quanta: Quanta(65_535),
            resume: Resume::Xon,
            link_pause: false,
            rx_backlog_mark: 256,
        },
        tx_inflight: 20_000,
        catch_up: CATCH_UP,
        watchdog: None,
    }
}

/// A port whose queues never run dry: each has frames of one length, 0 for a queue without any.
pub(crate) struct Saturated {
    pub(crate) scheduler: Scheduler,
    pub(crate) shaper: Shaper,
    pub(crate) lens: [u16; 8],
    pub(crate) stopped: QueueSet,
    pub(crate) bytes: [u64; 8],
    pub(crate) now: Time,
    /// Head lengths asked for by one `pick`, at most.
    pub(crate) most_looks: u32,
}

impl Saturated {
    pub(crate) fn new(spec: &PortSpec, lens: &[(u8, u16)]) -> Self {
        let mut table = [0; 8];
        for (number, len) in lens {
            table[usize::from(*number)] = *len;
        }
        Self {
            scheduler: Scheduler::new(spec),
            shaper: Shaper::new(spec.speed, spec.catch_up),
            lens: table,
            stopped: QueueSet::EMPTY,
            bytes: [0; 8],
            now: Time(0),
            most_looks: 0,
        }
    }

    pub(crate) fn ready(&self) -> QueueSet {
        let full = QueueId::all().filter(|queue| self.lens[queue.index()] > 0);
        let set = full.fold(QueueSet::EMPTY, |set, queue| set.or(QueueSet::only(queue)));
        QueueSet(set.0 & !self.stopped.0)
    }

    /// Sends one frame as soon as it may leave, and says whose.
    pub(crate) fn send(&mut self) -> QueueId {
        let ready = self.ready();
        self.now = self.now.max(self.shaper.ready_at());
        self.now = self.now.max(self.scheduler.deadline(self.now, ready));
        let (lens, looks) = (self.lens, Cell::new(0));
        let len = |queue: QueueId| {
            looks.set(looks.get() + 1);
            FrameLen(lens[queue.index()])
        };
        let queue = self.scheduler.pick(self.now, ready, len).expect("a queue is ready");
        self.most_looks = self.most_looks.max(looks.get());
        assert!(ready.contains(queue));
        let again = self.scheduler.pick(self.now, ready, len);
        assert_eq!(again, Some(queue), "asking changes nothing");
        let len = FrameLen(self.lens[queue.index()]);
        self.scheduler.charge(queue, len, self.now);
        self.shaper.charge(len.on_wire(), self.now);
        self.bytes[queue.index()] += u64::from(len.0);
        queue
    }

    pub(crate) fn run(&mut self, until: Time) -> &mut Self {
        while self.now < until {
            self.send();
        }
        self
    }

    pub(crate) fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Asserts that a queue had `percent` of all bytes, within 2 % of that.
    pub(crate) fn assert_share(&self, number: u8, percent: f64) {
        let got = 100.0 * self.bytes[usize::from(number)] as f64 / self.total() as f64;
        let bytes = self.bytes;
        assert!((got - percent).abs() <= percent * 0.02, "queue {number}: {got} % of {bytes:?}");
    }
}

pub(crate) fn seconds(n: u64) -> Time {
    Time(n * 1_000_000_000)
}
