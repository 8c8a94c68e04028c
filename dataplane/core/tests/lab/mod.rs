//! A switch in memory with a test at the other end of each cable.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

use holdfast_core::context::Shared;
use holdfast_core::copies::Copies;
use holdfast_core::deadlock::stuck::StuckCells;
use holdfast_core::fdb::Fdb;
use holdfast_core::ids::*;
use holdfast_core::memory::{memory_port, MemoryPool, MemoryPort, Wire};
use holdfast_core::mmu::{Mmu, PgSnapshot};
use holdfast_core::port::Port;
use holdfast_core::probe::Probe;
use holdfast_core::profile::*;
use holdfast_core::ring::spsc;
use holdfast_core::topology::{PortPlace, ReservedGroups, Topology};
use holdfast_core::trace::{Event, EventKind};
use holdfast_core::units::*;
use holdfast_core::worker::{Worker, WorkerParts};
use holdfast_wire::MacAddr;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

pub struct Lab {
    pub workers: Vec<Worker<MemoryPort>>,
    pub wires: Vec<Rc<RefCell<Wire>>>,
    pub now: Time,
    pub topology: Arc<Topology>,
}

pub fn port(n: u8) -> PortId {
    PortId::new(n).unwrap()
}

pub fn pg(n: u8) -> PgId {
    PgId::new(n).unwrap()
}

pub fn queue(n: u8) -> QueueId {
    QueueId::new(n).unwrap()
}

/// The station behind port `n`.
pub fn station(n: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, n + 1])
}

/// The `ac5p` maps: DSCP 24..31 to CoS 3 (PG 3, queue 3), 48 to CoS 6 (queue 6), the rest CoS 0.
pub fn maps() -> ClassMaps {
    let cos = |n| Cos::new(n).unwrap();
    ClassMaps {
        trust: Trust::Dscp,
        default_cos: cos(0),
        dscp_to_cos: PerDscp::from_fn(|dscp| match dscp.number() {
            24..=31 => cos(3),
            48 => cos(6),
            _ => cos(0),
        }),
        pcp_to_cos: PerPcp::from_fn(|pcp| cos(pcp.number())),
        cos_to_pg: PerCos::from_fn(|cos| if cos.number() == 3 { pg(3) } else { pg(0) }),
        cos_to_queue: PerCos::from_fn(|cos| match cos.number() {
            3 => queue(3),
            6 => queue(6),
            _ => queue(0),
        }),
        priority_to_queues: PerPriority::from_fn(|p| QueueSet::only(queue(p.number()))),
    }
}

pub const LOSSLESS: u8 = 3;

/// The lossless PG of [`port_spec`].
pub fn lossless_pg() -> PgSpec {
    PgSpec {
        lossless: true,
        guaranteed: Cells(36),
        headroom: Cells(512),
        headroom_pool: false,
        pool: PoolId::new(0).unwrap(),
        limit: Limit::Dynamic(Alpha::new(0).unwrap()),
        xoff: Xoff::At(Cells(1000)),
        xon: Xon::Offset(Cells(300)),
        xon_floor: Cells(0),
        priorities: PrioritySet::only(Priority::new(3).unwrap()),
    }
}

pub fn lossy_pg() -> PgSpec {
    PgSpec {
        lossless: false,
        guaranteed: Cells(0),
        headroom: Cells(0),
        headroom_pool: false,
        pool: PoolId::new(1).unwrap(),
        limit: Limit::Dynamic(Alpha::new(0).unwrap()),
        xoff: Xoff::AtLimit,
        xon: Xon::Offset(Cells(1)),
        xon_floor: Cells(0),
        priorities: PrioritySet::EMPTY,
    }
}

pub fn port_spec() -> PortSpec {
    PortSpec {
        speed: BitRate::gigabits(10),
        mtu: 9000,
        maps: maps(),
        pgs: PerPg::from_fn(|id| if id.number() == 3 { lossless_pg() } else { lossy_pg() }),
        queues: PerQueue::from_fn(|id| QueueSpec {
            guarantee: Cells(0),
            limit: Some(Limit::Dynamic(Alpha::new(1).unwrap())),
            wred: None,
            service: if id.number() == 6 { Service::Strict } else { Service::Weight(15) },
            min_rate: None,
            max_rate: None,
        }),
        pfc: PfcSpec {
            enabled: PrioritySet::only(Priority::new(3).unwrap()),
            quanta: Quanta(65535),
            resume: Resume::Xon,
            link_pause: false,
            rx_backlog_mark: 256,
        },
        tx_inflight: 2 * 9026,
        catch_up: Nanos::millis(2),
        watchdog: None,
    }
}

pub fn profile_spec(ports: Vec<PortSpec>) -> ProfileSpec {
    ProfileSpec {
        name: "lab".to_owned(),
        cell: CellSize::DEFAULT,
        total: Cells(16_384),
        pools: vec![("lossless".to_owned(), Cells(8_000)), ("lossy".to_owned(), Cells(2_000))],
        headroom_pool: Cells(0),
        egress_shared: Cells(10_000),
        flood_limit: 256,
        ports,
    }
}

impl Lab {
    /// A switch of `ports` equal ports, spread over `workers` workers.
    pub fn new(workers: usize, ports: usize, spec: PortSpec) -> Self {
        Self::with_profile(workers, profile_spec(vec![spec; ports]))
    }

    pub fn with_profile(workers: usize, spec: ProfileSpec) -> Self {
        let count = spec.ports.len();
        let profile = Arc::new(Profile::new(1, spec).unwrap());
        let owner = |n: usize| WorkerId::new((n % workers) as u8).unwrap();
        let place = |n| PortPlace { owner: owner(n), wire_peer: None, vlans: Vec::new(), pvid: 1 };
        let topology =
            Arc::new(Topology::new((0..count).map(place), false, ReservedGroups::Forward));
        let chunks = profile.spec().total.0 + 4096;
        let shared = Arc::new(Shared {
            mmu: Mmu::new(&profile),
            fdb: Fdb::new(1024, Nanos(300_000_000_000), 7),
            copies: Copies::new(chunks * workers as u32),
            probe: Probe::default(),
            stuck: StuckCells::default(),
        });
        let frames = (profile.spec().total.0 + profile.spec().flood_limit) as usize;
        let mut wires = Vec::new();
        let mut owned: Vec<Vec<Port<MemoryPort>>> = (0..workers).map(|_| Vec::new()).collect();
        for n in 0..count {
            let (io, wire) = memory_port(512, 512);
            wires.push(wire);
            let mac = MacAddr([2, 0xff, 0, 0, 0, n as u8]);
            let spec = profile.port(port(n as u8)).unwrap();
            owned[n % workers].push(Port::new(port(n as u8), mac, io, spec, frames, 7));
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
        let pools = MemoryPool::shared(workers, chunks);
        let rings = owned.into_iter().zip(pools).zip(inboxes.into_iter().zip(outboxes));
        let workers = rings
            .enumerate()
            .map(|(n, ((ports, pool), (inboxes, outboxes)))| {
                Worker::new(WorkerParts {
                    id: WorkerId::new(n as u8).unwrap(),
                    shared: Arc::clone(&shared),
                    profile: Arc::clone(&profile),
                    topology: Arc::clone(&topology),
                    pool,
                    ports,
                    inboxes,
                    outboxes,
                    trace_capacity: 65_536,
                })
            })
            .collect();
        let mut lab = Self { workers, wires, now: Time(1_000), topology };
        lab.steps(1, Nanos(0));
        lab
    }

    pub fn owner(&self, n: u8) -> usize {
        usize::from(n) % self.workers.len()
    }

    /// A frame arrives at port `n`.
    pub fn arrive(&mut self, n: u8, bytes: &[u8]) {
        let owner = self.owner(n);
        self.wires[usize::from(n)].borrow_mut().arrive(self.workers[owner].pool(), bytes);
    }

    /// So many steps of every worker, `apart` between them.
    pub fn steps(&mut self, count: usize, apart: Nanos) {
        for _ in 0..count {
            self.now = self.now.after(apart);
            for wire in &self.wires {
                wire.borrow_mut().clock = self.now;
            }
            for worker in &mut self.workers {
                worker.step(self.now);
            }
        }
    }

    /// Lets the switch learn that station `n` lies behind port `n`.
    pub fn teach(&mut self) {
        for n in 0..self.wires.len() as u8 {
            self.workers[0].shared().fdb.learn(station(n), 0, port(n), self.now);
        }
    }

    pub fn hold(&mut self, n: u8, hold: bool) {
        let owner = self.owner(n);
        assert!(self.workers[owner].hold(port(n), hold));
    }

    /// Applies a profile to every worker.
    pub fn apply(&mut self, change: impl FnOnce(&mut ProfileSpec)) {
        let mut spec = self.workers[0].profile().spec().clone();
        change(&mut spec);
        let generation = self.workers[0].profile().generation() + 1;
        let profile = Arc::new(Profile::new(generation, spec).unwrap());
        for worker in &mut self.workers {
            worker.adopt(Arc::clone(&profile), self.now);
        }
    }

    pub fn pg(&self, n: u8, id: u8) -> PgSnapshot {
        let worker = &self.workers[0];
        worker.shared().mmu.pg(worker.profile(), port(n), pg(id))
    }

    pub fn port(&self, n: u8) -> &Port<MemoryPort> {
        self.workers[self.owner(n)].ports().iter().find(|p| p.id() == port(n)).unwrap()
    }

    /// All events of all workers, in order of time.
    pub fn events(&self) -> Vec<Event> {
        let mut events: Vec<Event> =
            self.workers.iter().flat_map(|w| w.trace().since(0).1.copied()).collect();
        events.sort_by_key(|event| event.time);
        events
    }

    /// Edges of one PG.
    pub fn edges(&self, n: u8, id: u8) -> Vec<holdfast_core::mmu::Edge> {
        self.events()
            .into_iter()
            .filter_map(|event| match event.kind {
                EventKind::Edge(edge) if edge.port == port(n) && edge.pg == pg(id) => Some(edge),
                _ => None,
            })
            .collect()
    }

    pub fn sent(&self, n: u8) -> Vec<Vec<u8>> {
        self.wires[usize::from(n)].borrow_mut().sent.drain(..).collect()
    }

    pub fn control(&self, n: u8) -> Vec<[u8; 60]> {
        self.wires[usize::from(n)].borrow_mut().control.drain(..).collect()
    }

    /// Every cell and every copy is back, no frame is lost or doubled, and none is being timed.
    pub fn assert_idle(&self) {
        for n in 0..self.wires.len() as u8 {
            for id in 0..8 {
                let pg = self.pg(n, id);
                let held = (pg.guaranteed, pg.service, pg.headroom, pg.xoff);
                assert_eq!(held, (Cells(0), Cells(0), Cells(0), false), "port {n} pg {id}");
            }
            for id in 0..8 {
                assert_eq!(self.port(n).queue(queue(id)).account().occupancy(), Cells(0));
            }
        }
        let shared = self.workers[0].shared();
        assert_eq!(shared.copies.under_way(), 0);
        assert!(shared.probe.is_free());
    }
}

/// An Ethernet frame of `len` bytes from station `from` to station `to` with an IPv4 header.
pub fn ipv4(from: u8, to: u8, dscp: u8, ecn: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; len.max(34)];
    bytes[..6].copy_from_slice(&station(to).0);
    bytes[6..12].copy_from_slice(&station(from).0);
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[15] = dscp << 2 | ecn;
    let total = (bytes.len() - 14) as u16;
    bytes[16..18].copy_from_slice(&total.to_be_bytes());
    bytes[22] = 64;
    bytes[23] = 17;
    bytes[26..30].copy_from_slice(&[10, 0, 0, from + 1]);
    bytes[30..34].copy_from_slice(&[10, 0, 0, to + 1]);
    let sum: u32 = bytes[14..34].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    bytes[24..26].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    bytes
}

/// Frames that one round of [`Bench`] moves.
pub const FRAMES_A_ROUND: usize = 64;

/// A switch of three ports that forwards the same burst again and again: ports 0 and 1 to 2.
///
/// The wire recycles chunks without copying, so that what is measured is the core.
pub struct Bench {
    lab: Lab,
}

impl Bench {
    pub fn new(dscp: u8, len: usize) -> Self {
        let mut spec = port_spec();
        spec.speed = BitRate::gigabits(400);
        spec.tx_inflight = 1 << 20;
        let wred = WredSpec {
            kmin: Cells(400),
            kmax: Cells(2_400),
            pmax: Prob16::new(13_107).unwrap(),
            mark_at: MarkAt::Dequeue,
            not_ect: NotEct::Drop,
            ewma_shift: 0,
        };
        spec.queues[queue(3)].wred = Some(wred);
        spec.queues[queue(0)].wred = Some(wred);
        let mut lab = Lab::new(1, 3, spec);
        lab.teach();
        for wire in &lab.wires {
            wire.borrow_mut().capture = false;
        }
        // Every chunk that the fill ring gives out carries the frame already.
        lab.workers[0].pool().write_all(&ipv4(0, 2, dscp, 2, len));
        let mut bench = Self { lab };
        for _ in 0..64 {
            bench.round(Nanos(100_000));
        }
        bench
    }

    /// One burst in, one burst out: after an idle time the shaper lets one frame go at once, and
    /// the others when time has passed.
    pub fn round(&mut self, apart: Nanos) {
        let pool = self.lab.workers[0].pool();
        self.lab.wires[0].borrow_mut().arrive_again(pool, FRAMES_A_ROUND);
        self.lab.steps(2, Nanos(apart.0 / 2));
    }

    pub fn sent(&self) -> u64 {
        self.lab.wires[2].borrow().sent_frames
    }

    /// Frames that wait at the way out.
    pub fn waiting(&self) -> u64 {
        (0..8).map(|id| self.lab.port(2).queue(queue(id)).frames() as u64).sum()
    }
}
