//! QUEUE, SCHEDULER, WRED_PROFILE and BUFFER_QUEUE: the egress side.

use super::buffers::{Binding, Bound};
use super::config_db::{ports_and_slots, ConfigDb, Row};
use super::ports::{places, Port};
use super::Notes;
use holdfast_api::amount::{CellAmount, Rate};
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{NotEctDoc, QueueDoc, Slot, WredDoc};
use holdfast_core::units::{BitRate, CellSize, Cells};
use std::collections::BTreeMap;

/// The plan's default of lossy queues, said where CONFIG_DB binds nothing.
const UNBOUND: Bound = Bound::Alpha(1);

/// The rows of QUEUE by port and queue.
pub(super) fn rows<'a>(
    db: &'a ConfigDb,
    ports: &[Port],
) -> Result<Vec<BTreeMap<Slot, &'a Row>>, Finding> {
    let mut found: Vec<BTreeMap<Slot, &Row>> = ports.iter().map(|_| BTreeMap::new()).collect();
    for (key, row) in db.table("QUEUE") {
        row.only(&["scheduler", "wred_profile"])?;
        let (names, slots) = ports_and_slots(row, key)?;
        for place in places(ports, &names, row)? {
            for slot in &slots {
                if let Some(other) = found[place].insert(*slot, row) {
                    let name = &ports[place].name;
                    let message = format!("queue {slot} of {name} is in {} too", other.place);
                    return Err(Finding::new(&row.place, message, "name each once"));
                }
            }
        }
    }
    Ok(found)
}

/// One queue, with every key that a shared section might have.
pub(super) fn queue(
    db: &ConfigDb,
    row: Option<&Row>,
    binding: Option<&Binding>,
    lossless: bool,
    cell: CellSize,
    notes: &mut Notes,
) -> Result<QueueDoc, Finding> {
    let mut doc = QueueDoc { guarantee: Some(CellAmount::Cells(0)), ..QueueDoc::default() };
    match binding.and_then(|binding| binding.buffer.as_ref()) {
        Some(buffer) => {
            doc.guarantee = Some(CellAmount::Cells(buffer.size.0));
            if lossless {
                let became = "isn't kept at lossless queues: ingress admission is their only gate";
                notes.say(format!("{} threshold", buffer.place), became);
            } else {
                (doc.limit, doc.alpha) = buffer.bound.keys();
            }
        }
        None if !lossless => {
            (doc.limit, doc.alpha) = UNBOUND.keys();
            notes.say("BUFFER_QUEUE", "binds nothing to some lossy queues: alpha = 1 there");
        }
        None => {}
    }
    let scheduler = match row {
        Some(row) => db.referred(row, "scheduler", "SCHEDULER")?,
        None => None,
    };
    schedule(&mut doc, scheduler, notes)?;
    let line = match row {
        Some(row) => db.referred(row, "wred_profile", "WRED_PROFILE")?,
        None => None,
    };
    let line = line.map(|line| wred(line, lossless, cell, notes)).transpose()?;
    let none = WredDoc { off: Some(true), ..WredDoc::default() };
    doc.wred = Some(line.flatten().unwrap_or(none));
    Ok(doc)
}

fn schedule(doc: &mut QueueDoc, row: Option<&Row>, notes: &mut Notes) -> Result<(), Finding> {
    let Some(row) = row else {
        notes.say(
            "QUEUE",
            "has queues without a scheduler: strict = true, as SONiC's control queue",
        );
        doc.strict = Some(true);
        return Ok(());
    };
    row.only(&["type", "weight", "meter_type", "cir", "cbs", "pir", "pbs"])?;
    match row.get("type").unwrap_or("DWRR") {
        "STRICT" => doc.strict = Some(true),
        "DWRR" => {
            doc.weight = row.number("weight", 1, 100)?;
            if doc.weight.is_none() {
                row.needed("weight")?;
            }
        }
        other => {
            let message = "shares can only be counted in bytes";
            let finding = Finding::new(row.at("type"), message, "write DWRR or STRICT");
            return Err(finding.numbers(other, "DWRR, STRICT"));
        }
    }
    if row.get("meter_type").is_some_and(|unit| unit != "bytes") {
        let message = "rates can only be counted in bytes";
        return Err(Finding::new(row.at("meter_type"), message, "write bytes"));
    }
    let rate = |field: &str| -> Result<Option<Rate>, Finding> {
        let bytes = row.number(field, 0u64, 1 << 40)?;
        Ok(bytes.and_then(|bytes| BitRate::new(bytes * 8)).map(Rate))
    };
    (doc.min_rate, doc.max_rate) = (rate("cir")?, rate("pir")?);
    for field in ["cbs", "pbs"] {
        if row.get(field).is_some_and(|bytes| bytes != "0") {
            let became = "isn't kept: bursts are bounded by scheduler.catch_up";
            notes.say(row.at(field), became);
        }
    }
    Ok(())
}

const COLOURS: [&str; 3] = ["green", "yellow", "red"];
const LINE: [&str; 4] =
    ["wred_{}_enable", "{}_min_threshold", "{}_max_threshold", "{}_drop_probability"];

/// The green line; `None` where green frames are neither marked nor dropped.
fn wred(
    row: &Row,
    lossless: bool,
    cell: CellSize,
    notes: &mut Notes,
) -> Result<Option<WredDoc>, Finding> {
    let named = |field: &str, colour: &str| field.replace("{}", colour);
    let mut known = vec!["ecn".to_owned()];
    known.extend(COLOURS.iter().flat_map(|colour| LINE.map(|field| named(field, colour))));
    row.only(&known.iter().map(String::as_str).collect::<Vec<_>>())?;
    for colour in &COLOURS[1..] {
        let differs = |field: &&&str| {
            let other = row.get(&named(field, colour));
            other.is_some() && other != row.get(&named(field, "green"))
        };
        if let Some(field) = LINE.iter().find(differs) {
            let became = "isn't kept: frames have no colour, all take the green line";
            notes.say(row.at(&named(field, colour)), became);
        }
    }
    let drops = row.flag("wred_green_enable")?;
    let marks = match row.get("ecn").unwrap_or("ecn_none") {
        "ecn_all" | "ecn_green" | "ecn_green_yellow" | "ecn_green_red" => true,
        "ecn_none" | "ecn_yellow" | "ecn_red" | "ecn_yellow_red" => false,
        other => {
            let finding = Finding::new(row.at("ecn"), "is no mode", "write ecn_all or ecn_none");
            return Err(finding.numbers(other, "ecn_none, ecn_green, … ecn_all"));
        }
    };
    match (marks, drops) {
        (false, false) => return Ok(None),
        (false, true) => {
            let message = "WRED that drops frames with ECT can't be expressed";
            let fix = "write ecn_all, or set wred_green_enable to false";
            return Err(Finding::new(row.at("ecn"), message, fix));
        }
        (true, _) => {}
    }
    if lossless && drops {
        let became = "frames without ECT pass at lossless queues, they aren't dropped";
        notes.say(row.at("wred_green_enable"), became);
    }
    let level = |field: &str| match row.cells(field, cell)? {
        Some(cells) => Ok(CellAmount::Cells(cells.max(Cells(1)).0)),
        None => row.needed(field).map(|_| CellAmount::Cells(1)),
    };
    row.needed("green_drop_probability")?;
    let percent = row.number("green_drop_probability", 0u8, 100)?.unwrap_or(100);
    let not_ect = if drops { NotEctDoc::Drop } else { NotEctDoc::Pass };
    Ok(Some(WredDoc {
        off: Some(false),
        kmin: Some(level("green_min_threshold")?),
        kmax: Some(level("green_max_threshold")?),
        pmax: Some(f64::from(percent) / 100.0),
        not_ect: (!lossless).then_some(not_ect),
        ..WredDoc::default()
    }))
}
