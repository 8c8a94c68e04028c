//! Relations between thresholds that make lossless hold (SPEC 3, AC5P): errors of the linter,
//! which block apply. The core's own check holds ranges and the budget.

use crate::amounts::q_limit;
use crate::queue::check_line;
use holdfast_api::doc::Finding;
use holdfast_core::ids::{Cos, PgId, Priority, QueueId};
use holdfast_core::profile::{Limit, PgSpec, PortSpec, ProfileSpec, Xoff, Xon};
use holdfast_core::units::{Cells, FrameLen};

/// Holds `spec` against 0 < Kmin <= Kmax < XOFF - XON < XOFF < limit on lossless PGs and the
/// queues they feed, one frame fitting everywhere (B11), and PFC and lossless agreeing (P01,
/// P09). `names` are the ports' names in order.
///
/// # Errors
/// The first thing wrong, with its key and numbers.
pub fn relations(spec: &ProfileSpec, names: &[String]) -> Result<(), Finding> {
    for (number, port) in spec.ports.iter().enumerate() {
        let name = names.get(number).cloned().unwrap_or_else(|| number.to_string());
        let frame = FrameLen(port.largest_frame()).to_cells(spec.cell);
        for (pg, account) in port.pgs.iter() {
            let key = format!("port.{name}.pg.{pg}");
            let pool = spec.pools.get(account.pool.index()).map_or(Cells::ZERO, |(_, size)| *size);
            check_sizes(&key, account, pool, frame)?;
            if account.lossless {
                check_marks(&key, account, pool)?;
                check_pfc(&key, pg, account, port)?;
                check_marking(&name, pg, account, spec, names, port)?;
            }
        }
        check_enabled(&name, port)?;
        for (queue, entry) in port.queues.iter() {
            if let Some(line) = &entry.wred {
                check_line(&format!("port.{name}.queue.{queue}.wred"), line)?;
            }
        }
    }
    Ok(())
}

/// B11 and B03: what is given must hold one frame of the port's MTU.
fn check_sizes(key: &str, pg: &PgSpec, pool: Cells, frame: Cells) -> Result<(), Finding> {
    let below = |name: &str, what: &str, value: Cells, fix: &str| {
        let message = format!("{what} holds less than one largest frame of the port");
        let finding = Finding::new(format!("{key}.{name}"), message, fix);
        Err(finding.numbers(value.0, format!("at least {}", frame.0)))
    };
    if pg.guaranteed != Cells::ZERO && pg.guaranteed < frame {
        return below("guaranteed", "Guaranteed", pg.guaranteed, "use 0 or enough for a frame");
    }
    if !pg.lossless {
        return Ok(());
    }
    if pg.headroom < frame {
        return below("headroom", "Headroom", pg.headroom, "raise it: 0 is never lossless");
    }
    let (name, most) = match pg.limit {
        Limit::Static(limit) => ("limit", limit.min(pool)),
        Limit::Dynamic(alpha) => ("alpha", alpha.of(pool)),
    };
    if most < frame {
        return below(name, "what the PG may borrow", most, "raise it, or the pool");
    }
    Ok(())
}

/// The level of resume without the floor, where XOFF is a fixed level.
fn resume_level(pg: &PgSpec, xoff: Cells) -> Cells {
    match pg.xon {
        Xon::Offset(window) => xoff.saturating_sub(window),
        Xon::Absolute(level) => level,
    }
}

/// B05 and B04: 0 < XON < XOFF < limit. With `xoff = "limit"` there is no level to compare.
fn check_marks(key: &str, pg: &PgSpec, pool: Cells) -> Result<(), Finding> {
    let Xoff::At(xoff) = pg.xoff else { return Ok(()) };
    if xoff.0 < 2 {
        let message = "XOFF leaves no level for XON below it";
        let fix = "use 40..70 % of the limit";
        return Err(Finding::new(format!("{key}.xoff"), message, fix).numbers(xoff.0, "at least 2"));
    }
    let (Xon::Offset(xon) | Xon::Absolute(xon)) = pg.xon;
    if xon == Cells::ZERO || xon >= xoff {
        let message = "XON must lie between 0 and XOFF";
        let fix = "as an offset about 25 % of XOFF, as a level about 75 %";
        let finding = Finding::new(format!("{key}.xon"), message, fix);
        return Err(finding.numbers(xon.0, format!("1..{}", xoff.0 - 1)));
    }
    let limit = q_limit(pg.limit, pool);
    if xoff >= limit {
        let message = "XOFF is not below what one PG can borrow: Headroom would be entered \
                       before the pause";
        let fix = "lower xoff to 40..70 % of the limit, or raise the pool, alpha or limit";
        let finding = Finding::new(format!("{key}.xoff"), message, fix);
        return Err(finding.numbers(xoff.0, format!("below {}", limit.0)));
    }
    Ok(())
}

/// P01 and P09, seen from the PG.
fn check_pfc(key: &str, pg: PgId, account: &PgSpec, port: &PortSpec) -> Result<(), Finding> {
    if account.priorities.and(port.pfc.enabled).is_empty() {
        let listed: Vec<u8> = account.priorities.iter().map(Priority::number).collect();
        let message = "a lossless PG pauses nobody: PFC is enabled on none of its priorities";
        let fix = "enable one of them in pfc.enabled, or set lossless = false";
        let finding = Finding::new(format!("{key}.priorities"), message, fix);
        let enabled: Vec<u8> = port.pfc.enabled.iter().map(Priority::number).collect();
        return Err(finding.numbers(format!("{listed:?}"), format!("{enabled:?}")));
    }
    let missing = Cos::all()
        .filter(|cos| port.maps.cos_to_pg[*cos] == pg)
        .find(|cos| !account.priorities.contains(Priority::from_bits(cos.number())));
    if let Some(cos) = missing {
        let message = format!("CoS {cos} is mapped to this lossless PG, which doesn't pause it");
        let fix = format!("add {cos} to priorities, or map CoS {cos} to a lossy PG");
        return Err(Finding::new(format!("{key}.priorities"), message, fix));
    }
    Ok(())
}

/// P01, seen from the priority.
fn check_enabled(name: &str, port: &PortSpec) -> Result<(), Finding> {
    for priority in port.pfc.enabled.iter() {
        let paused_by = |pg: &PgSpec| pg.lossless && pg.priorities.contains(priority);
        if !port.pgs.0.iter().any(paused_by) {
            let message =
                format!("PFC is enabled on priority {priority}, but no lossless PG has it");
            let fix = format!("remove {priority}, or give it to a lossless PG's priorities");
            return Err(Finding::new(format!("port.{name}.pfc.enabled"), message, fix));
        }
    }
    Ok(())
}

/// E02 and E03: every queue that this PG's frames may leave by marks below the resume level.
fn check_marking(
    name: &str,
    pg: PgId,
    account: &PgSpec,
    spec: &ProfileSpec,
    names: &[String],
    port: &PortSpec,
) -> Result<(), Finding> {
    let Xoff::At(xoff) = account.xoff else { return Ok(()) };
    let resume = resume_level(account, xoff);
    let feeds = |egress: &PortSpec, queue: QueueId| {
        Cos::all()
            .any(|cos| port.maps.cos_to_pg[cos] == pg && egress.maps.cos_to_queue[cos] == queue)
    };
    for (egress, egress_name) in spec.ports.iter().zip(names) {
        for (queue, entry) in egress.queues.iter().filter(|(queue, _)| feeds(egress, *queue)) {
            let Some(line) = &entry.wred else { continue };
            if line.kmax >= resume {
                let message = format!(
                    "Kmax is not below the level at which PG {pg} of {name} resumes: ECN must act \
                     before PFC (0 < Kmin <= Kmax < XOFF - XON < XOFF)"
                );
                let key = format!("port.{egress_name}.queue.{queue}.wred.kmax");
                let fix = "lower kmax, raise xoff, or lower xon";
                let finding = Finding::new(key, message, fix);
                return Err(finding.numbers(line.kmax.0, format!("below {}", resume.0)));
            }
        }
    }
    Ok(())
}
