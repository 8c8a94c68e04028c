//! A profile from sources that name no pools: one pool for all, of what the PGs leave.

use super::{ImportOptions, Imported, Notes};
use holdfast_api::amount::{CellAmount, TotalAmount};
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{
    BufferDoc, MapsDoc, PfcDoc, PgDoc, PoolDoc, PortOverrideDoc, ProfileDoc, QueueDoc, Slot,
};
use holdfast_core::ids::MAX_PORTS;
use std::collections::BTreeMap;

/// The pool's name.
pub(super) const ONE_POOL: &str = "shared";

/// What such a source does say.
#[derive(Debug, Default)]
pub(super) struct OnePool {
    /// Lossless PGs; PG n is fed by CoS n and paused as priority n.
    pub pgs: BTreeMap<Slot, PgDoc>,
    pub queues: BTreeMap<Slot, QueueDoc>,
    /// What differs at single ports.
    pub ports: BTreeMap<String, PortOverrideDoc>,
}

/// The profile of `parts`.
///
/// # Errors
/// `--cells` or `--ports` is missing, or the PGs leave nothing for the pool.
pub(super) fn one_pool(
    parts: OnePool,
    options: &ImportOptions,
    mut notes: Notes,
) -> Result<Imported, Finding> {
    let asked = |option: &str, what: &str| {
        let message = format!("nothing here says {what}");
        Finding::new(option, message, format!("give --{option}"))
    };
    let total = options.cells.ok_or_else(|| asked("cells", "how many cells the memory has"))?;
    let ports = options.ports.ok_or_else(|| asked("ports", "how many ports share the memory"))?;
    if ports == 0 || ports as usize > MAX_PORTS {
        let finding = Finding::new("ports", "out of range", "give the number of ports");
        return Err(finding.numbers(ports, format!("1..{MAX_PORTS}")));
    }
    let cells = |amount: Option<CellAmount>| match amount {
        Some(CellAmount::Cells(cells)) => u64::from(cells),
        _ => 0,
    };
    let of = |pg: &PgDoc| cells(pg.guaranteed) + cells(pg.headroom);
    let alone = PortOverrideDoc::default();
    let of_port = |port: &PortOverrideDoc| -> u64 {
        let shared = parts.pgs.iter().filter(|(slot, _)| !port.pgs.contains_key(slot));
        shared.map(|(_, pg)| of(pg)).chain(port.pgs.values().map(of)).sum()
    };
    let a_port = parts.ports.values().chain([&alone]).map(of_port).max().unwrap_or(0);
    let left = u64::from(total.0).checked_sub(a_port * u64::from(ports)).filter(|left| *left > 0);
    let Some(size) = left.and_then(|left| u32::try_from(left).ok()) else {
        let message = format!("{ports} ports of {a_port} cells leave nothing to share");
        let finding = Finding::new("cells", message, "give more cells, or fewer ports");
        return Err(finding.numbers(a_port * u64::from(ports), total.0));
    };
    let became = format!(
        "no pools are named: one of {size} cells for all PGs = {} cells - {ports} ports x {a_port}",
        total.0
    );
    notes.say("pool", became);
    let mut doc = ProfileDoc {
        name: options.name.clone(),
        description: String::new(),
        smallest_lossless_frame: None,
        formula: None,
        buffer: BufferDoc {
            cell_bytes: Some(options.cell.bytes()),
            total: TotalAmount::Of(CellAmount::Cells(total.0)),
            ..BufferDoc::default()
        },
        pools: vec![PoolDoc { name: ONE_POOL.to_owned(), size: CellAmount::Cells(size) }],
        maps: MapsDoc::default(),
        pgs: parts.pgs,
        queues: parts.queues,
        pfc: PfcDoc::default(),
        scheduler: Default::default(),
        watchdog: None,
        ports: parts.ports,
    };
    classes(&mut doc, &mut notes);
    Ok(Imported { doc, notes: notes.0, refused: Vec::new(), ports: Vec::new() })
}

/// CoS n to PG n and queue n for each lossless PG n; what `ac5p` has lossless besides is lossy.
fn classes(doc: &mut ProfileDoc, notes: &mut Notes) {
    let mut lossless: Vec<Slot> = doc.pgs.keys().copied().collect();
    lossless.extend(doc.ports.values().flat_map(|port| port.pgs.keys().copied()));
    lossless.sort_unstable();
    lossless.dedup();
    let (zero, three) = (Slot::new(0), Slot::new(3));
    if let Some((zero, three)) = zero.zip(three).filter(|(_, three)| !lossless.contains(three)) {
        doc.maps.cos_to_pg.insert(three, zero);
        doc.pgs.insert(three, PgDoc { lossless: Some(false), ..PgDoc::default() });
    }
    for slot in &lossless {
        doc.maps.cos_to_pg.insert(*slot, *slot);
        doc.maps.cos_to_queue.insert(*slot, *slot);
    }
    let list: Vec<String> = lossless.iter().map(Slot::to_string).collect();
    let list = list.join(",");
    let became = format!(
        "no maps are named: those of base \"ac5p\", and CoS {list} to the PG, queue and priority \
         of its number"
    );
    notes.say("maps", became);
}
