//! A small switch in memory: three ports, a buffer of 96 cells, so that a short input fills it.

use holdfast_core::context::Shared;
use holdfast_core::copies::Copies;
use holdfast_core::deadlock::stuck::StuckCells;
use holdfast_core::fdb::Fdb;
use holdfast_core::ids::{
    Cos, PerCos, PerDscp, PerPcp, PerPg, PerPriority, PerQueue, PgId, PoolId, PortId, Priority,
    PrioritySet, QueueId, QueueSet, WorkerId,
};
use holdfast_core::io::PortIo;
use holdfast_core::memory::{memory_port, MemoryPool, MemoryPort, Wire};
use holdfast_core::mmu::Mmu;
use holdfast_core::port::Port;
use holdfast_core::probe::Probe;
use holdfast_core::profile::{
    ClassMaps, Limit, MarkAt, NotEct, PfcSpec, PgSpec, PortSpec, Profile, ProfileSpec, QueueSpec,
    Resume, Service, Trust, WatchdogAction, WatchdogSpec, WredSpec, Xoff, Xon,
};
use holdfast_core::ring::spsc;
use holdfast_core::topology::{PortPlace, ReservedGroups, Topology};
use holdfast_core::units::{Alpha, BitRate, CellSize, Cells, Nanos, Prob16, Quanta, Time};
use holdfast_core::worker::{Worker, WorkerParts};
use holdfast_wire::MacAddr;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Ports of the switch.
pub(super) const PORTS: usize = 3;
/// The lossless PG, CoS and queue.
pub(super) const LOSSLESS: u8 = 3;
const RING: usize = 12;
const CHUNK_BYTES: usize = 2048;

/// The switch and the other end of each cable.
pub(super) struct Lab {
    pub(super) workers: Vec<Worker<MemoryPort>>,
    pub(super) wires: Vec<Rc<RefCell<Wire>>>,
    pub(super) now: Time,
    /// Chunks of memory, all workers together.
    pub(super) chunks: usize,
}

pub(super) fn port(n: usize) -> PortId {
    PortId::from_bits(n as u8)
}

/// The station behind port `n`.
pub(super) fn station(n: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, n + 1])
}

fn maps() -> ClassMaps {
    let cos = |n| Cos::new(n).unwrap();
    let lossless = |class: Cos| class.number() == LOSSLESS;
    ClassMaps {
        trust: Trust::Dscp,
        default_cos: cos(0),
        dscp_to_cos: PerDscp::from_fn(|dscp| match dscp.number() {
            24..=31 => cos(LOSSLESS),
            48 => cos(6),
            _ => cos(0),
        }),
        pcp_to_cos: PerPcp::from_fn(|pcp| cos(pcp.number())),
        cos_to_pg: PerCos::from_fn(|class| {
            PgId::new(if lossless(class) { LOSSLESS } else { 0 }).unwrap()
        }),
        cos_to_queue: PerCos::from_fn(|class| QueueId::new(class.number()).unwrap()),
        priority_to_queues: PerPriority::from_fn(|priority| {
            QueueSet::only(QueueId::new(priority.number()).unwrap())
        }),
    }
}

/// A port whose PGs and queues are these.
fn port_spec(variant: u8, pgs: PerPg<PgSpec>, queues: PerQueue<QueueSpec>) -> PortSpec {
    let enabled = PrioritySet::only(Priority::new(LOSSLESS).unwrap());
    let watchdog = WatchdogSpec {
        detection_time: Nanos::millis(200),
        restoration_time: Nanos::millis(200),
        action: WatchdogAction::Drop,
        back_off: true,
    };
    PortSpec {
        speed: BitRate::gigabits(1),
        mtu: 1500,
        maps: maps(),
        pgs,
        queues,
        pfc: PfcSpec {
            enabled,
            quanta: Quanta(65535),
            resume: if variant == 2 { Resume::Expire } else { Resume::Xon },
            link_pause: false,
            rx_backlog_mark: 8,
        },
        tx_inflight: 3052,
        catch_up: Nanos::millis(2),
        watchdog: (variant != 2).then_some(watchdog),
    }
}

/// One of the profiles that a run may change to: they differ in what may change live (SPEC 3.6).
pub(super) fn profile(variant: u8) -> ProfileSpec {
    let enabled = PrioritySet::only(Priority::new(LOSSLESS).unwrap());
    let pool = |n| PoolId::new(n).unwrap();
    let pg = |id: PgId| {
        let lossless = id.number() == LOSSLESS && variant != 1;
        PgSpec {
            lossless,
            guaranteed: Cells(if variant == 2 { 0 } else { 2 }),
            headroom: Cells(if lossless { 8 } else { 0 }),
            headroom_pool: variant == 3 && lossless,
            pool: pool(u8::from(id.number() != LOSSLESS && variant != 2)),
            limit: Limit::Dynamic(Alpha::new(if variant == 2 { -1 } else { 1 }).unwrap()),
            xoff: if variant == 3 { Xoff::AtLimit } else { Xoff::At(Cells(10)) },
            xon: Xon::Offset(Cells(if variant == 2 { 1 } else { 4 })),
            xon_floor: Cells(u32::from(variant == 3)),
            priorities: if lossless { enabled } else { PrioritySet::EMPTY },
        }
    };
    let wred = WredSpec {
        kmin: Cells(4),
        kmax: Cells(12),
        pmax: Prob16::new(32_768).unwrap(),
        mark_at: if variant == 2 { MarkAt::Enqueue } else { MarkAt::Dequeue },
        not_ect: NotEct::Drop,
        ewma_shift: 0,
    };
    let queue = |id: QueueId| QueueSpec {
        guarantee: Cells(0),
        limit: (id.number() != LOSSLESS).then(|| Limit::Dynamic(Alpha::new(1).unwrap())),
        wred: Some(wred),
        service: if id.number() == 6 { Service::Strict } else { Service::Weight(15) },
        min_rate: None,
        max_rate: (variant == 2 && id.number() == 0).then(|| BitRate::new(100_000_000).unwrap()),
    };
    ProfileSpec {
        name: "fuzz".to_owned(),
        cell: CellSize::DEFAULT,
        total: Cells(160),
        pools: vec![
            ("lossless".to_owned(), Cells(if variant == 1 { 10 } else { 36 })),
            ("lossy".to_owned(), Cells(16)),
        ],
        headroom_pool: Cells(if variant == 3 { 12 } else { 0 }),
        egress_shared: Cells(96),
        flood_limit: 8,
        ports: vec![port_spec(variant, PerPg::from_fn(pg), PerQueue::from_fn(queue)); PORTS],
    }
}

impl Lab {
    /// A switch with so many workers.
    pub(super) fn new(workers: usize) -> Self {
        let profile = Arc::new(Profile::new(1, profile(0)).unwrap());
        let owner = |n: usize| WorkerId::new((n % workers) as u8).unwrap();
        let place = |n| PortPlace { owner: owner(n), wire_peer: None, vlans: Vec::new(), pvid: 1 };
        let topology =
            Arc::new(Topology::new((0..PORTS).map(place), false, ReservedGroups::Forward));
        let frames = (profile.spec().total.0 + profile.spec().flood_limit) as usize;
        let chunks = frames + PORTS * RING;
        let shared = Arc::new(Shared {
            mmu: Mmu::new(&profile),
            fdb: Fdb::new(0, Nanos(300_000_000_000), 7),
            copies: Copies::new((chunks * workers) as u32),
            probe: Probe::default(),
            stuck: StuckCells::default(),
        });
        let mut wires = Vec::new();
        let mut owned: Vec<Vec<Port<MemoryPort>>> = (0..workers).map(|_| Vec::new()).collect();
        for n in 0..PORTS {
            let (io, wire) = memory_port(RING, RING);
            wires.push(wire);
            let mac = MacAddr([2, 0xff, 0, 0, 0, n as u8]);
            let spec = profile.port(port(n)).unwrap();
            owned[n % workers].push(Port::new(port(n), mac, io, spec, frames, 7));
        }
        let mut inboxes: Vec<Vec<_>> = (0..workers).map(|_| Vec::new()).collect();
        let mut outboxes: Vec<Vec<_>> = (0..workers).map(|_| Vec::new()).collect();
        for (from, outbox) in outboxes.iter_mut().enumerate() {
            for (to, inbox) in inboxes.iter_mut().enumerate() {
                outbox.push((from != to).then(|| {
                    let (producer, consumer) = spsc(frames);
                    inbox.push(consumer);
                    producer
                }));
            }
        }
        let pools = MemoryPool::with_chunks_of(CHUNK_BYTES, workers, chunks as u32);
        let rings = owned.into_iter().zip(pools).zip(inboxes.into_iter().zip(outboxes));
        let workers = rings.enumerate().map(|(n, ((ports, pool), (inboxes, outboxes)))| {
            Worker::new(WorkerParts {
                id: WorkerId::new(n as u8).unwrap(),
                shared: Arc::clone(&shared),
                profile: Arc::clone(&profile),
                topology: Arc::clone(&topology),
                pool,
                ports,
                inboxes,
                outboxes,
                trace_capacity: 16,
            })
        });
        let workers: Vec<_> = workers.collect();
        let chunks = chunks * workers.len();
        Self { workers, wires, now: Time(1_000), chunks }
    }

    /// Which worker owns port `n`.
    pub(super) fn owner(&self, n: usize) -> usize {
        n % self.workers.len()
    }

    /// A frame arrives at port `n`.
    pub(super) fn arrive(&mut self, n: usize, bytes: &[u8]) {
        let owner = self.owner(n);
        self.wires[n].borrow_mut().arrive(self.workers[owner].pool(), bytes);
    }

    /// A step of every worker, so long after the last one.
    pub(super) fn step(&mut self, apart: Nanos) {
        self.now = self.now.after(apart);
        for wire in &self.wires {
            wire.borrow_mut().clock = self.now;
        }
        for worker in &mut self.workers {
            worker.step(self.now);
        }
    }

    /// Stops the egress of port `n`, or lets it go.
    pub(super) fn hold(&mut self, n: usize, hold: bool) {
        let owner = self.owner(n);
        assert!(self.workers[owner].hold(port(n), hold));
    }

    /// The driver of port `n` keeps what is in its TX ring, or sends it.
    pub(super) fn stall(&mut self, n: usize, stall: bool) {
        self.wires[n].borrow_mut().stalled = stall;
        let owner = self.owner(n);
        if let Some(port) = self.workers[owner].port_mut(port(n)) {
            port.io_mut().kick();
        }
    }

    /// Every worker adopts one of the profiles, one after the other.
    pub(super) fn adopt(&mut self, variant: u8) {
        let generation = self.workers[0].profile().generation() + 1;
        let next = Arc::new(Profile::new(generation, profile(variant)).unwrap());
        for worker in &mut self.workers {
            worker.adopt(Arc::clone(&next), self.now);
        }
        self.workers[0].shared().mmu.settle(generation);
    }
}
