//! What Headroom must be by the formula the profile names (lint B03, H07).

use super::{largest_frame, ProfilePlan};
use crate::headroom::{self, Formula, Given, Need};
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{FormulaDoc, FormulaKind, Share};
use holdfast_core::ids::PgId;
use holdfast_core::profile::{PortSpec, ProfileSpec};
use holdfast_core::units::{Bytes, CellSize, Cells, FrameLen, Nanos};

/// The default of `xoff_reaction`, as measured on two shared cores.
pub(crate) const XOFF_REACTION: Nanos = Nanos::micros(100);

/// Headroom of one lossless PG against its formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadroomTerm {
    /// The port's name.
    pub port: String,
    /// The PG.
    pub pg: u8,
    /// What the formula asks for.
    pub need: Cells,
    /// What it asks for if all lossless frames are of the smallest size the profile names.
    pub smallest_need: Cells,
    /// What the profile gives.
    pub headroom: Cells,
    /// The formula with its terms.
    pub terms: String,
}

/// Holds a changed profile to the terms of its plan: a live change moves Headroom, never what the
/// formula asks for.
pub(crate) fn hold_to(
    terms: &[HeadroomTerm],
    spec: &ProfileSpec,
    names: &[String],
) -> Result<(), Finding> {
    for (name, port) in names.iter().zip(&spec.ports) {
        for term in terms.iter().filter(|term| term.port == *name) {
            let account = PgId::new(term.pg).map(|pg| port.pgs[pg]);
            if let Some(account) = account.filter(|account| account.lossless) {
                enough(name, term.pg, account.headroom, (term.need, &term.terms))?;
            }
        }
    }
    Ok(())
}

/// B03: `have` of a PG against its need.
fn enough(port: &str, pg: u8, have: Cells, (need, text): (Cells, &str)) -> Result<(), Finding> {
    if have >= need {
        return Ok(());
    }
    let message = format!("Headroom is below its need: {text}");
    let fix = "raise it, lower the port's MTU or rx_backlog_mark, or remove [formula]";
    let key = format!("port.{port}.pg.{pg}.headroom");
    Err(Finding::new(key, message, fix).numbers(have.0, need.0))
}

/// The terms of every lossless PG.
pub(super) fn terms(
    formula: &FormulaDoc,
    plan: &ProfilePlan,
) -> Result<Vec<HeadroomTerm>, Finding> {
    let (spec, smallest) = (&plan.spec, plan.smallest_lossless);
    let mut terms = Vec::new();
    let named = plan.names.iter().zip(&spec.ports);
    for (name, port) in named.filter(|(name, _)| !name.is_empty()) {
        let (need, text) = need(formula, port, spec.cell, smallest)?;
        let smallest_need = need_of(formula, port, smallest, spec.cell)?;
        for (pg, account) in port.pgs.iter().filter(|(_, account)| account.lossless) {
            terms.push(HeadroomTerm {
                port: name.clone(),
                pg: pg.number(),
                need,
                smallest_need,
                headroom: account.headroom,
                terms: text.clone(),
            });
        }
    }
    Ok(terms)
}

/// need(L): what is in flight if all of it are frames of `length`, each in cells of its own. On
/// a CPU switch that is what waits in the RX ring and what arrives while the pause gets out.
fn need_of(
    formula: &FormulaDoc,
    port: &PortSpec,
    length: FrameLen,
    cell: CellSize,
) -> Result<Cells, Finding> {
    match formula.kind {
        FormulaKind::Cpu => {
            let reaction = formula.xoff_reaction.map_or(XOFF_REACTION, |span| span.0);
            let frames =
                headroom::cpu(port.speed, reaction, port.pfc.rx_backlog_mark, length, cell);
            let waiting = frames.frames.saturating_mul(frames.cells_a_frame.0);
            let arriving = headroom::exact(port.speed, reaction, length, cell);
            Ok(arriving.saturating_add(Cells(waiting)))
        }
        FormulaKind::Ac5p | FormulaKind::Exact => {
            Ok(headroom::exact(port.speed, t_loop(formula)?, length, cell))
        }
        FormulaKind::Ieee | FormulaKind::Sonic | FormulaKind::Mlx5 => {
            // SONiC's share of small packets is its own way to count cells, not bytes in flight.
            let given = Given { small_share: Share::NONE, ..given(formula, port, cell) };
            let bytes = need_by(formula.kind, &given)?.bytes;
            Ok(in_frames(bytes, length, cell))
        }
    }
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
        FormulaKind::Ieee | FormulaKind::Sonic | FormulaKind::Mlx5 => {
            let need = need_by(formula.kind, &given(formula, port, cell))?;
            let terms = need.terms.iter().map(|term| format!("{} {}", term.name, term.amount));
            let terms = terms.collect::<Vec<_>>().join(", ");
            let text = format!("{}: {terms} = {}", need.formula.name(), need.cells);
            Ok((need.cells, text))
        }
    }
}

/// The conditions of the field's formulas at a port.
fn given(formula: &FormulaDoc, port: &PortSpec, cell: CellSize) -> Given {
    let usual = Given::new(port.speed);
    Given {
        cell,
        cable: formula.cable,
        mtu: Some(port.mtu),
        interface_delay: formula.interface_delay.map_or(usual.interface_delay, |span| span.0),
        small_share: formula.small_share.unwrap_or(usual.small_share),
        lossless_mtu: formula.lossless_mtu.unwrap_or(usual.lossless_mtu),
        gearbox: formula.gearbox.map_or(usual.gearbox, |bytes| Bytes(bytes.0)),
        ..usual
    }
}

/// The need by one of the field's formulas; what is wrong is said at the document's keys.
fn need_by(kind: FormulaKind, given: &Given) -> Result<Need, Finding> {
    let formula = Formula::from(kind);
    if let Some(what) = formula.lacks(given) {
        let message = format!("formula {} needs {what}", formula.name());
        return Err(Finding::new("formula.cable", message, "add cable = \"40m\""));
    }
    formula.need(given).map_err(|finding| Finding { key: "formula.kind".to_owned(), ..finding })
}

/// So many bytes on the wire as frames of `length`, one more that has begun, each in cells of its
/// own.
fn in_frames(bytes: Bytes, length: FrameLen, cell: CellSize) -> Cells {
    let frames = bytes.0.div_ceil(u64::from(length.on_wire().0)).saturating_add(1);
    let cells = frames.saturating_mul(u64::from(length.to_cells(cell).0));
    Cells(u32::try_from(cells).unwrap_or(u32::MAX))
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
