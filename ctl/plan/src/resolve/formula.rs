//! Headroom held against the formula the profile names (lint B03, H07).

use super::{largest_frame, ProfilePlan};
use crate::headroom;
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{FormulaDoc, FormulaKind};
use holdfast_core::profile::PortSpec;
use holdfast_core::units::{CellSize, Cells, FrameLen, Nanos};

/// The default of `xoff_reaction`, as measured on two shared cores.
const XOFF_REACTION: Nanos = Nanos::micros(100);

/// Headroom of one lossless PG against its formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadroomTerm {
    /// The port's name.
    pub port: String,
    /// The PG.
    pub pg: u8,
    /// What the formula asks for.
    pub need: Cells,
    /// What the profile gives.
    pub headroom: Cells,
    /// The formula with its terms.
    pub terms: String,
}

/// The terms of every lossless PG, and warnings.
pub(super) fn hold(
    formula: &FormulaDoc,
    plan: &ProfilePlan,
) -> Result<(Vec<HeadroomTerm>, Vec<String>), Finding> {
    let spec = &plan.spec;
    let (mut terms, mut notes) = (Vec::new(), Vec::new());
    for (name, port) in plan.names.iter().zip(&spec.ports) {
        let (need, text) = need(formula, port, spec.cell, plan.smallest_lossless)?;
        for (pg, account) in port.pgs.iter().filter(|(_, account)| account.lossless) {
            let (have, key) = (account.headroom, format!("port.{name}.pg.{pg}.headroom"));
            if have < need {
                let message = format!("Headroom is below its need: {text}");
                let fix = "raise it, lower the port's MTU or rx_backlog_mark, or remove [formula]";
                return Err(Finding::new(key, message, fix).numbers(have.0, need.0));
            }
            if u64::from(have.0) * 100 < u64::from(need.0) * 105 {
                notes.push(format!("{key}: {have} is within 5 % of its need: {text}"));
            }
            let (port, terms_text) = (name.clone(), text.clone());
            let pg = pg.number();
            terms.push(HeadroomTerm { port, pg, need, headroom: have, terms: terms_text });
        }
    }
    Ok((terms, notes))
}

fn need(
    formula: &FormulaDoc,
    port: &PortSpec,
    cell: CellSize,
    smallest: FrameLen,
) -> Result<(Cells, String), Finding> {
    let rate = port.speed;
    match formula.kind {
        FormulaKind::Cpu => {
            let reaction = formula.xoff_reaction.map_or(XOFF_REACTION, |span| span.0);
            let mark = port.pfc.rx_backlog_mark;
            let terms = headroom::cpu(rate, reaction, mark, largest_frame(port.mtu), cell);
            let text = format!(
                "cpu: {} within {} ns of reaction + {} frames x {} = {}",
                terms.reaction, reaction.0, terms.frames, terms.cells_a_frame, terms.need
            );
            Ok((terms.need, text))
        }
        FormulaKind::Ac5p => {
            let t_loop = t_loop(formula)?;
            let need = headroom::ac5p(rate, t_loop, port.mtu, cell);
            let (ns, mtu) = (t_loop.0, port.mtu);
            let frames = match mtu {
                0..headroom::FLAT_FROM_MTU => format!("2 x {mtu} B + 64 B"),
                _ => "frames and PFC frame, at least 20 KB".to_owned(),
            };
            Ok((need, format!("ac5p: rate x {ns} ns + {frames} = {need}")))
        }
        FormulaKind::Exact => {
            let t_loop = t_loop(formula)?;
            let need = headroom::exact(rate, t_loop, smallest, cell);
            let (ns, bytes) = (t_loop.0, smallest.0);
            Ok((need, format!("exact: frames of {bytes} B within {ns} ns, one more = {need}")))
        }
    }
}

/// The loop: what is declared and its cable.
fn t_loop(formula: &FormulaDoc) -> Result<Nanos, Finding> {
    let declared = formula.t_loop.map(|span| span.0);
    headroom::t_loop(declared, formula.cable).ok_or_else(|| {
        Finding::new(
            "formula.t_loop",
            "this formula needs the time of the loop",
            "add t_loop = \"3us\", or cable = \"100m\"",
        )
    })
}
