//! A plan for a program.

use super::Compared;
use holdfast_core::profile::Limit;
use holdfast_core::units::FrameLen;
use holdfast_plan::headroom::{Need, Term};
use holdfast_plan::propose::{Level, Proposal, PORTS};
use serde_json::{json, Map, Value};

/// Numbers are cells where no unit is said.
pub(super) fn plan(proposal: &Proposal, compared: &[Compared]) -> Value {
    let (request, sharing) = (&proposal.request, &proposal.sharing);
    let levels: Map<String, Value> =
        proposal.levels.all().into_iter().map(|level| (key(level), value(level))).collect();
    let (limit, alpha) = match sharing.limit {
        Limit::Static(cells) => (Some(cells.0), None),
        Limit::Dynamic(alpha) => (None, Some(alpha.log2())),
    };
    let holds = proposal.holds.map(|holds| {
        let length = |frame: Option<FrameLen>| frame.map(|frame| frame.0);
        json!({
            "at_once_above_bytes": length(holds.at_once),
            "behind_a_frame_above_bytes": length(holds.behind_a_frame),
        })
    });
    let mut plan = json!({
        "formula": proposal.need.formula.name(),
        "speed_bits_per_second": request.given.speed.bits_per_second(),
        "cell_bytes": request.given.cell.bytes(),
        "need": need(&proposal.need),
        "levels": levels,
        "limit": limit,
        "alpha": alpha,
        "pools": { "lossless": sharing.lossless.0, "lossy": sharing.lossy.0 },
        "smallest_lossless_frame_bytes": request.given.smallest.0,
        "holds": holds,
        "ports": PORTS,
        "total": proposal.total.0,
        "notes": proposal.notes,
        "profile": proposal.document,
    });
    if !compared.is_empty() {
        plan["compare"] = compared.iter().map(row).collect();
    }
    plan
}

fn key(level: &Level) -> String {
    level.name.to_ascii_lowercase()
}

fn value(level: &Level) -> Value {
    json!({ "cells": level.cells.0, "rule": level.rule })
}

fn need(need: &Need) -> Value {
    json!({
        "bytes": need.bytes.0,
        "cells": need.cells.0,
        "terms": need.terms.iter().map(term).collect::<Vec<_>>(),
        "beside": need.beside.iter().map(term).collect::<Vec<_>>(),
    })
}

fn term(term: &Term) -> Value {
    let amount = term.amount;
    let number = match amount.whole() {
        Some(whole) => json!(whole),
        None => json!(amount.real()),
    };
    json!({ "name": term.name, "amount": number, "unit": amount.unit(), "how": term.how })
}

fn row(row: &Compared) -> Value {
    let (result, lacks) = match &row.need {
        Ok(found) => (Some(need(found)), None),
        Err(why) => (None, Some(why)),
    };
    json!({
        "formula": row.formula.name(),
        "reverse_frame": row.reverse_frame,
        "need": result,
        "lacks": lacks,
    })
}
