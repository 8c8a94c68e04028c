//! PFC_WD: storm detection.

use super::config_db::{port_list, ConfigDb, Row};
use super::ports::{places, Port};
use super::Notes;
use holdfast_api::amount::Span;
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{WatchdogActionDoc, WatchdogDoc};
use holdfast_core::units::Nanos;
use std::ops::RangeInclusive;

/// Times that SONiC's pfcwd takes.
pub(crate) const DETECTION: RangeInclusive<Nanos> = Nanos::millis(100)..=Nanos::millis(5_000);
const RESTORATION: RangeInclusive<Nanos> = Nanos::millis(100)..=Nanos::millis(60_000);

/// The watchdog of each port; `None` where there is no row.
pub(super) fn read(
    db: &ConfigDb,
    ports: &[Port],
    notes: &mut Notes,
) -> Result<Vec<Option<WatchdogDoc>>, Finding> {
    let table = db.table("PFC_WD");
    let mut watchdogs = vec![None; ports.len()];
    let poll = match table.get("GLOBAL") {
        Some(row) => global(row, notes)?,
        None => None,
    };
    for (key, row) in table.iter().filter(|(key, _)| *key != "GLOBAL") {
        let watchdog = watchdog(row, poll, notes)?;
        for place in places(ports, &port_list(key), row)? {
            if watchdogs[place].replace(watchdog).is_some() {
                let message = "the port has a second row";
                return Err(Finding::new(&row.place, message, "name each port once"));
            }
        }
    }
    Ok(watchdogs)
}

/// The poll interval, ms.
fn global(row: &Row, notes: &mut Notes) -> Result<Option<u64>, Finding> {
    row.only(&["POLL_INTERVAL", "BIG_RED_SWITCH"])?;
    if row.get("BIG_RED_SWITCH").is_some_and(|switch| switch != "disable") {
        let message = "dropping all lossless traffic whether or not there is a storm can't be \
                       expressed";
        return Err(Finding::new(row.at("BIG_RED_SWITCH"), message, "write disable"));
    }
    let poll = row.number("POLL_INTERVAL", 100, 1_000)?;
    if poll.is_some() {
        notes.say(row.at("POLL_INTERVAL"), "not needed: times are exact, nothing is polled");
    }
    Ok(poll)
}

const fn ms(time: Nanos) -> u64 {
    time.0 / 1_000_000
}

/// A time of whole milliseconds in its range.
fn within(row: &Row, field: &str, range: &RangeInclusive<Nanos>) -> Result<Option<u64>, Finding> {
    row.number(field, ms(*range.start()), ms(*range.end()))
}

fn watchdog(row: &Row, poll: Option<u64>, notes: &mut Notes) -> Result<WatchdogDoc, Finding> {
    row.only(&["action", "detection_time", "restoration_time", "pfc_stat_history"])?;
    row.needed("detection_time")?;
    let detection = within(row, "detection_time", &DETECTION)?;
    let detection = detection.unwrap_or(ms(*DETECTION.end()));
    let restoration = match within(row, "restoration_time", &RESTORATION)? {
        Some(time) => time,
        None => {
            let became = "absent: twice the detection time, as SONiC's command line sets it";
            notes.say(row.at("restoration_time"), became);
            2 * detection
        }
    };
    for (field, time) in [("detection_time", detection), ("restoration_time", restoration)] {
        if let Some(poll) = poll.filter(|poll| time < *poll) {
            let message = format!("{field} is shorter than POLL_INTERVAL, ms");
            let fix = "raise it, or lower PFC_WD|GLOBAL|POLL_INTERVAL";
            return Err(
                Finding::new(row.at(field), message, fix).numbers(time, format!("from {poll} on"))
            );
        }
    }
    if row.get("pfc_stat_history") == Some("enable") {
        notes.say(row.at("pfc_stat_history"), "isn't kept: pauses are counted always");
    }
    let action = match row.get("action").unwrap_or("drop") {
        "drop" => WatchdogActionDoc::Drop,
        "forward" => WatchdogActionDoc::Forward,
        "alert" => WatchdogActionDoc::Alert,
        other => {
            let finding = Finding::new(row.at("action"), "is no action", "write drop");
            return Err(finding.numbers(other, "drop, forward, alert"));
        }
    };
    let time = |ms: u64| Some(Span(Nanos::millis(ms)));
    Ok(WatchdogDoc {
        enabled: Some(true),
        detection_time: time(detection),
        restoration_time: time(restoration),
        action: Some(action),
        // What restores by the times given and no other.
        back_off: Some(false),
    })
}
