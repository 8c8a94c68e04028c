//! The shared-buffer MMU: who may keep a frame, and who must be paused for it (SPEC 3).
//!
//! One [`Mmu`] is shared by all workers, lock-free. [`Mmu::admit`] charges a frame's cells to a PG
//! and makes its receipt, [`Mmu::release`] consumes it. The PG's occupancies and its XOFF bit are
//! one word ([`account`]), a pool is one atomic ([`pool`]); each edge, XOFF or XON, belongs to the
//! compare-and-swap that flips the bit. The profile comes with every call: it holds the sizes and
//! watermarks, the MMU only what is occupied.
//!
//! Order of writes, which everything else relies on: a charge takes from the pool *before* it
//! writes the account, a release writes the account *before* it returns to the pool. So a pool
//! never has less lent than the accounts hold, and nothing is lent twice.

use crate::drop::DropReason;
use crate::frame::Charge;
use crate::ids::{PgId, PoolId, PortId, PrioritySet, MAX_POOLS, MAX_PORTS};
use crate::profile::{PgSpec, PortSpec, Profile};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::units::{Cells, FrameLen};
use crossbeam::utils::CachePadded;

mod account;
mod admit;
mod edge;
mod egress;
#[cfg(loom)]
mod explored;
mod invariant;
mod lender;
mod limits;
mod pool;
mod release;
mod resize;
mod snapshot;
mod watermark;
mod xoff;

pub use account::{Segment, Segments, Word};
pub use edge::{Edge, EdgeKind};
pub use egress::QueueAccount;
pub use invariant::Violation;
pub use limits::{limit, Levels};
pub use snapshot::{PgSnapshot, PoolSnapshot};
pub use watermark::View;

use account::Account;
use edge::PortEdges;
use lender::{Lender, Sources};
use pool::Pool;
use watermark::Watermark;

// How many of each there are. The explorer's switches are smaller: each atomic costs it time.
const PORTS: usize = if cfg!(loom) { 2 } else { MAX_PORTS };
const PGS: usize = if cfg!(loom) { 2 } else { PgId::COUNT };
const POOLS: usize = if cfg!(loom) { 2 } else { MAX_POOLS };

/// One PG's account, on cache lines of its own.
#[derive(Debug)]
struct PgAccount {
    word: Account,
    lender: Lender,
    guaranteed_peak: Watermark,
    service_peak: Watermark,
    headroom_peak: Watermark,
}

/// One port's accounts.
#[derive(Debug)]
struct PortAccounts {
    pgs: [CachePadded<PgAccount>; PGS],
    edges: CachePadded<PortEdges>,
}

/// The memory management unit: occupancies of every PG and pool. All methods take `&self`.
#[derive(Debug)]
pub struct Mmu {
    ports: Box<[PortAccounts; PORTS]>,
    pools: [CachePadded<Pool>; POOLS],
    headroom_pool: CachePadded<Pool>,
    egress: CachePadded<Pool>,
    /// The generation that all workers run ([`Mmu::settle`]).
    settled: AtomicU64,
}

impl Mmu {
    /// An empty MMU whose PGs draw from the pools that `profile` names.
    pub fn new(profile: &Profile) -> Self {
        let named = |port: usize, pg: usize| {
            let port = profile.spec().ports.get(port);
            port.map(|port| Sources::named(&port.pgs.0[pg])).unwrap_or_default()
        };
        let account = |port: usize, pg: usize| PgAccount {
            word: Account::new(),
            lender: Lender::new(named(port, pg)),
            guaranteed_peak: Watermark::default(),
            service_peak: Watermark::default(),
            headroom_peak: Watermark::default(),
        };
        Self {
            ports: Box::new(core::array::from_fn(|port| PortAccounts {
                pgs: core::array::from_fn(|pg| CachePadded::new(account(port, pg))),
                edges: CachePadded::new(PortEdges::new()),
            })),
            pools: core::array::from_fn(|_| CachePadded::new(Pool::new())),
            headroom_pool: CachePadded::new(Pool::new()),
            egress: CachePadded::new(Pool::new()),
            settled: AtomicU64::new(profile.generation()),
        }
    }

    /// Says that all workers run the profile of `generation` and that none newer was published
    /// yet. PGs whose pool that profile changes may move from now on (SPEC 3.6); until then, and
    /// if this is never called, they go on at the old pool while they hold any cell.
    pub fn settle(&self, generation: u64) {
        self.settled.store(generation, Ordering::Release);
    }

    #[inline]
    fn port(&self, port: PortId) -> &PortAccounts {
        &self.ports[port.index() % PORTS]
    }

    #[inline]
    fn account(&self, port: PortId, pg: PgId) -> &PgAccount {
        &self.port(port).pgs[pg.index() % PGS]
    }

    /// Everything that concerns one PG under one profile; `None` for a port it doesn't have.
    #[inline]
    fn site<'a>(&'a self, profile: &'a Profile, port: PortId, pg: PgId) -> Option<Site<'a>> {
        let port_spec = profile.port(port)?;
        let sources = self.account(port, pg).lender.load();
        Some(self.site_of(profile, port_spec, port, pg, sources))
    }

    /// The same for the port's owner, who also moves the PG to the pools that its profile names.
    #[inline]
    fn owned_site<'a>(&'a self, profile: &'a Profile, port: PortId, pg: PgId) -> Option<Site<'a>> {
        let port_spec = profile.port(port)?;
        let lender = &self.account(port, pg).lender;
        let mut sources = lender.load();
        if sources != Sources::named(&port_spec.pgs[pg]) {
            self.try_move(profile, port, pg);
            sources = lender.load();
        }
        Some(self.site_of(profile, port_spec, port, pg, sources))
    }

    #[inline]
    fn pool_at(&self, sources: Sources) -> &Pool {
        &self.pools[sources.pool() % POOLS]
    }

    #[inline]
    fn site_of<'a>(
        &'a self,
        profile: &'a Profile,
        port_spec: &'a PortSpec,
        port: PortId,
        pg: PgId,
        sources: Sources,
    ) -> Site<'a> {
        let spec = &port_spec.pgs[pg];
        let account = self.account(port, pg);
        Site {
            mmu: self,
            profile,
            port,
            pg,
            port_spec,
            spec,
            account,
            pool: self.pool_at(sources),
            pool_size: profile.pool_size(sources.pool_id()),
            shared_headroom: sources.shared_headroom(),
        }
    }
}

/// One PG under one profile: its rules, its account and the pools it draws from now.
#[derive(Debug)]
struct Site<'a> {
    mmu: &'a Mmu,
    profile: &'a Profile,
    port: PortId,
    pg: PgId,
    port_spec: &'a PortSpec,
    spec: &'a PgSpec,
    account: &'a PgAccount,
    pool: &'a Pool,
    pool_size: Cells,
    shared_headroom: bool,
}
