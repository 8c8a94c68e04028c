//! The PFC and MMU lines of the AC5P family's command line.

use super::{ExportInput, Exported};
use holdfast_api::doc::Finding;
use holdfast_core::profile::{Limit, PgSpec, PortSpec, Xoff, Xon};
use holdfast_core::units::Cells;
use std::fmt::Write;

/// Writes the lines: for all ports where they are alike, else for each.
pub(super) fn export(input: &ExportInput<'_>) -> Result<Exported, Vec<Finding>> {
    let spec = input.plan.spec();
    let names = input.plan.port_names();
    let mut wrong = Vec::new();
    let ports: Vec<String> =
        names.iter().zip(&spec.ports).map(|(name, port)| pfc(name, port, &mut wrong)).collect();
    let mut text = "mmu buffer-mode flowctrl-enhance\n".to_owned();
    let mut queues: Vec<String> = Vec::new();
    for (name, port) in names.iter().zip(&spec.ports) {
        queues.push(mmu(name, port, &mut wrong));
    }
    if let Some(at) = queues.windows(2).position(|pair| pair[0] != pair[1]) {
        let key = format!("port.{}.queue", names.get(at + 1).map_or("", String::as_str));
        let message = "queue guarantees and thresholds hold for all ports, and differ here";
        wrong.push(Finding::new(key, message, "make the queues of all ports alike"));
    }
    text.push_str(queues.first().map_or("", String::as_str));
    if ports.windows(2).all(|pair| pair[0] == pair[1]) {
        text.push_str(ports.first().map_or("", String::as_str));
    } else {
        for (name, lines) in names.iter().zip(&ports) {
            // Writing to a String can't fail.
            let _ = write!(text, "interface {name}\n{lines}exit\n");
        }
    }
    if ports.iter().all(String::is_empty) {
        wrong.push(Finding::new("pg", "there is no lossless PG", "export a profile with one"));
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let notes = vec![
        "the lines have no pools, maps, DBA limits, WRED, scheduler, watchdog".to_owned(),
        format!("all cells, for reading it back: {}", spec.total.0),
    ];
    Ok(Exported { text, notes })
}

fn pfc(name: &str, port: &PortSpec, wrong: &mut Vec<Finding>) -> String {
    let mut text = String::new();
    for (id, pg) in port.pgs.iter().filter(|(_, pg)| pg.lossless) {
        let key = format!("port.{name}.pg.{id}");
        let Some((xoff, xon)) = marks(&key, pg, wrong) else { continue };
        let list: Vec<u8> =
            pg.priorities.and(port.pfc.enabled).iter().map(|p| p.number()).collect();
        if list != [id.number()] {
            let message = "a PG is paused as the priority of its number there, and no other";
            let finding = Finding::new(format!("{key}.priorities"), message, "set priorities");
            wrong.push(finding.numbers(format!("{list:?}"), format!("[{id}]")));
        }
        let of = format!("priority {id}");
        let _ = write!(
            text,
            "pfc enable {of}\npfc pause-threshold {of} {xoff} cells\n\
             pfc resume-threshold {of} {xon} cells\npfc headroom {of} {} cells\n",
            pg.headroom.0
        );
    }
    text
}

fn marks(key: &str, pg: &PgSpec, wrong: &mut Vec<Finding>) -> Option<(u32, u32)> {
    let mut cannot = |name: &str, message: &str, fix: &str| {
        wrong.push(Finding::new(format!("{key}.{name}"), message, fix));
    };
    if pg.guaranteed != Cells::ZERO {
        cannot("guaranteed", "no line has the Guaranteed of a PG", "set guaranteed = 0");
    }
    if pg.headroom_pool {
        cannot("headroom_pool", "Headroom is private there", "set headroom_pool = false");
    }
    if pg.xon_floor != Cells::ZERO {
        cannot("xon_floor", "XON is an offset there, without a floor", "remove it");
    }
    match (pg.xoff, pg.xon) {
        (Xoff::At(xoff), Xon::Offset(xon)) => Some((xoff.0, xon.0)),
        (Xoff::At(xoff), Xon::Absolute(level)) => Some((xoff.0, xoff.saturating_sub(level).0)),
        (Xoff::AtLimit, _) => {
            cannot("xoff", "XOFF is a watermark there, not the limit", "give it in cells");
            None
        }
    }
}

fn mmu(name: &str, port: &PortSpec, wrong: &mut Vec<Finding>) -> String {
    let mut text = String::new();
    for (id, queue) in port.queues.iter() {
        if queue.guarantee != Cells::ZERO {
            let _ = writeln!(text, "mmu queue-guarantee {id} {} cells", queue.guarantee.0);
        }
        match queue.limit {
            Some(Limit::Static(cells)) => {
                let _ = writeln!(text, "mmu queue-threshold {id} {} cells", cells.0);
            }
            Some(Limit::Dynamic(alpha)) => {
                let _ = writeln!(text, "mmu queue-threshold {id} alpha {}", alpha.log2());
            }
            None => {}
        }
        if queue.min_rate.or(queue.max_rate).is_some() {
            let key = format!("port.{name}.queue.{id}");
            wrong.push(Finding::new(key, "no line has rates of a queue", "remove them"));
        }
    }
    text
}
