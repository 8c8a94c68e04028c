//! BUFFER_POOL: Service pools, the shared headroom pool, and what queues share.

use super::config_db::{ConfigDb, Row};
use super::{ImportOptions, Notes};
use holdfast_api::doc::Finding;
use holdfast_core::units::{CellSize, Cells};

const FIELDS: [&str; 5] = ["type", "mode", "size", "xoff", "percentage"];

/// More pools, of both directions, than any ASIC has.
const MAX_ROWS: usize = 64;

/// One row of BUFFER_POOL.
#[derive(Debug)]
pub(super) struct Pool {
    pub name: String,
    pub place: String,
    pub size: Option<Cells>,
    /// SONiC's `xoff` of a pool: what lossless PGs share as Headroom, beside `size`.
    pub shared_headroom: Cells,
    /// Whether its type is `egress`.
    pub egress: bool,
}

/// All pools.
pub(super) fn read(
    db: &ConfigDb,
    options: &ImportOptions,
    notes: &mut Notes,
) -> Result<Vec<Pool>, Finding> {
    let table = db.table("BUFFER_POOL");
    if table.len() > MAX_ROWS {
        let finding = Finding::new("BUFFER_POOL", "too many pools", "remove those not in use");
        return Err(finding.numbers(table.len(), MAX_ROWS));
    }
    let rows = table.iter();
    let pools: Vec<Pool> =
        rows.map(|(name, row)| pool(name, row, options.cell)).collect::<Result<_, _>>()?;
    for pool in pools.iter().filter(|pool| pool.shared_headroom != Cells::ZERO) {
        let became = format!(
            "a shared headroom pool of {}, beside size: Headroom of the lossless PGs of {} is a \
             cap on it",
            pool.shared_headroom, pool.name
        );
        notes.say(format!("{}|xoff", pool.place), became);
    }
    if let Some(total) = options.cells {
        fits(&pools, total)?;
    }
    Ok(pools)
}

fn pool(name: &str, row: &Row, cell: CellSize) -> Result<Pool, Finding> {
    row.only(&FIELDS)?;
    let egress = match row.needed("type")? {
        "ingress" | "both" => false,
        "egress" => true,
        other => {
            let finding = Finding::new(row.at("type"), "is no type", "write ingress or egress");
            return Err(finding.numbers(other, "ingress, egress, both"));
        }
    };
    if let Some(mode) = row.get("mode").filter(|mode| !["dynamic", "static"].contains(mode)) {
        let finding = Finding::new(row.at("mode"), "is no mode", "write dynamic or static");
        return Err(finding.numbers(mode, "dynamic, static"));
    }
    if row.get("percentage").is_some() {
        let message = "a share of what the ASIC has can't be expressed";
        return Err(Finding::new(row.at("percentage"), message, "write size, in bytes"));
    }
    Ok(Pool {
        name: name.to_owned(),
        place: row.place.clone(),
        size: row.cells("size", cell)?,
        shared_headroom: row.cells("xoff", cell)?.unwrap_or_default(),
        egress,
    })
}

/// Ingress pools and shared Headroom within the memory (SPEC 3.1): refused as a whole otherwise.
fn fits(pools: &[Pool], total: Cells) -> Result<(), Finding> {
    let ingress = || pools.iter().filter(|pool| !pool.egress);
    let of = |pool: &Pool| u64::from(pool.size.unwrap_or_default().0);
    let needed: u64 = ingress().map(|pool| of(pool) + u64::from(pool.shared_headroom.0)).sum();
    if needed <= u64::from(total.0) {
        return Ok(());
    }
    let parts: Vec<String> = ingress()
        .map(|pool| format!("{}: size {} + xoff {}", pool.name, of(pool), pool.shared_headroom.0))
        .collect();
    let worst = ingress().max_by_key(|pool| of(pool)).map_or("BUFFER_POOL", |pool| &pool.place);
    let message = format!(
        "ingress pools exceed the memory, in cells, xoff standing beside size: {}",
        parts.join(", ")
    );
    let fix = "make a pool smaller, or give the whole memory by --cells";
    Err(Finding::new(worst, message, fix).numbers(needed, total.0))
}

/// The pool of that name.
pub(super) fn named<'a>(pools: &'a [Pool], name: &str, place: &str) -> Result<&'a Pool, Finding> {
    pools.iter().find(|pool| pool.name == name).ok_or_else(|| {
        let known: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
        let message = format!("BUFFER_POOL has no {name:?}");
        let fix = format!("add it, or use one of {}", known.join(", "));
        Finding::new(place, message, fix)
    })
}

/// The size of a pool that something draws from.
pub(super) fn size(pool: &Pool) -> Result<Cells, Finding> {
    let missing = || {
        let message = "the pool has no size, and SONiC would compute it from its ASIC";
        Finding::new(format!("{}|size", pool.place), message, "add size, in bytes")
    };
    pool.size.ok_or_else(missing)
}
