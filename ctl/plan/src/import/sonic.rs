//! CONFIG_DB, table by table, into one document.

use super::buffers::{bindings, Binding, Buffer};
use super::config_db::{ConfigDb, Row};
use super::maps::PortMaps;
use super::pgs::PortBuffers;
use super::pools::{self, Pool};
use super::ports::{self, Port};
use super::{maps, queues, share, watchdog};
use super::{ImportOptions, Imported, Notes};
use crate::facts::PortFacts;
use holdfast_api::amount::{CellAmount, TotalAmount};
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{
    BufferDoc, PfcDoc, PgDoc, PoolDoc, PortOverrideDoc, ProfileDoc, QueueDoc, Slot, WatchdogDoc,
};
use holdfast_core::ids::MAX_POOLS;
use holdfast_core::units::{BitRate, Cells};
use std::collections::BTreeMap;

/// The tables that are read (SPEC 10).
const TABLES: [&str; 17] = [
    "DSCP_TO_TC_MAP",
    "DOT1P_TO_TC_MAP",
    "TC_TO_PRIORITY_GROUP_MAP",
    "TC_TO_QUEUE_MAP",
    "MAP_PFC_PRIORITY_TO_QUEUE",
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
    "BUFFER_POOL",
    "BUFFER_PROFILE",
    "BUFFER_PG",
    "BUFFER_QUEUE",
    "WRED_PROFILE",
    "QUEUE",
    "SCHEDULER",
    "PORT_QOS_MAP",
    "PFC_WD",
    "CABLE_LENGTH",
    "PORT",
];

/// Tables of QoS that have no counterpart: each is said by name.
const NO_COUNTERPART: [(&str, &str); 9] = [
    ("BUFFER_PORT_INGRESS_PROFILE_LIST", "a port has no limit of its own over its PGs"),
    ("BUFFER_PORT_EGRESS_PROFILE_LIST", "a port has no limit of its own over its queues"),
    ("DEFAULT_LOSSLESS_BUFFER_PARAMETER", "Headroom isn't computed here, see holdfast plan"),
    ("LOSSLESS_TRAFFIC_PATTERN", "Headroom isn't computed here, see holdfast plan"),
    ("TC_TO_DSCP_MAP", "DSCP is never rewritten"),
    ("TC_TO_DOT1P_MAP", "PCP is never rewritten"),
    ("MPLS_TC_TO_TC_MAP", "MPLS isn't parsed, such frames take PCP or the default"),
    ("DSCP_TO_FC_MAP", "there are no forwarding classes"),
    ("PORT_STORM_CONTROL", "floods are bounded by flood_limit"),
];

/// Reads CONFIG_DB.
pub(super) fn import(text: &str, options: &ImportOptions) -> Result<Imported, Finding> {
    let (db, others) = ConfigDb::parse(text, &TABLES)?;
    let mut notes = Notes::default();
    others_said(&others, &mut notes);
    let ports = ports::read(&db, &mut notes)?;
    if ports.is_empty() && db.table("BUFFER_POOL").is_empty() {
        let message = "there is no port and no buffer pool";
        return Err(Finding::new("CONFIG_DB", message, "import a file with the tables of SPEC 10"));
    }
    let pools = pools::read(&db, options, &mut notes)?;
    let maps = maps::read(&db, &ports, &mut notes)?;
    let cell = options.cell;
    let pgs_bound = bindings(&db, "BUFFER_PG", &ports, cell, &mut notes)?;
    let queues_bound = bindings(&db, "BUFFER_QUEUE", &ports, cell, &mut notes)?;
    let rows = queues::rows(&db, &ports)?;
    let watchdogs = watchdog::read(&db, &ports, &mut notes)?;
    let mut refused = Vec::new();
    let mut views = Vec::with_capacity(ports.len());
    for (place, port) in ports.iter().enumerate() {
        let maps = &maps[place];
        let bound = &pgs_bound[place];
        let buffers = PortBuffers { port, maps, bound, pools: &pools, options };
        let pgs = buffers.resolve(&mut notes, &mut refused)?;
        unpaused(port, maps, &mut refused);
        let egress = Egress { db: &db, rows: &rows[place], bound: &queues_bound[place] };
        let queues = egress.queues(maps, &pgs, options, &mut notes)?;
        views.push((port.name.clone(), view(maps, pgs, queues, watchdogs[place])));
    }
    let lossy = lossy_buffers(&ports, &maps, &views, &queues_bound);
    let mut doc = frame(&pools, &views, &lossy, options, &mut notes)?;
    share::share(&mut doc, views);
    let known = ports.iter().map(facts).collect::<Option<Vec<_>>>();
    if let Some(port) = ports.iter().find(|port| port.speed.is_none()) {
        let became = "missing, so the profile wasn't held against its ports";
        notes.say(format!("PORT|{}|speed", port.name), became);
    }
    let ports = known.unwrap_or_default();
    Ok(Imported { doc, notes: notes.0, refused, ports })
}

fn others_said(others: &[String], notes: &mut Notes) {
    let mut rest = Vec::new();
    for name in others {
        match NO_COUNTERPART.iter().find(|(table, _)| table == name) {
            Some((table, why)) => notes.say(*table, format!("isn't kept: {why}")),
            None => rest.push(name.as_str()),
        }
    }
    if !rest.is_empty() {
        let shown = rest.iter().take(12).copied().collect::<Vec<_>>().join(", ");
        let more = if rest.len() > 12 { ", …" } else { "" };
        notes.say(format!("{shown}{more}"), "not read: nothing of a profile is in there");
    }
}

/// What a plan has to know of a port; `None` where PORT has no speed.
fn facts(port: &Port) -> Option<PortFacts> {
    let speed: BitRate = port.speed?;
    let (name, mtu) = (port.name.clone(), port.mtu);
    Some(PortFacts { name, speed, mtu, trust: None, link_pause: false })
}

/// PFC-enabled priorities that no PG is paused by.
fn unpaused(port: &Port, maps: &PortMaps, refused: &mut Vec<Finding>) {
    for priority in &maps.enabled {
        if maps.paused_by[usize::from(priority.number())].is_none() {
            let key = format!("PORT_QOS_MAP|{}|pfc_enable", port.name);
            let message = format!("no PG is mapped to priority {priority}: PFC is off for it");
            let fix = "map it in PFC_PRIORITY_TO_PRIORITY_GROUP_MAP";
            refused.push(Finding::new(key, message, fix));
        }
    }
}

/// The egress side of one port.
struct Egress<'a> {
    db: &'a ConfigDb,
    rows: &'a BTreeMap<Slot, &'a Row>,
    bound: &'a BTreeMap<Slot, Binding>,
}

impl Egress<'_> {
    fn queues(
        &self,
        maps: &PortMaps,
        pgs: &BTreeMap<Slot, PgDoc>,
        options: &ImportOptions,
        notes: &mut Notes,
    ) -> Result<BTreeMap<Slot, QueueDoc>, Finding> {
        let mut queues = BTreeMap::new();
        for slot in (0..8).filter_map(Slot::new) {
            let lossless = is_fed_by_lossless(maps, pgs, slot);
            let (row, bound) = (self.rows.get(&slot).copied(), self.bound.get(&slot));
            let queue = queues::queue(self.db, row, bound, lossless, options.cell, notes)?;
            queues.insert(slot, queue);
        }
        Ok(queues)
    }
}

fn is_fed_by_lossless(maps: &PortMaps, pgs: &BTreeMap<Slot, PgDoc>, queue: Slot) -> bool {
    let lossless = |pg: u8| {
        let pg = Slot::new(pg).and_then(|pg| pgs.get(&pg));
        pg.is_some_and(|pg| pg.lossless == Some(true))
    };
    let feeds = maps.queue.iter().zip(&maps.pg).filter(|(to, _)| **to == queue.number());
    feeds.into_iter().any(|(_, pg)| lossless(*pg))
}

/// One port, every key named.
fn view(
    maps: &PortMaps,
    pgs: BTreeMap<Slot, PgDoc>,
    queues: BTreeMap<Slot, QueueDoc>,
    watchdog: Option<WatchdogDoc>,
) -> PortOverrideDoc {
    let lossless = |pg: &&PgDoc| pg.lossless == Some(true);
    let mut enabled: Vec<Slot> = pgs
        .values()
        .filter(lossless)
        .flat_map(|pg| pg.priorities.iter().flatten().copied())
        .filter(|priority| maps.enabled.contains(priority))
        .collect();
    enabled.sort_unstable();
    let pfc = PfcDoc { enabled: Some(enabled), ..PfcDoc::default() };
    let maps = maps.doc();
    PortOverrideDoc { maps, pgs, queues, pfc, scheduler: Default::default(), watchdog }
}

/// The document without what ports have: the memory.
fn frame(
    pools: &[Pool],
    views: &[(String, PortOverrideDoc)],
    lossy: &[&Buffer],
    options: &ImportOptions,
    notes: &mut Notes,
) -> Result<ProfileDoc, Finding> {
    let used = service_pools(pools, views, notes)?;
    let mut shared = used.iter().filter(|pool| pool.shared_headroom != Cells::ZERO);
    let headroom_pool = shared.next();
    if let Some(second) = shared.next() {
        let message = "a second shared headroom pool can't be expressed";
        let fix = "remove xoff of all ingress pools but one";
        return Err(Finding::new(format!("{}|xoff", second.place), message, fix));
    }
    let cells = |cells: Cells| CellAmount::Cells(cells.0);
    let sizes = used
        .iter()
        .map(|pool| Ok(PoolDoc { name: pool.name.clone(), size: cells(pools::size(pool)?) }));
    let buffer = BufferDoc {
        cell_bytes: Some(options.cell.bytes()),
        total: options.cells.map_or(TotalAmount::Auto, |total| TotalAmount::Of(cells(total))),
        spare: None,
        headroom_pool: headroom_pool.map(|pool| cells(pool.shared_headroom)),
        egress_shared: egress_shared(pools, lossy, notes)?.map(cells),
    };
    Ok(ProfileDoc {
        name: options.name.clone(),
        description: String::new(),
        smallest_lossless_frame: None,
        formula: None,
        buffer,
        pools: sizes.collect::<Result<_, Finding>>()?,
        maps: Default::default(),
        pgs: BTreeMap::new(),
        queues: BTreeMap::new(),
        pfc: PfcDoc::default(),
        scheduler: Default::default(),
        watchdog: None,
        ports: BTreeMap::new(),
    })
}

/// Pools of type ingress, and those that PGs draw from whatever their type.
fn service_pools<'a>(
    pools: &'a [Pool],
    views: &[(String, PortOverrideDoc)],
    notes: &mut Notes,
) -> Result<Vec<&'a Pool>, Finding> {
    let mut drawn: Vec<&str> = views
        .iter()
        .flat_map(|(_, view)| view.pgs.values().filter_map(|pg| pg.pool.as_deref()))
        .collect();
    drawn.sort_unstable();
    drawn.dedup();
    for name in &drawn {
        let pool = pools::named(pools, name, "BUFFER_PROFILE")?;
        if pool.egress {
            let became = "PGs draw from it: it becomes a Service pool as well";
            notes.say(format!("{}|type", pool.place), became);
        }
    }
    let is_service = |pool: &&Pool| !pool.egress || drawn.contains(&pool.name.as_str());
    let used: Vec<&Pool> = pools.iter().filter(is_service).collect();
    if used.is_empty() || used.len() > MAX_POOLS {
        let finding = Finding::new(
            "BUFFER_POOL",
            "number of ingress pools out of range",
            "add one with type ingress, or remove some",
        );
        return Err(finding.numbers(used.len(), format!("1..{MAX_POOLS}")));
    }
    Ok(used)
}

/// The buffers of queues that are lossy, and not only for want of Headroom.
fn lossy_buffers<'a>(
    ports: &[Port],
    maps: &[PortMaps],
    views: &[(String, PortOverrideDoc)],
    queues_bound: &'a [BTreeMap<Slot, Binding>],
) -> Vec<&'a Buffer> {
    let mut lossy = Vec::new();
    for (place, _) in ports.iter().enumerate() {
        for (slot, binding) in &queues_bound[place] {
            let queue = views[place].1.queues.get(slot);
            let limited = queue.is_some_and(|queue| queue.limit.is_some() || queue.alpha.is_some());
            if limited && !maps[place].is_meant_lossless(*slot) {
                lossy.extend(&binding.buffer);
            }
        }
    }
    lossy
}

/// What queues share: the pool of the lossy ones, the only ones that have a limit here.
fn egress_shared(
    pools: &[Pool],
    lossy: &[&Buffer],
    notes: &mut Notes,
) -> Result<Option<Cells>, Finding> {
    let Some(first) = lossy.first() else { return Ok(None) };
    if let Some(other) = lossy.iter().find(|buffer| buffer.pool != first.pool) {
        let message =
            format!("lossy queues share one pool here, {} uses {}", first.place, first.pool);
        let fix = "bind all lossy queues to one egress pool";
        return Err(Finding::new(format!("{}|pool", other.place), message, fix));
    }
    let pool = pools::named(pools, &first.pool, &format!("{}|pool", first.place))?;
    let others: Vec<&str> = pools
        .iter()
        .filter(|other| other.egress && other.name != pool.name)
        .map(|other| other.name.as_str())
        .collect();
    let size = pools::size(pool)?;
    let became = if others.is_empty() {
        format!("egress_shared = {}", size.0)
    } else {
        format!(
            "egress_shared = {}: all queues count there, also those of {}, whose size isn't kept",
            size.0,
            others.join(", ")
        )
    };
    notes.say(format!("{}|size", pool.place), became);
    Ok(Some(size))
}
