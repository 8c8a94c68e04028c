//! The profile in force.

use crate::layout::{bytes, list, or_dash, table, time};
use holdfast_api::amount::rate_text;
use holdfast_api::message::{ProfilePort, ProfileReply};

pub(super) fn profile(reply: &ProfileReply) -> String {
    let cell = u64::from(reply.cell_bytes);
    let pools: Vec<String> =
        reply.pools.iter().map(|pool| format!("{} {}", pool.pool, pool.size)).collect();
    let mut out = format!(
        "Profile {}, generation {}\nTotal {} cells of {} bytes ({}); pools: {}; shared headroom \
         {}; egress shared {}; flood limit {} copies\n",
        reply.name,
        reply.generation,
        reply.total,
        reply.cell_bytes,
        bytes(u64::from(reply.total) * cell),
        pools.join(", "),
        reply.headroom_pool,
        reply.egress_shared,
        reply.flood_limit
    );
    for note in &reply.notes {
        out.push_str(&format!("Note: {note}\n"));
    }
    for port in &reply.ports {
        out.push_str(&format!("\n{}", port_text(port)));
    }
    out
}

fn limit(fixed: Option<u32>, alpha: Option<i8>) -> String {
    match (fixed, alpha) {
        (Some(cells), _) => cells.to_string(),
        (None, Some(log2)) => format!("2^{log2} x free"),
        (None, None) => "-".to_owned(),
    }
}

fn port_text(port: &ProfilePort) -> String {
    let mut pgs = table(
        ["pg", "class", "pool", "guaranteed", "headroom", "limit", "XOFF", "XON", "floor"],
        3,
    );
    for pg in &port.pgs {
        let lossless = |text: String| if pg.lossless { text } else { "-".to_owned() };
        let shared = if pg.headroom_pool { " (shared)" } else { "" };
        let class = match pg.lossless {
            true => format!("lossless, pauses {}", list(&pg.priorities)),
            false => "lossy".to_owned(),
        };
        pgs.add_row([
            pg.pg.to_string(),
            class,
            pg.pool.clone(),
            pg.guaranteed.to_string(),
            lossless(format!("{}{shared}", pg.headroom)),
            limit(pg.limit, pg.alpha),
            lossless(pg.xoff.map_or_else(|| "limit".to_owned(), |cells| cells.to_string())),
            lossless(format!("{} ({})", pg.xon, pg.xon_mode)),
            lossless(pg.xon_floor.to_string()),
        ]);
    }
    let mut queues = table(
        ["queue", "service", "guarantee", "limit", "min rate", "max rate", "Kmin", "Kmax", "Pmax"],
        2,
    );
    for queue in &port.queues {
        let line = queue.wred.as_ref();
        queues.add_row([
            queue.queue.to_string(),
            queue.service.clone(),
            queue.guarantee.to_string(),
            limit(queue.limit, queue.alpha),
            or_dash(queue.min_rate.map(rate_text)),
            or_dash(queue.max_rate.map(rate_text)),
            or_dash(line.map(|line| line.kmin)),
            or_dash(line.map(|line| line.kmax)),
            line.map_or_else(|| "off".to_owned(), |line| format!("{:.3}", line.pmax)),
        ]);
    }
    let pause = if port.link_pause { ", 802.3x PAUSE obeyed" } else { "" };
    format!(
        "Port {}: {}, MTU {}, trusts {}, PFC on {} ({} quanta, resume by {}, RX backlog mark {} \
         frames){pause}; TX in flight {} bytes, catches up {}\n{pgs}\n{queues}\n",
        port.port,
        rate_text(port.speed_bits_per_second),
        port.mtu,
        port.maps.trust,
        list(&port.pfc_enabled),
        port.pause_quanta,
        port.resume,
        port.rx_backlog_mark,
        port.tx_inflight,
        time(port.catch_up_ns)
    )
}
