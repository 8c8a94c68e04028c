//! The plan: defaults filled in, amounts in cells, every number traceable to its key.

use crate::account::{self, Shared};
use crate::amounts::cells;
use crate::error::PlanError;
use crate::facts::{PortFacts, SwitchFacts};
use crate::lint::{self, Id};
use crate::maps;
use crate::merge::PortDocs;
use crate::preset::Preset;
use crate::queue::{self, Standing};
use holdfast_api::amount::TotalAmount;
use holdfast_api::doc::Finding;
use holdfast_api::message::{EgressUse, IngressUse};
use holdfast_api::profile_doc::{ProfileDoc, Slot};
use holdfast_api::switch_doc::is_name;
use holdfast_core::ids::{Cos, PerPg, PerQueue, PgId, QueueId, MAX_POOLS};
use holdfast_core::profile::{ClassMaps, PgSpec, PortSpec, Profile, ProfileSpec, FRAME_OVERHEAD};
use holdfast_core::units::{CellSize, Cells, FrameLen};

pub(crate) mod formula;
mod pacing;
pub use formula::HeadroomTerm;
pub(crate) use pacing::RX_BACKLOG_MARK;

/// The smallest lossless frame of the shipped profiles (AC5P): a RoCE path MTU of 1024.
pub(crate) const SMALLEST_LOSSLESS: u16 = 1086;

/// A profile with its reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfilePlan {
    spec: ProfileSpec,
    names: Vec<String>,
    notes: Vec<String>,
    terms: Vec<HeadroomTerm>,
    smallest_lossless: FrameLen,
    rx_ring: u32,
}

impl ProfilePlan {
    /// The profile as plain data.
    pub const fn spec(&self) -> &ProfileSpec {
        &self.spec
    }

    /// The profile that workers run.
    ///
    /// # Errors
    /// [`PlanError::Profile`], where it exceeds the memory it declares or a range of the core.
    pub fn profile(&self, generation: u64) -> Result<Profile, PlanError> {
        Ok(Profile::new(generation, self.spec.clone())?)
    }

    /// The ports' names in the order of their ids.
    pub fn port_names(&self) -> &[String] {
        &self.names
    }

    /// Warnings about Headroom, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Headroom of each lossless PG against its formula; empty without a formula.
    pub fn headroom_terms(&self) -> &[HeadroomTerm] {
        &self.terms
    }

    pub(crate) const fn rx_ring(&self) -> u32 {
        self.rx_ring
    }

    /// The smallest lossless frame for which Headroom holds.
    pub const fn smallest_lossless_frame(&self) -> FrameLen {
        self.smallest_lossless
    }
}

/// A port half planned: its queues wait for the size of what queues share.
struct Draft<'a> {
    facts: &'a PortFacts,
    docs: PortDocs<'a>,
    maps: ClassMaps,
    set: &'static Preset,
    pgs: PerPg<PgSpec>,
}

/// Plans `doc` for the ports of `facts`.
///
/// # Errors
/// [`PlanError::Value`] with the document's key: a value missing or out of range, or the first
/// error of the linter; see [`crate::lint`].
pub fn resolve(doc: &ProfileDoc, facts: &SwitchFacts) -> Result<ProfilePlan, PlanError> {
    let first = |errors: Vec<PlanError>| errors.into_iter().next();
    let mut plan = match assemble(doc, facts) {
        Ok(plan) => plan,
        Err(errors) => return Err(first(errors).unwrap_or_else(|| unexplained().into())),
    };
    let report = lint::plan(&plan, lint::Options::default());
    if let Some(error) = report.first_error() {
        return Err(error.what.clone().into());
    }
    let headroom = report.findings().iter().filter(|finding| finding.id == Id::B03);
    plan.notes = headroom.map(|finding| finding.what.to_string()).collect();
    Ok(plan)
}

/// Never seen: a plan that fails says why.
fn unexplained() -> Finding {
    Finding::new("file", "can't be planned", "compare it with the shipped profiles")
}

/// Plans `doc` without judging it.
///
/// # Errors
/// Every value that is missing, out of range or contradicts another, as far as they can be told
/// apart: one for each PG, queue and section of a port, at least one in all.
pub(crate) fn assemble(
    doc: &ProfileDoc,
    facts: &SwitchFacts,
) -> Result<ProfilePlan, Vec<PlanError>> {
    let one = |finding: Finding| vec![PlanError::from(finding)];
    let cell = cell_size(doc).map_err(one)?;
    let pools = pools(doc, cell).map_err(one)?;
    let names = facts.names();
    let mut errors = unknown_ports(doc, &names);
    let shared = Shared { cell, pools: &pools };
    let mut drafts = Vec::with_capacity(facts.ports.len());
    for port in facts.ports.iter().filter(|port| !port.is_vacant()) {
        drafts.extend(draft(doc, port, &shared, &mut errors));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let headroom_pool = optional(doc.buffer.headroom_pool, "buffer.headroom_pool", cell);
    let spec = ProfileSpec {
        name: doc.name.clone(),
        cell,
        total: Cells::ZERO,
        pools: pools.clone(),
        headroom_pool: headroom_pool.map_err(one)?,
        egress_shared: Cells::ZERO,
        flood_limit: facts.flood_limit,
        ports: Vec::new(),
    };
    let mut plan = ProfilePlan {
        spec: sized(doc, spec, (&drafts, facts.spare_ports)).map_err(one)?,
        notes: Vec::new(),
        terms: Vec::new(),
        smallest_lossless: smallest_lossless(doc).map_err(one)?,
        rx_ring: facts.rx_ring,
        names,
    };
    let mut drafts = drafts.iter();
    for port in &facts.ports {
        let port = match port.is_vacant() {
            true => Some(PortSpec::vacant()),
            false => drafts
                .next()
                .and_then(|draft| finish(draft, &plan.spec, facts.rx_ring, &mut errors)),
        };
        plan.spec.ports.extend(port);
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    if let Some(formula) = &doc.formula {
        plan.terms = formula::terms(formula, &plan).map_err(one)?;
    }
    Ok(plan)
}

fn unknown_ports(doc: &ProfileDoc, names: &[String]) -> Vec<PlanError> {
    let unknown = doc.ports.keys().filter(|name| !names.contains(name));
    let error =
        |name: &String| PlanError::UnknownPort { name: name.clone(), known: names.to_vec() };
    unknown.map(error).collect()
}

/// Keeps what went well, and what didn't with the other errors.
fn keep<T>(result: Result<T, Finding>, errors: &mut Vec<PlanError>) -> Option<T> {
    result.map_err(|finding| errors.push(finding.into())).ok()
}

fn cell_size(doc: &ProfileDoc) -> Result<CellSize, Finding> {
    let bytes = doc.buffer.cell_bytes.unwrap_or(CellSize::DEFAULT.bytes());
    CellSize::new(bytes).ok_or_else(|| {
        let fix = "use 256, as the family does, or another value in range";
        Finding::new("buffer.cell_bytes", "out of range", fix).numbers(bytes, "64..4096")
    })
}

fn pools(doc: &ProfileDoc, cell: CellSize) -> Result<Vec<(String, Cells)>, Finding> {
    if doc.pools.is_empty() || doc.pools.len() > MAX_POOLS {
        let fix = "add [[pool]] sections, or remove some";
        let finding = Finding::new("pool", "number of pools out of range", fix);
        return Err(finding.numbers(doc.pools.len(), format!("1..{MAX_POOLS}")));
    }
    let mut pools: Vec<(String, Cells)> = Vec::new();
    for pool in &doc.pools {
        let key = format!("pool.{}", pool.name);
        if !is_name(&pool.name) {
            let message = format!("{:?} can't be a name", pool.name);
            return Err(Finding::new(key, message, "use 1 to 32 letters, digits, - and _"));
        }
        if pools.iter().any(|(name, _)| *name == pool.name) {
            return Err(Finding::new(key, "a second pool of this name", "rename one of the two"));
        }
        let size = cells(&format!("{key}.size"), pool.size, cell, None)?;
        pools.push((pool.name.clone(), size));
    }
    Ok(pools)
}

fn optional(
    amount: Option<holdfast_api::amount::CellAmount>,
    key: &str,
    cell: CellSize,
) -> Result<Cells, Finding> {
    amount.map_or(Ok(Cells::ZERO), |amount| cells(key, amount, cell, None))
}

fn smallest_lossless(doc: &ProfileDoc) -> Result<FrameLen, Finding> {
    let bytes = doc.smallest_lossless_frame.map_or(u64::from(SMALLEST_LOSSLESS), |amount| amount.0);
    let length = u16::try_from(bytes).ok().filter(|bytes| *bytes >= 60);
    length.map(FrameLen).ok_or_else(|| {
        let fix = "use the length without FCS of the smallest frame in a lossless class";
        let finding = Finding::new("smallest_lossless_frame", "no length of a frame", fix);
        finding.numbers(bytes, "60..65535")
    })
}

/// `None` if something was wrong, which is then in `errors`.
fn draft<'a>(
    doc: &'a ProfileDoc,
    facts: &'a PortFacts,
    shared: &Shared<'_>,
    errors: &mut Vec<PlanError>,
) -> Option<Draft<'a>> {
    let docs = PortDocs::new(doc, &facts.name);
    let (maps, set) = keep(maps::resolve(facts, &docs), errors)?;
    let mut pgs = Vec::with_capacity(PgId::COUNT);
    for pg in PgId::all() {
        let key = format!("port.{}.pg.{pg}", facts.name);
        let lossless = set.lossless.contains(&pg.number());
        let doc = Slot::new(pg.number()).map(|slot| docs.pg(slot)).unwrap_or_default();
        let account = account::resolve(&key, pg, &doc, &maps, lossless, shared);
        pgs.extend(keep(account, errors));
    }
    let pgs = (pgs.len() == PgId::COUNT).then(|| PerPg::from_fn(|pg| pgs[pg.index()]))?;
    Some(Draft { facts, docs, maps, set, pgs })
}

/// The document of one queue of a port, and the prefix of its keys.
fn queue_doc(draft: &Draft<'_>, queue: QueueId) -> (String, holdfast_api::profile_doc::QueueDoc) {
    let key = format!("port.{}.queue.{queue}", draft.facts.name);
    let doc = Slot::new(queue.number()).map(|slot| draft.docs.queue(slot)).unwrap_or_default();
    (key, doc)
}

/// `spec` with its total and what queues share (SPEC 3.1). Each spare port has as much as the port
/// that has most.
fn sized(
    doc: &ProfileDoc,
    mut spec: ProfileSpec,
    (drafts, spare_ports): (&[Draft<'_>], u32),
) -> Result<ProfileSpec, Finding> {
    let buffer = &doc.buffer;
    let (mut guarantees, mut most_guaranteed) = (0u64, 0u64);
    for draft in drafts {
        let mut of_port = 0;
        for queue in QueueId::all() {
            let (key, doc) = queue_doc(draft, queue);
            of_port += u64::from(queue::guarantee(&key, &doc, spec.cell)?.0);
        }
        guarantees += of_port;
        most_guaranteed = most_guaranteed.max(of_port);
    }
    let spare_ports = u64::from(spare_ports);
    let each = drafts.iter().map(|draft| parts(&draft.pgs));
    let most = each.clone().max().unwrap_or_default();
    let parts = each.sum::<u64>() + spare_ports * most;
    let pools: u64 = spec.pools.iter().map(|(_, size)| u64::from(size.0)).sum();
    let spare = u64::from(optional(buffer.spare, "buffer.spare", spec.cell)?.0);
    let ingress = parts + pools + u64::from(spec.headroom_pool.0) + spare;
    let shared = buffer.egress_shared;
    let shared = shared.map(|amount| cells("buffer.egress_shared", amount, spec.cell, None));
    let shared = shared.transpose()?;
    spec.total = match buffer.total {
        TotalAmount::Of(amount) => cells("buffer.total", amount, spec.cell, None)?,
        TotalAmount::Auto => {
            let reserved = guarantees + spare_ports * most_guaranteed;
            let egress = reserved + u64::from(shared.unwrap_or_default().0);
            // Beyond u32 the core's range check refuses it with its numbers.
            Cells(u32::try_from(ingress.max(egress)).unwrap_or(u32::MAX))
        }
    };
    let left = u64::from(spec.total.0).saturating_sub(guarantees);
    spec.egress_shared = shared.unwrap_or(Cells(u32::try_from(left).unwrap_or(u32::MAX)));
    Ok(spec)
}

/// Cells that belong to one port alone.
fn parts(pgs: &PerPg<PgSpec>) -> u64 {
    let part = |pg: &PgSpec| {
        let headroom = if pg.headroom_pool { 0 } else { pg.headroom.0 };
        u64::from(pg.guaranteed.0) + u64::from(headroom)
    };
    pgs.0.iter().map(part).sum()
}

/// `None` if something was wrong, which is then in `errors`.
fn finish(
    draft: &Draft<'_>,
    spec: &ProfileSpec,
    rx_ring: u32,
    errors: &mut Vec<PlanError>,
) -> Option<PortSpec> {
    let fed_by_lossless = |queue: QueueId| {
        Cos::all().any(|cos| {
            draft.maps.cos_to_queue[cos] == queue && draft.pgs[draft.maps.cos_to_pg[cos]].lossless
        })
    };
    let mut queues = Vec::with_capacity(QueueId::COUNT);
    for queue in QueueId::all() {
        let (key, doc) = queue_doc(draft, queue);
        let standing = Standing {
            lossless: fed_by_lossless(queue),
            strict: draft.set.strict.contains(&queue.number()),
            cell: spec.cell,
            shared: spec.egress_shared,
        };
        queues.extend(keep(queue::resolve(&key, &doc, &standing), errors));
    }
    let facts = draft.facts;
    let pacing = keep(pacing::pacing(&draft.docs, facts), errors);
    let pfc = keep(pacing::pfc(&draft.docs, facts, &draft.pgs, rx_ring), errors);
    let watchdog = keep(pacing::watchdog(&draft.docs, &facts.name), errors);
    let (tx_inflight, catch_up) = pacing?;
    let complete = queues.len() == QueueId::COUNT;
    Some(PortSpec {
        speed: facts.speed,
        mtu: facts.mtu,
        maps: draft.maps.clone(),
        pgs: draft.pgs,
        queues: complete.then(|| PerQueue::from_fn(|queue| queues[queue.index()]))?,
        pfc: pfc?,
        tx_inflight,
        catch_up,
        watchdog: watchdog?,
    })
}

/// How the total is divided, in both views of SPEC 3.1, with what is left over.
pub fn budget(spec: &ProfileSpec) -> (IngressUse, EgressUse) {
    let pgs = || spec.ports.iter().flat_map(|port| port.pgs.0.iter());
    let guaranteed: u32 = pgs().map(|pg| pg.guaranteed.0).fold(0, u32::saturating_add);
    let private = pgs().filter(|pg| !pg.headroom_pool).map(|pg| pg.headroom.0);
    let headroom = private.fold(spec.headroom_pool.0, u32::saturating_add);
    let pools = spec.pools.iter().map(|(_, size)| size.0).fold(0, u32::saturating_add);
    let taken = guaranteed.saturating_add(headroom).saturating_add(pools);
    let left_over = spec.total.0.saturating_sub(taken);
    let ingress = IngressUse { guaranteed, headroom, pools, left_over };
    let queues = spec.ports.iter().flat_map(|port| port.queues.0.iter());
    let guarantees = queues.map(|queue| queue.guarantee.0).fold(0, u32::saturating_add);
    let shared = spec.egress_shared.0;
    let left_over = spec.total.0.saturating_sub(guarantees.saturating_add(shared));
    (ingress, EgressUse { guarantees, shared, left_over, lent: 0 })
}

/// The longest frame of a port.
const fn largest_frame(mtu: u16) -> FrameLen {
    FrameLen(mtu.saturating_add(FRAME_OVERHEAD))
}

#[cfg(test)]
mod tests;
