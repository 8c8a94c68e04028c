//! Pools with each PG's limit beside them, and how the memory is divided (SPEC 3.1, 3.8).

use super::View;
use holdfast_api::message::{BufferReply, EgressUse, IngressUse, PoolPg, PoolStatus, Watermarks};
use holdfast_core::ids::{PgId, PoolId, PortId};
use holdfast_core::mmu::{PoolSnapshot, View as Peak};
use holdfast_core::profile::{PgSpec, ProfileSpec};
use holdfast_core::units::Cells;

/// The name under which the shared headroom pool is shown.
pub(crate) const HEADROOM_POOL: &str = "headroom";

/// The answer to `show_buffer`.
pub(crate) fn buffer_reply(view: View<'_>) -> BufferReply {
    let board = view.board;
    let spec = board.profile.spec();
    let (mmu, copies) = (&board.shared.mmu, &board.shared.copies);
    let pools = spec.pools.iter().zip(0u8..).filter_map(|((name, _), number)| {
        let pool = PoolId::new(number)?;
        Some(PoolStatus {
            watermark: Watermarks {
                user: mmu.pool_watermark(pool, Peak::User).0,
                persistent: mmu.pool_watermark(pool, Peak::Persistent).0,
            },
            pgs: borrowers(view, |port, pg, _| mmu.lender(port, pg) == pool),
            ..pool_status(name.clone(), &mmu.pool(&board.profile, pool))
        })
    });
    let headroom = || PoolStatus {
        watermark: Watermarks {
            user: mmu.headroom_pool_watermark(Peak::User).0,
            persistent: mmu.headroom_pool_watermark(Peak::Persistent).0,
        },
        pgs: borrowers(view, |_, _, pg| pg.headroom_pool),
        ..pool_status(HEADROOM_POOL.to_owned(), &mmu.headroom_pool(&board.profile))
    };
    let (free, returning) = view.workers.iter().fold((0, 0), |(free, returning), worker| {
        (free + worker.free_chunks, returning + worker.returning_chunks)
    });
    let readings = view.workers.iter().flat_map(|worker| &worker.ports);
    let rings: u64 = readings.map(|port| u64::from(port.rings.chunks)).sum();
    BufferReply {
        cell_bytes: spec.cell.bytes(),
        total: spec.total.0,
        ingress: ingress_use(spec),
        egress: EgressUse {
            lent: u64::from(mmu.egress_pool(&board.profile).lent.0),
            ..egress_use(spec)
        },
        pools: pools.collect(),
        headroom_pool: (spec.headroom_pool > Cells::ZERO).then(headroom),
        flood_copies: u64::from(copies.under_way()),
        flood_limit: spec.flood_limit,
        chunks: board.chunks,
        free_chunks: free,
        returning_chunks: returning,
        ring_chunks: rings,
        frame_chunks: board.chunks as i64 - (free + returning + rings) as i64,
    }
}

fn pool_status(pool: String, now: &PoolSnapshot) -> PoolStatus {
    let free = i64::from(now.size.0) - i64::from(now.lent.0) - i64::from(now.withheld.0);
    PoolStatus {
        pool,
        size: now.size.0,
        lent: now.lent.0,
        free,
        watermark: Watermarks::default(),
        pgs: Vec::new(),
    }
}

/// The PGs of a pool: those that are lossless or hold cells.
fn borrowers(view: View<'_>, of_pool: impl Fn(PortId, PgId, &PgSpec) -> bool) -> Vec<PoolPg> {
    let board = view.board;
    let mut pgs = Vec::new();
    for (number, spec) in (0u8..).zip(&board.profile.spec().ports) {
        let Some(port) = PortId::new(number) else { break };
        for (pg, spec) in spec.pgs.iter().filter(|(pg, spec)| of_pool(port, *pg, spec)) {
            let now = board.shared.mmu.pg(&board.profile, port, pg);
            let held = [now.guaranteed, now.service, now.headroom];
            if !spec.lossless && held == [Cells::ZERO; 3] {
                continue;
            }
            pgs.push(PoolPg {
                port: board.port_name(port),
                pg: pg.number(),
                service: now.service.0,
                limit: now.limit.0,
                headroom: now.headroom.0,
                xoff: now.xoff,
            });
        }
    }
    pgs
}

/// A valid profile's sums fit its total (SPEC 3.1).
fn sum(cells: impl Iterator<Item = Cells>) -> u32 {
    cells.fold(Cells::ZERO, Cells::saturating_add).0
}

fn ingress_use(spec: &ProfileSpec) -> IngressUse {
    let pgs = || spec.ports.iter().flat_map(|port| &port.pgs.0);
    let guaranteed = sum(pgs().map(|pg| pg.guaranteed));
    let private = pgs().filter(|pg| !pg.headroom_pool).map(|pg| pg.headroom);
    let headroom = sum(private.chain([spec.headroom_pool]));
    let pools = sum(spec.pools.iter().map(|(_, size)| *size));
    let used = sum([guaranteed, headroom, pools].map(Cells).into_iter());
    IngressUse { guaranteed, headroom, pools, left_over: spec.total.0.saturating_sub(used) }
}

fn egress_use(spec: &ProfileSpec) -> EgressUse {
    let queues = spec.ports.iter().flat_map(|port| &port.queues.0);
    let guarantees = sum(queues.map(|queue| queue.guarantee));
    let shared = spec.egress_shared.0;
    let left_over = spec.total.0.saturating_sub(guarantees.saturating_add(shared));
    EgressUse { guarantees, shared, left_over, lent: 0 }
}
