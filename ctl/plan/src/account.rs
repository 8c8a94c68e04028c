//! One PG of a document in cells.

use crate::amounts::{cells, limit, q_limit};
use holdfast_api::amount::{CellAmount, XoffAmount};
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{PgDoc, XonModeDoc};
use holdfast_core::ids::{Cos, PgId, PoolId, Priority, PrioritySet};
use holdfast_core::profile::{ClassMaps, Limit, PgSpec, Xoff, Xon};
use holdfast_core::units::{Alpha, CellSize, Cells};

/// What the PGs of all ports share.
pub(crate) struct Shared<'a> {
    pub cell: CellSize,
    pub pools: &'a [(String, Cells)],
}

/// The PG `pg`, whose keys are below `key`; `lossless` unless the document says otherwise.
pub(crate) fn resolve(
    key: &str,
    pg: PgId,
    doc: &PgDoc,
    maps: &ClassMaps,
    lossless: bool,
    shared: &Shared<'_>,
) -> Result<PgSpec, Finding> {
    let lossless = doc.lossless.unwrap_or(lossless);
    let pool = pool(key, doc, lossless, shared.pools)?;
    // alpha 2^0, unless said otherwise: one PG alone may have half of the pool.
    let limit = limit(key, doc.limit, doc.alpha, shared.cell)?
        .or_else(|| Alpha::new(0).map(Limit::Dynamic))
        .unwrap_or(Limit::Static(Cells::ZERO));
    let pool_size = shared.pools.get(pool.index()).map_or(Cells::ZERO, |(_, size)| *size);
    let of = Some(q_limit(limit, pool_size));
    let in_cells = |name: &str, amount: Option<CellAmount>| match amount {
        Some(amount) => cells(&format!("{key}.{name}"), amount, shared.cell, of),
        None => Ok(Cells::ZERO),
    };
    if lossless {
        needed(key, doc)?;
    }
    let xon = in_cells("xon", doc.xon)?;
    Ok(PgSpec {
        lossless,
        guaranteed: in_cells("guaranteed", doc.guaranteed)?,
        headroom: in_cells("headroom", doc.headroom)?,
        headroom_pool: doc.headroom_pool.unwrap_or(false),
        pool,
        limit,
        xoff: match doc.xoff {
            Some(XoffAmount::At(amount)) => Xoff::At(in_cells("xoff", Some(amount))?),
            Some(XoffAmount::Limit) | None => Xoff::AtLimit,
        },
        xon: match doc.xon_mode.unwrap_or_default() {
            XonModeDoc::Offset => Xon::Offset(xon),
            XonModeDoc::Absolute => Xon::Absolute(xon),
        },
        xon_floor: in_cells("xon_floor", doc.xon_floor)?,
        priorities: priorities(pg, doc, maps, lossless),
    })
}

/// A lossless PG has no defaults for what decides about loss.
fn needed(key: &str, doc: &PgDoc) -> Result<(), Finding> {
    let keys = [
        ("headroom", doc.headroom.is_some()),
        ("xoff", doc.xoff.is_some()),
        ("xon", doc.xon.is_some()),
    ];
    match keys.iter().find(|(_, there)| !there) {
        None => Ok(()),
        Some((name, _)) => Err(Finding::new(
            format!("{key}.{name}"),
            format!("a lossless PG needs {name}, there is no default for it"),
            format!("add {name}, or set lossless = false"),
        )),
    }
}

fn pool(
    key: &str,
    doc: &PgDoc,
    lossless: bool,
    pools: &[(String, Cells)],
) -> Result<PoolId, Finding> {
    let default = if lossless { "lossless" } else { "lossy" };
    let name = doc.pool.as_deref().unwrap_or(default);
    let mut number = pools.iter().position(|(pool, _)| pool == name);
    // With one pool there is nothing to choose.
    if number.is_none() && doc.pool.is_none() && pools.len() == 1 {
        number = Some(0);
    }
    let id = number.and_then(|n| u8::try_from(n).ok()).and_then(PoolId::new);
    id.ok_or_else(|| {
        let known: Vec<&str> = pools.iter().map(|(pool, _)| pool.as_str()).collect();
        let fix = format!("set pool to one of {}", known.join(", "));
        Finding::new(format!("{key}.pool"), format!("there is no pool {name:?}"), fix)
    })
}

/// By default a lossless PG pauses the priorities of the CoS that are mapped to it.
fn priorities(pg: PgId, doc: &PgDoc, maps: &ClassMaps, lossless: bool) -> PrioritySet {
    let of = |priority: u8| PrioritySet::only(Priority::from_bits(priority));
    match &doc.priorities {
        Some(list) => list.iter().fold(PrioritySet::EMPTY, |set, p| set.or(of(p.number()))),
        None if lossless => Cos::all()
            .filter(|cos| maps.cos_to_pg[*cos] == pg)
            .fold(PrioritySet::EMPTY, |set, cos| set.or(of(cos.number()))),
        None => PrioritySet::EMPTY,
    }
}
