//! Live changes: the running profile with some thresholds replaced (`set_pg`, `set_wred`).

use crate::amounts::{cells, limit, q_limit};
use crate::error::PlanError;
use crate::lint::refuse;
use crate::queue::{ewma, mark_at, not_ect, probability, PMAX};
use crate::resolve::formula::{self, HeadroomTerm};
use holdfast_api::amount::{CellAmount, XoffAmount};
use holdfast_api::doc::Finding;
use holdfast_api::message::{SetPg, SetWred, WredView};
use holdfast_api::profile_doc::XonModeDoc;
use holdfast_core::ids::{PgId, QueueId};
use holdfast_core::profile::{
    Limit, MarkAt, NotEct, PgSpec, Profile, ProfileSpec, QueueSpec, WredSpec, Xoff, Xon,
};
use holdfast_core::units::{CellSize, Cells};

/// A changed profile and what changed in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The whole profile, without an error of the linter.
    pub spec: ProfileSpec,
    /// One line a change: `h1 pg 3 xoff: 4096 -> 5000`; empty if all was so already.
    pub changed: Vec<String>,
}

impl Edit {
    /// The profile that workers run.
    ///
    /// # Errors
    /// [`PlanError::Profile`], such as a Headroom for which the total has no room.
    pub fn profile(&self, generation: u64) -> Result<Profile, PlanError> {
        Ok(Profile::new(generation, self.spec.clone())?)
    }
}

/// `spec` with new thresholds of a PG, at one port or at all where it is lossless. `terms` are
/// those of the plan that `spec` came from (B03): what a file with this Headroom would be refused
/// for, a live change is too.
///
/// # Errors
/// [`PlanError`]: unknown port, nothing to change, a range, a relation, or Headroom below the
/// need by the profile's formula; `spec` is untouched.
pub fn set_pg(
    spec: &ProfileSpec,
    names: &[String],
    terms: &[HeadroomTerm],
    patch: &SetPg,
) -> Result<Edit, PlanError> {
    let ports = ports_of(patch.port.as_deref(), names)?;
    let pg = PgId::new(patch.pg).ok_or_else(|| out_of_range("pg", patch.pg))?;
    let nothing = SetPg { port: patch.port.clone(), pg: patch.pg, ..SetPg::default() };
    if *patch == nothing {
        return Err(nothing_to_change("xoff, xon, headroom, guaranteed, limit or alpha").into());
    }
    let mut edit = Edit { spec: spec.clone(), changed: Vec::new() };
    let mut touched = false;
    for (name, port) in names.iter().zip(&mut edit.spec.ports) {
        let named = patch.port.as_deref() == Some(name);
        if !ports.contains(&name.as_str()) || (!port.pgs[pg].lossless && !named) {
            continue;
        }
        touched = true;
        let key = format!("port.{name}.pg.{pg}");
        let before = port.pgs[pg];
        let pools = &spec.pools;
        let pool = pools.get(before.pool.index()).map_or(Cells::ZERO, |(_, size)| *size);
        let after = patched_pg(&key, &before, patch, spec.cell, pool)?;
        port.pgs[pg] = after;
        note_pg(&format!("{name} pg {pg}"), &before, &after, &mut edit.changed);
    }
    if !touched {
        let fix = "name a port to change its lossy PG";
        return Err(Finding::new("pg", format!("PG {pg} is lossless at no port"), fix).into());
    }
    refuse(&edit.spec, names)?;
    formula::hold_to(terms, &edit.spec, names)?;
    Ok(edit)
}

/// `spec` with a new marking line of a queue, at one port or at all.
///
/// # Errors
/// As [`set_pg`].
pub fn set_wred(spec: &ProfileSpec, names: &[String], patch: &SetWred) -> Result<Edit, PlanError> {
    let ports = ports_of(patch.port.as_deref(), names)?;
    let queue = QueueId::new(patch.queue).ok_or_else(|| out_of_range("queue", patch.queue))?;
    let mut plain = SetWred { port: patch.port.clone(), queue: patch.queue, ..SetWred::default() };
    if *patch == plain {
        return Err(nothing_to_change("kmin, kmax, pmax or off").into());
    }
    plain.off = true;
    if patch.off && *patch != plain {
        let fix = "give either off or a line";
        return Err(Finding::new("off", "off excludes every other key", fix).into());
    }
    let mut edit = Edit { spec: spec.clone(), changed: Vec::new() };
    for (name, port) in names.iter().zip(&mut edit.spec.ports) {
        if !ports.contains(&name.as_str()) {
            continue;
        }
        let key = format!("port.{name}.queue.{queue}.wred");
        let before = port.queues[queue];
        let after = if patch.off {
            None
        } else {
            Some(patched_line(&key, &before, patch, spec.cell, spec.egress_shared)?)
        };
        port.queues[queue].wred = after;
        let place = format!("{name} queue {queue}");
        note_line(&place, before.wred.as_ref(), after.as_ref(), &mut edit.changed);
    }
    refuse(&edit.spec, names)?;
    Ok(edit)
}

fn ports_of<'a>(port: Option<&'a str>, names: &'a [String]) -> Result<Vec<&'a str>, PlanError> {
    match port {
        // A place without a name is vacant.
        None => Ok(names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect()),
        Some(name) if !name.is_empty() && names.iter().any(|known| known == name) => Ok(vec![name]),
        Some(name) => Err(PlanError::UnknownPort { name: name.to_owned(), known: names.to_vec() }),
    }
}

fn out_of_range(key: &str, number: u8) -> Finding {
    Finding::new(key, "out of range", "use 0..7").numbers(number, "0..7")
}

fn nothing_to_change(keys: &str) -> Finding {
    Finding::new("call", "there is nothing to change", format!("give at least one of {keys}"))
}

fn patched_pg(
    key: &str,
    before: &PgSpec,
    patch: &SetPg,
    cell: CellSize,
    pool: Cells,
) -> Result<PgSpec, Finding> {
    let mut pg = *before;
    pg.limit = limit(key, patch.limit, patch.alpha, cell)?.unwrap_or(pg.limit);
    let lossless_keys = patch.xoff.is_some() || patch.xon.is_some() || patch.xon_mode.is_some();
    if !pg.lossless && (lossless_keys || patch.xon_floor.is_some() || patch.headroom.is_some()) {
        let message = "the PG is lossy here: it has neither XOFF, XON nor Headroom";
        return Err(Finding::new(key, message, "choose a lossless PG, or set limit or alpha"));
    }
    let of = Some(q_limit(pg.limit, pool));
    let value = |name: &str, amount: Option<CellAmount>, old: Cells| {
        let key = format!("{key}.{name}");
        amount.map_or(Ok(old), |amount| cells(&key, amount, cell, of))
    };
    pg.guaranteed = value("guaranteed", patch.guaranteed, pg.guaranteed)?;
    pg.headroom = value("headroom", patch.headroom, pg.headroom)?;
    pg.xon_floor = value("xon_floor", patch.xon_floor, pg.xon_floor)?;
    pg.xoff = match patch.xoff {
        Some(XoffAmount::At(amount)) => Xoff::At(value("xoff", Some(amount), Cells::ZERO)?),
        Some(XoffAmount::Limit) => Xoff::AtLimit,
        None => pg.xoff,
    };
    let (old, mode) = match pg.xon {
        Xon::Offset(cells) => (cells, XonModeDoc::Offset),
        Xon::Absolute(cells) => (cells, XonModeDoc::Absolute),
    };
    let xon = value("xon", patch.xon, old)?;
    pg.xon = match patch.xon_mode.unwrap_or(mode) {
        XonModeDoc::Offset => Xon::Offset(xon),
        XonModeDoc::Absolute => Xon::Absolute(xon),
    };
    Ok(pg)
}

fn patched_line(
    key: &str,
    queue: &QueueSpec,
    patch: &SetWred,
    cell: CellSize,
    shared: Cells,
) -> Result<WredSpec, Finding> {
    let of = queue.limit.map(|limit| q_limit(limit, shared));
    let value = |name: &str, amount: Option<CellAmount>, old: Option<Cells>| {
        let key = format!("{key}.{name}");
        match (amount, old) {
            (Some(amount), _) => cells(&key, amount, cell, of),
            (None, Some(old)) => Ok(old),
            (None, None) => {
                let message = format!("the queue has no marking line yet: {name} is needed");
                Err(Finding::new(key, message, "give kmin and kmax"))
            }
        }
    };
    let old = queue.wred;
    let pmax = match (patch.pmax, old) {
        (None, Some(line)) => line.pmax,
        (given, _) => probability(&format!("{key}.pmax"), given.unwrap_or(PMAX))?,
    };
    let shift = patch.ewma_weight.unwrap_or(old.map_or(0, |line| line.ewma_shift));
    Ok(WredSpec {
        kmin: value("kmin", patch.kmin, old.map(|line| line.kmin))?,
        kmax: value("kmax", patch.kmax, old.map(|line| line.kmax))?,
        pmax,
        mark_at: match patch.mark_at {
            Some(doc) => mark_at(doc),
            None => old.map_or(MarkAt::Dequeue, |line| line.mark_at),
        },
        not_ect: match patch.not_ect {
            Some(doc) => not_ect(doc),
            None => old.map_or(NotEct::Drop, |line| line.not_ect),
        },
        ewma_shift: ewma(&format!("{key}.ewma_weight"), shift)?,
    })
}

fn note<T: PartialEq + ToString>(
    place: &str,
    name: &str,
    values: (T, T),
    changed: &mut Vec<String>,
) {
    let (before, after) = values;
    if before != after {
        let (before, after) = (before.to_string(), after.to_string());
        changed.push(format!("{place} {name}: {before} -> {after}"));
    }
}

fn note_pg(place: &str, before: &PgSpec, after: &PgSpec, changed: &mut Vec<String>) {
    let xoff = |pg: &PgSpec| match pg.xoff {
        Xoff::At(cells) => cells.0.to_string(),
        Xoff::AtLimit => "limit".to_owned(),
    };
    let xon = |pg: &PgSpec| match pg.xon {
        Xon::Offset(cells) => format!("{} (offset)", cells.0),
        Xon::Absolute(cells) => format!("{} (absolute)", cells.0),
    };
    let limit = |pg: &PgSpec| match pg.limit {
        Limit::Static(cells) => cells.0.to_string(),
        Limit::Dynamic(alpha) => format!("alpha 2^{}", alpha.log2()),
    };
    note(place, "xoff", (xoff(before), xoff(after)), changed);
    note(place, "xon", (xon(before), xon(after)), changed);
    note(place, "limit", (limit(before), limit(after)), changed);
    note(place, "xon_floor", (before.xon_floor.0, after.xon_floor.0), changed);
    note(place, "headroom", (before.headroom.0, after.headroom.0), changed);
    note(place, "guaranteed", (before.guaranteed.0, after.guaranteed.0), changed);
}

fn note_line(
    place: &str,
    before: Option<&WredSpec>,
    after: Option<&WredSpec>,
    changed: &mut Vec<String>,
) {
    let text = |line: Option<&WredSpec>| {
        line.map(WredView::from).map_or_else(
            || "off".to_owned(),
            |line| {
                let WredView { kmin, kmax, pmax, mark_at, not_ect, ewma_weight } = line;
                format!("{kmin}/{kmax}/{pmax:.4} at {mark_at}, {not_ect}, ewma {ewma_weight}")
            },
        )
    };
    note(place, "wred", (text(before), text(after)), changed);
}

#[cfg(test)]
mod tests;
