//! PGs, queues, marking and the shared buffer. Cells throughout.

use crate::layout::{bytes, drops, list, or_dash, table};
use holdfast_api::message::{BufferReply, EcnReply, PgReply, PoolStatus, QueueReply, QueueStatus};

pub(super) fn pgs(reply: &PgReply) -> String {
    let mut rows = table(
        [
            "port",
            "pg",
            "class",
            "state",
            "pool",
            "guaranteed",
            "service",
            "headroom",
            "XOFF",
            "resume",
            "peak svc/hdrm",
            "edges",
            "frames",
            "drops",
        ],
        5,
    );
    for pg in &reply.pgs {
        let (now, at) = (pg.occupancy, pg.thresholds);
        let (class, state) = match (pg.lossless, pg.xoff) {
            (true, true) => (format!("lossless {}", list(&pg.priorities)), "XOFF"),
            (true, false) => (format!("lossless {}", list(&pg.priorities)), "open"),
            (false, _) => ("lossy".to_owned(), "open"),
        };
        let mark = |level: u32| if pg.lossless { level.to_string() } else { "-".to_owned() };
        let peak = pg.watermark.user;
        rows.add_row([
            pg.port.clone(),
            pg.pg.to_string(),
            class,
            state.to_owned(),
            pg.pool.clone(),
            format!("{}/{}", now.guaranteed, at.guaranteed),
            format!("{}/{}", now.service, at.limit),
            format!("{}/{}", now.headroom, at.headroom),
            mark(at.xoff_effective),
            mark(at.resume),
            format!("{}/{}", peak.service, peak.headroom),
            format!("{}/{}", pg.xoff_edges, pg.xon_edges),
            pg.rx_frames.to_string(),
            drops(&pg.drops),
        ]);
    }
    let lost: u64 = reply.pgs.iter().map(|pg| pg.lossless_violations).sum();
    format!(
        "Cells: in use/size, Service in use/limit of now. Edges: XOFF/XON.\n{rows}\n\
         Lossless frames lost: {lost}\n"
    )
}

pub(super) fn queues(reply: &QueueReply) -> String {
    let mut rows = table(
        [
            "port",
            "queue",
            "service",
            "state",
            "cells",
            "frames",
            "guarantee",
            "limit",
            "peak",
            "tx frames",
            "tx",
            "drops",
        ],
        4,
    );
    for queue in &reply.queues {
        rows.add_row([
            queue.port.clone(),
            queue.queue.to_string(),
            queue.service.clone(),
            state(queue).to_owned(),
            queue.occupancy.to_string(),
            queue.frames.to_string(),
            queue.guarantee.to_string(),
            or_dash(queue.limit),
            queue.watermark.user.to_string(),
            queue.tx_frames.to_string(),
            bytes(queue.tx_bytes),
            drops(&queue.drops),
        ]);
    }
    format!("Service: strict, or the weight. Limit: of lossy frames, cells.\n{rows}\n")
}

const fn state(queue: &QueueStatus) -> &'static str {
    match (queue.held, queue.paused) {
        (true, true) => "held, paused",
        (true, false) => "held",
        (false, true) => "paused",
        (false, false) => "open",
    }
}

pub(super) fn ecn(reply: &EcnReply) -> String {
    let mut rows = table(
        [
            "port",
            "queue",
            "mark at",
            "no ECT",
            "depth",
            "Kmin",
            "Kmax",
            "Pmax",
            "marked",
            "came as CE",
            "dropped",
            "skipped",
        ],
        4,
    );
    for queue in &reply.queues {
        let line = queue.wred.as_ref();
        rows.add_row([
            queue.port.clone(),
            queue.queue.to_string(),
            or_dash(line.map(|line| &line.mark_at)),
            or_dash(line.map(|line| &line.not_ect)),
            queue.depth.to_string(),
            or_dash(line.map(|line| line.kmin)),
            or_dash(line.map(|line| line.kmax)),
            line.map_or_else(|| "off".to_owned(), |line| format!("{:.3}", line.pmax)),
            queue.marked.to_string(),
            queue.ce_passed.to_string(),
            queue.wred_dropped.to_string(),
            queue.mark_skipped.to_string(),
        ]);
    }
    format!("Depth, Kmin, Kmax in cells; counters in frames.\n{rows}\n")
}

pub(super) fn buffer(reply: &BufferReply) -> String {
    let cell = u64::from(reply.cell_bytes);
    let size = |cells: u32| format!("{cells} cells ({})", bytes(u64::from(cells) * cell));
    let (i, e) = (&reply.ingress, &reply.egress);
    let mut out = format!(
        "Total {}, {} bytes a cell\nIngress: Guaranteed {} + Headroom {} + pools {}, left over {}\n\
         Egress: guarantees {} + shared {} ({} lent), left over {}\n\
         Copies of floods {}/{}\n\
         Chunks {}: {} free, {} on their way home, {} in receiving rings, {} with frames\n\n",
        size(reply.total),
        reply.cell_bytes,
        i.guaranteed,
        i.headroom,
        i.pools,
        i.left_over,
        e.guarantees,
        e.shared,
        e.lent,
        e.left_over,
        reply.flood_copies,
        reply.flood_limit,
        reply.chunks,
        reply.free_chunks,
        reply.returning_chunks,
        reply.ring_chunks,
        reply.frame_chunks,
    );
    for pool in reply.pools.iter().chain(&reply.headroom_pool) {
        out.push_str(&pool_text(pool, &size(pool.size)));
    }
    out
}

fn pool_text(pool: &PoolStatus, size: &str) -> String {
    let mut out = format!(
        "Pool {}: {size}, lent {}, free {}, peak {} since clear, {} since start\n",
        pool.pool, pool.lent, pool.free, pool.watermark.user, pool.watermark.persistent
    );
    if pool.pgs.is_empty() {
        out.push('\n');
        return out;
    }
    let mut rows = table(["port", "pg", "state", "service", "limit now", "headroom"], 3);
    for pg in &pool.pgs {
        rows.add_row([
            pg.port.clone(),
            pg.pg.to_string(),
            if pg.xoff { "XOFF" } else { "open" }.to_owned(),
            pg.service.to_string(),
            pg.limit.to_string(),
            pg.headroom.to_string(),
        ]);
    }
    out.push_str(&format!("{rows}\n\n"));
    out
}
