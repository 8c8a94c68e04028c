//! `pg_profile_lookup.ini`: one row for each speed of the ports.

use super::ingress::bytes;
use super::{ExportInput, Exported};
use crate::import::{PgLookup, LOOKUP_COLUMNS};
use holdfast_api::doc::Finding;
use holdfast_core::profile::{Limit, PgSpec, Xoff, Xon};
use holdfast_core::units::{BitRate, CellSize, Cells};
use std::collections::BTreeMap;

/// Writes the table.
pub(super) fn export(input: &ExportInput<'_>) -> Result<Exported, Vec<Finding>> {
    let Some(cable) = input.cable else {
        let message = "a row of the table has a cable";
        return Err(vec![Finding::new("cable", message, "give --cable 40m")]);
    };
    let spec = input.plan.spec();
    let mut wrong = Vec::new();
    let mut rows: BTreeMap<BitRate, (String, &PgSpec)> = BTreeMap::new();
    for (facts, port) in input.facts.ports.iter().zip(&spec.ports) {
        for (id, pg) in port.pgs.iter().filter(|(_, pg)| pg.lossless) {
            let key = format!("port.{}.pg.{id}", facts.name);
            match rows.get(&facts.speed) {
                None => {
                    rows.insert(facts.speed, (key, pg));
                }
                Some((_, other)) if alike(other, pg) => {}
                Some((other, _)) => {
                    let message = format!("differs from {other}, and a speed has one row");
                    wrong.push(Finding::new(key, message, "make lossless PGs of a speed alike"));
                }
            }
        }
    }
    let mut text = format!("{LOOKUP_COLUMNS}\n");
    for (speed, (key, pg)) in &rows {
        text.push_str(&row(*speed, cable, key, pg, spec.cell, &mut wrong));
    }
    if rows.is_empty() {
        wrong.push(Finding::new("pg", "there is no lossless PG", "export a profile with one"));
    }
    if wrong.is_empty() {
        // Says what is wrong with the cable.
        PgLookup::parse(&text).map_err(|finding| vec![finding])?;
        let note = "the table has thresholds of lossless PGs only: no pools, maps or queues";
        return Ok(Exported { text, notes: vec![note.to_owned()] });
    }
    Err(wrong)
}

fn alike(one: &PgSpec, other: &PgSpec) -> bool {
    let marks = |pg: &PgSpec| (pg.guaranteed, pg.headroom, pg.limit, pg.xoff, pg.xon, pg.xon_floor);
    marks(one) == marks(other)
}

fn row(
    speed: BitRate,
    cable: &str,
    key: &str,
    pg: &PgSpec,
    cell: CellSize,
    wrong: &mut Vec<Finding>,
) -> String {
    let mut cannot = |name: &str, message: &str, fix: &str| {
        wrong.push(Finding::new(format!("{key}.{name}"), message, fix));
    };
    if pg.xoff != Xoff::AtLimit {
        let message = "SONiC pauses at the limit, it has no watermark below";
        cannot("xoff", message, "set xoff = \"limit\"");
    }
    let alpha = match pg.limit {
        Limit::Dynamic(alpha) => alpha.log2(),
        Limit::Static(_) => {
            cannot("limit", "the table has dynamic thresholds only", "use alpha");
            0
        }
    };
    let (xon, offset) = match pg.xon {
        Xon::Offset(offset) => (pg.xon_floor, Some(offset)),
        Xon::Absolute(level) => (level, None),
    };
    if offset.is_none() && pg.xon_floor != Cells::ZERO {
        let message = "SONiC has one level to resume at: xon and xon_floor are two";
        cannot("xon_floor", message, "remove xon_floor, or set xon_mode = \"offset\"");
    }
    if offset.is_none() && pg.guaranteed == xon.saturating_add(pg.headroom) {
        let message = "a size of xon + headroom would be read as holding the Headroom";
        cannot("guaranteed", message, "make guaranteed one cell larger");
    }
    let megabits = speed.bits_per_second() / 1_000_000;
    let offset = offset.map(|offset| format!(" {}", bytes(offset, cell))).unwrap_or_default();
    format!(
        "{megabits} {cable} {} {} {} {alpha}{offset}\n",
        bytes(pg.guaranteed, cell),
        bytes(xon, cell),
        bytes(pg.headroom, cell)
    )
}
