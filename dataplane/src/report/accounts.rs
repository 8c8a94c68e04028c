//! PGs: account, levels in force, watermarks, edges and losses (SPEC 3).

use super::{PortReading, View};
use holdfast_api::message::{drop_counts, PgReply, PgStatus, PgThresholds, Segments, Watermarks};
use holdfast_core::drop::DropReason;
use holdfast_core::ids::{PgId, PortId};
use holdfast_core::mmu::{Mmu, PgSnapshot, Segments as CoreSegments, View as Peak};
use holdfast_core::profile::{PgSpec, Xoff, Xon};

/// The answer to `show_pg`: of every port that was read, one PG or all.
pub(crate) fn pg_reply(view: View<'_>, only: Option<PgId>) -> PgReply {
    let mut pgs = Vec::new();
    for (port, spec) in view.ports() {
        let wanted = spec.pgs.iter().filter(|(pg, _)| only.is_none_or(|only| only == *pg));
        pgs.extend(wanted.map(|(pg, spec)| pg_status(view, port, pg, spec)));
    }
    PgReply { pgs }
}

fn pg_status(view: View<'_>, port: &PortReading, pg: PgId, spec: &PgSpec) -> PgStatus {
    let board = view.board;
    let mmu = &board.shared.mmu;
    let now = mmu.pg(&board.profile, port.id, pg);
    let edges = view.workers.iter().filter_map(|worker| worker.edges.get(port.id.index()));
    let (xoff_edges, xon_edges) = edges
        .map(|edges| edges[pg])
        .fold((0, 0), |(xoff, xon), count| (xoff + count.xoff, xon + count.xon));
    let counters = &port.counters.pgs[pg];
    let dropped = &counters.dropped;
    PgStatus {
        port: board.port_name(port.id),
        pg: pg.number(),
        lossless: spec.lossless,
        xoff: now.xoff,
        pool: pool_name(view, mmu, port.id, pg),
        priorities: spec.priorities.iter().map(|priority| priority.number()).collect(),
        occupancy: Segments {
            guaranteed: now.guaranteed.0,
            service: now.service.0,
            headroom: now.headroom.0,
        },
        thresholds: thresholds(spec, &now),
        watermark: pg_watermarks(mmu, port.id, pg),
        xoff_edges,
        xon_edges,
        rx_frames: counters.admitted.frames,
        rx_bytes: counters.admitted.bytes,
        drops: drop_counts(dropped),
        // Only lossless PGs have headroom to overflow (SPEC 3.2).
        lossless_violations: dropped.get(DropReason::HeadroomOverflow),
    }
}

/// The pool that Service comes from now: the old one while cells of that are out (SPEC 3.6).
fn pool_name(view: View<'_>, mmu: &Mmu, port: PortId, pg: PgId) -> String {
    let pool = view.board.profile.spec().pools.get(mmu.lender(port, pg).index());
    pool.map(|(name, _)| name.clone()).unwrap_or_default()
}

fn thresholds(spec: &PgSpec, now: &PgSnapshot) -> PgThresholds {
    PgThresholds {
        guaranteed: spec.guaranteed.0,
        headroom: spec.headroom.0,
        limit: now.limit.0,
        xoff: match spec.xoff {
            Xoff::At(cells) => Some(cells.0),
            Xoff::AtLimit => None,
        },
        xoff_effective: now.xoff_eff.0,
        xon: match spec.xon {
            Xon::Offset(cells) | Xon::Absolute(cells) => cells.0,
        },
        resume: now.resume.0,
    }
}

/// Both views of a PG's watermarks.
pub(super) fn pg_watermarks(mmu: &Mmu, port: PortId, pg: PgId) -> Watermarks<Segments> {
    let segments = |CoreSegments { guaranteed, service, headroom }| Segments {
        guaranteed: guaranteed.0,
        service: service.0,
        headroom: headroom.0,
    };
    Watermarks {
        user: segments(mmu.watermarks(port, pg, Peak::User)),
        persistent: segments(mmu.watermarks(port, pg, Peak::Persistent)),
    }
}
