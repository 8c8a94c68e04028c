//! Small switches for the tests of the MMU: one cell is 256 bytes, the largest frame one cell.
#![allow(dead_code)] // Each test file uses a part.

use holdfast_core::frame::Charge;
use holdfast_core::ids::{
    Cos, PerCos, PerDscp, PerPcp, PerPg, PerPriority, PerQueue, PgId, PoolId, PortId, Priority,
    PrioritySet, QueueId, QueueSet,
};
use holdfast_core::mmu::{Edge, Mmu};
use holdfast_core::profile::{
    ClassMaps, Limit, PfcSpec, PgSpec, PortSpec, Profile, ProfileSpec, QueueSpec, Resume, Service,
    Trust, Xoff, Xon,
};
use holdfast_core::units::{Alpha, BitRate, CellSize, Cells, FrameLen, Nanos, Quanta};

/// The MTU at which the largest frame (MTU + 26) is one cell.
pub(crate) const ONE_CELL_MTU: u16 = 230;

pub(crate) const CELL: u16 = 256;

pub(crate) fn port(n: u8) -> PortId {
    PortId::new(n).unwrap()
}

pub(crate) fn pg(n: u8) -> PgId {
    PgId::new(n).unwrap()
}

pub(crate) fn pool(n: u8) -> PoolId {
    PoolId::new(n).unwrap()
}

pub(crate) fn cells(n: u32) -> Cells {
    Cells(n)
}

pub(crate) fn frame(cells: u32) -> FrameLen {
    FrameLen(cells as u16 * CELL)
}

pub(crate) fn alpha(log2: i8) -> Limit {
    Limit::Dynamic(Alpha::new(log2).unwrap())
}

pub(crate) fn fixed(n: u32) -> Limit {
    Limit::Static(Cells(n))
}

/// A PG without anything of its own: all others are made from it.
pub(crate) fn lossy() -> PgSpec {
    PgSpec {
        lossless: false,
        guaranteed: Cells(0),
        headroom: Cells(0),
        headroom_pool: false,
        pool: PoolId::default(),
        limit: fixed(0),
        xoff: Xoff::AtLimit,
        xon: Xon::Offset(Cells(0)),
        xon_floor: Cells(0),
        priorities: PrioritySet::EMPTY,
    }
}

/// Guaranteed, Headroom, limit, XOFF and XON (offset) of a lossless PG for priority 3.
pub(crate) fn lossless(g: u32, h: u32, limit: Limit, xoff: u32, xon: u32) -> PgSpec {
    PgSpec {
        lossless: true,
        guaranteed: Cells(g),
        headroom: Cells(h),
        limit,
        xoff: Xoff::At(Cells(xoff)),
        xon: Xon::Offset(Cells(xon)),
        priorities: PrioritySet(8),
        ..lossy()
    }
}

pub(crate) fn port_spec(mtu: u16, pgs: &[(u8, PgSpec)]) -> PortSpec {
    let account = |id: PgId| pgs.iter().find(|(n, _)| *n == id.number()).map_or(lossy(), |p| p.1);
    PortSpec {
        speed: BitRate::gigabits(1),
        mtu,
        maps: ClassMaps {
            trust: Trust::Dscp,
            default_cos: Cos::default(),
            dscp_to_cos: PerDscp::default(),
            pcp_to_cos: PerPcp::default(),
            cos_to_pg: PerCos::default(),
            cos_to_queue: PerCos::default(),
            priority_to_queues: PerPriority::from_fn(|p: Priority| {
                QueueSet::only(QueueId::new(p.number()).unwrap())
            }),
        },
        pgs: PerPg::from_fn(account),
        queues: PerQueue::from_fn(|_| queue(0, None)),
        pfc: PfcSpec {
            enabled: PrioritySet(8),
            quanta: Quanta(65_535),
            resume: Resume::Xon,
            link_pause: false,
            rx_backlog_mark: 256,
        },
        tx_inflight: 4 * u32::from(mtu) + 4 * 26,
        catch_up: Nanos::micros(10),
        watchdog: None,
    }
}

pub(crate) fn queue(guarantee: u32, limit: Option<Limit>) -> QueueSpec {
    QueueSpec {
        guarantee: Cells(guarantee),
        limit,
        wred: None,
        service: Service::Weight(1),
        min_rate: None,
        max_rate: None,
    }
}

pub(crate) fn spec(pools: &[u32], ports: Vec<PortSpec>) -> ProfileSpec {
    let named = |(n, size): (usize, &u32)| (format!("pool{n}"), Cells(*size));
    ProfileSpec {
        name: "test".to_owned(),
        cell: CellSize::DEFAULT,
        total: Cells(1 << 20),
        pools: pools.iter().enumerate().map(named).collect(),
        headroom_pool: Cells(0),
        egress_shared: Cells(0),
        flood_limit: 0,
        ports,
    }
}

/// One port, PG 3 as given, one pool.
pub(crate) fn single(account: PgSpec, pool_size: u32) -> Profile {
    let ports = vec![port_spec(ONE_CELL_MTU, &[(3, account)])];
    Profile::new(1, spec(&[pool_size], ports)).unwrap()
}

/// An MMU with its profile, receipts in the order of their frames, and the edges so far.
pub(crate) struct Rig {
    pub(crate) mmu: Mmu,
    pub(crate) profile: Profile,
    pub(crate) charges: Vec<Charge>,
    pub(crate) edges: Vec<Edge>,
}

impl Rig {
    pub(crate) fn new(profile: Profile) -> Self {
        Self { mmu: Mmu::new(&profile), profile, charges: Vec::new(), edges: Vec::new() }
    }

    /// Admits a frame of `n` cells to (`on`, `to`); whether it was taken.
    pub(crate) fn admit_to(&mut self, on: u8, to: u8, n: u32) -> bool {
        let edges = &mut self.edges;
        let mut note = |edge| edges.push(edge);
        match self.mmu.admit(&self.profile, port(on), pg(to), frame(n), &mut note) {
            Ok(charge) => {
                self.charges.push(charge);
                self.check();
                true
            }
            Err(_) => {
                self.check();
                false
            }
        }
    }

    /// Admits to port 0, PG 3.
    pub(crate) fn admit(&mut self, n: u32) -> bool {
        self.admit_to(0, 3, n)
    }

    /// Releases the oldest frame of (`on`, `of`).
    pub(crate) fn release_of(&mut self, on: u8, of: u8) {
        let at = self.charges.iter().position(|c| c.port() == port(on) && c.pg() == pg(of));
        let charge = self.charges.remove(at.unwrap());
        let edges = &mut self.edges;
        self.mmu.release(&self.profile, charge, &mut |edge| edges.push(edge));
        self.check();
    }

    pub(crate) fn release(&mut self) {
        self.release_of(0, 3);
    }

    pub(crate) fn reevaluate(&mut self, on: u8, of: u8) {
        let edges = &mut self.edges;
        let mut note = |edge| edges.push(edge);
        self.mmu.reevaluate(&self.profile, port(on), pg(of), &mut note);
        self.check();
    }

    /// A profile change as one worker makes it.
    pub(crate) fn adopt(&mut self, profile: Profile) {
        self.profile = profile;
        let (mmu, profile, edges) = (&self.mmu, &self.profile, &mut self.edges);
        mmu.recompute_withheld(profile);
        for on in 0..profile.spec().ports.len() as u8 {
            for of in PgId::all() {
                mmu.adopt(profile, port(on), of, &mut |edge| edges.push(edge));
            }
        }
        mmu.settle(profile.generation());
        self.check();
    }

    /// Guaranteed, Service, Headroom and XOFF of (`on`, `of`).
    pub(crate) fn state_of(&self, on: u8, of: u8) -> (u32, u32, u32, bool) {
        let now = self.mmu.pg(&self.profile, port(on), pg(of));
        (now.guaranteed.0, now.service.0, now.headroom.0, now.xoff)
    }

    pub(crate) fn state(&self) -> (u32, u32, u32, bool) {
        self.state_of(0, 3)
    }

    pub(crate) fn check(&self) {
        let receipts = |on, of| {
            let of_pg = self.charges.iter().filter(|c| c.port() == on && c.pg() == of);
            Cells(of_pg.map(|c| c.cells().0).sum())
        };
        self.mmu.check(&self.profile, receipts).unwrap();
    }
}
