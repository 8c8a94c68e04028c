//! BUFFER_PROFILE, and rows of `pg_profile_lookup.ini`, as what a PG or a queue may hold.

use super::config_db::{ports_and_slots, ConfigDb, Row};
use super::ports::{places, Port};
use super::Notes;
use holdfast_api::amount::CellAmount;
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{Slot, XonModeDoc};
use holdfast_core::units::{Bytes, CellSize, Cells};
use std::collections::BTreeMap;

/// What bounds the Service share of a PG, or the depth of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    /// SONiC's `static_th`.
    Static(Cells),
    /// SONiC's `dynamic_th` n: 2^n times the free cells.
    Alpha(i8),
}

impl Bound {
    /// As the keys `limit` and `alpha` of a document.
    pub fn keys(self) -> (Option<CellAmount>, Option<i8>) {
        match self {
            Self::Static(cells) => (Some(CellAmount::Cells(cells.0)), None),
            Self::Alpha(log2) => (None, Some(log2)),
        }
    }
}

/// What only a lossless PG has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Marks {
    pub headroom: Cells,
    pub xon: Cells,
    pub mode: XonModeDoc,
    pub floor: Cells,
}

/// One buffer profile in cells.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub place: String,
    /// The pool's name.
    pub pool: String,
    /// What is reserved.
    pub size: Cells,
    pub bound: Bound,
    /// `None`: lossy, or lossless without Headroom of its own.
    pub marks: Option<Marks>,
}

/// Bytes as SONiC writes the thresholds of a lossless PG.
#[derive(Clone, Copy, Debug)]
pub(super) struct LosslessBytes {
    pub size: u64,
    pub xon: Option<u64>,
    pub xoff: u64,
    pub xon_offset: Option<u64>,
}

impl LosslessBytes {
    /// What is reserved and the marks, in cells; `place` names the row.
    pub fn resolve(
        self,
        place: &str,
        cell: CellSize,
        notes: &mut Notes,
    ) -> Result<(Cells, Marks), Finding> {
        let cells = |bytes: u64| Bytes(bytes).to_cells(cell);
        let headroom = cells(self.xoff);
        let became = format!(
            "{} B is a size: headroom = {}; SONiC pauses at the limit: xoff = \"limit\"",
            self.xoff, headroom.0
        );
        notes.say(format!("{place}|xoff"), became);
        let floor = cells(self.xon.unwrap_or(0));
        let marks = match (self.xon, self.xon_offset) {
            (None, None) => {
                let message = "nothing says when a paused PG resumes";
                let fix = "add xon, or xon_offset, in bytes";
                return Err(Finding::new(format!("{place}|xon"), message, fix));
            }
            (_, Some(offset)) => {
                let xon = cells(offset);
                let became = format!(
                    "resumes at max(xon, limit - xon_offset): xon_floor = {}, xon = {} below the \
                     limit",
                    floor.0, xon.0
                );
                notes.say(format!("{place}|xon"), became);
                Marks { headroom, xon, mode: XonModeDoc::Offset, floor }
            }
            (Some(_), None) => {
                let became =
                    format!("no xon_offset: resumes at xon = {}, xon_mode = \"absolute\"", floor.0);
                notes.say(format!("{place}|xon"), became);
                let mode = XonModeDoc::Absolute;
                Marks { headroom, xon: floor, mode, floor: Cells::ZERO }
            }
        };
        // Without xon_offset templates count the headroom into the size.
        let with_headroom = self.xon.unwrap_or(0).saturating_add(self.xoff) == self.size;
        if marks.mode == XonModeDoc::Absolute && with_headroom {
            let size = cells(self.size - self.xoff);
            let became =
                format!("is xon + xoff, so it holds the Headroom: guaranteed = {}", size.0);
            notes.say(format!("{place}|size"), became);
            return Ok((size, marks));
        }
        Ok((cells(self.size), marks))
    }
}

const FIELDS: [&str; 9] = [
    "pool",
    "size",
    "dynamic_th",
    "static_th",
    "xon",
    "xoff",
    "xon_offset",
    "headroom_type",
    "packet_discard_action",
];

/// Reads a row of BUFFER_PROFILE; `None` where SONiC would compute it (`headroom_type` dynamic).
pub(super) fn profile(
    row: &Row,
    cell: CellSize,
    notes: &mut Notes,
) -> Result<Option<Buffer>, Finding> {
    row.only(&FIELDS)?;
    if let Some(action) = row.get("packet_discard_action").filter(|action| *action != "drop") {
        let finding = Finding::new(
            row.at("packet_discard_action"),
            "what doesn't fit can only be dropped",
            "write drop, or remove the field",
        );
        return Err(finding.numbers(action, "drop"));
    }
    if row.get("headroom_type") == Some("dynamic") {
        return Ok(None);
    }
    let name = row.reference("pool", "BUFFER_POOL")?;
    let Some(pool) = name else { return row.needed("pool").map(|_| None) };
    let most = u64::from(u32::MAX);
    let bytes = |field: &str| row.number(field, 0u64, most);
    row.needed("size")?;
    let size = bytes("size")?.unwrap_or(0);
    let bound = match (row.cells("static_th", cell)?, row.number("dynamic_th", -8i8, 7)?) {
        (Some(cells), None) => Bound::Static(cells),
        (None, Some(log2)) => Bound::Alpha(log2),
        (None, None) => return row.needed("dynamic_th").map(|_| None),
        (Some(_), Some(_)) => {
            let message = "static_th and dynamic_th exclude each other";
            return Err(Finding::new(row.at("static_th"), message, "remove one of the two"));
        }
    };
    let (xon, xoff, xon_offset) = (bytes("xon")?, bytes("xoff")?, bytes("xon_offset")?);
    let (size, marks) = match xoff.filter(|xoff| *xoff > 0) {
        Some(xoff) => {
            let lossless = LosslessBytes { size, xon, xoff, xon_offset };
            let (size, marks) = lossless.resolve(&row.place, cell, notes)?;
            (size, Some(marks))
        }
        None if xon.or(xon_offset).is_some_and(|bytes| bytes > 0) => {
            let message = "resumes, but has no headroom to pause with";
            return Err(Finding::new(row.at("xoff"), message, "add xoff, or remove xon"));
        }
        None => (Bytes(size).to_cells(cell), None),
    };
    let (place, pool) = (row.place.clone(), pool.to_owned());
    Ok(Some(Buffer { place, pool, size, bound, marks }))
}

/// What a row of BUFFER_PG or BUFFER_QUEUE binds.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    /// The row.
    pub place: String,
    /// `None`: left to be computed (`NULL`).
    pub buffer: Option<Buffer>,
}

/// What each port's slots are bound to by `table`.
pub(super) fn bindings(
    db: &ConfigDb,
    table: &str,
    ports: &[Port],
    cell: CellSize,
    notes: &mut Notes,
) -> Result<Vec<BTreeMap<Slot, Binding>>, Finding> {
    let mut bound: Vec<BTreeMap<Slot, Binding>> = ports.iter().map(|_| BTreeMap::new()).collect();
    let mut known: BTreeMap<&str, Option<Buffer>> = BTreeMap::new();
    for (key, row) in db.table(table) {
        row.only(&["profile"])?;
        let (names, slots) = ports_and_slots(row, key)?;
        let buffer = match row.needed("profile")? {
            "NULL" => None,
            _ => match db.referred(row, "profile", "BUFFER_PROFILE")? {
                Some(of) => match known.get(of.place.as_str()) {
                    Some(buffer) => buffer.clone(),
                    None => {
                        let buffer = profile(of, cell, notes)?;
                        known.insert(&of.place, buffer.clone());
                        buffer
                    }
                },
                None => None,
            },
        };
        for place in places(ports, &names, row)? {
            for slot in &slots {
                let binding = Binding { place: row.place.clone(), buffer: buffer.clone() };
                if let Some(other) = bound[place].insert(*slot, binding) {
                    let name = &ports[place].name;
                    let message = format!("{slot} of {name} is bound by {} too", other.place);
                    return Err(Finding::new(&row.place, message, "bind each once"));
                }
            }
        }
    }
    Ok(bound)
}
