//! P01..P03, P05..P09: what is paused, for how long, and who watches.

use super::{Id, LintFinding, PortView, Subject};
use holdfast_api::amount::{rate_text, span_text};
use holdfast_api::doc::Finding;
use holdfast_core::ids::{Cos, PgId, Priority, PrioritySet};
use holdfast_core::profile::PgSpec;
use holdfast_core::units::Nanos;

/// Half of a pause must last so long: what a switch on a CPU may be late by.
const LATE: Nanos = Nanos::millis(1);
/// The usual range of detection times (SONiC's, too).
const DETECTION: std::ops::RangeInclusive<Nanos> = Nanos::millis(100)..=Nanos::millis(5_000);
/// Lossless priorities of a port that switches are built for.
const USUAL_LOSSLESS: usize = 2;

pub(super) fn check(subject: &Subject<'_>, found: &mut Vec<LintFinding>) {
    for port in subject.ports() {
        for (pg, account) in port.spec.pgs.iter().filter(|(_, account)| account.lossless) {
            unpaused(&port, pg, account, found);
            foreign_cos(&port, pg, account, found);
        }
        lossy_priorities(&port, found);
        how_many(&port, found);
        pause_time(&port, found);
        link_pause(&port, found);
        watchdog(&port, found);
    }
}

fn numbers(set: PrioritySet) -> String {
    let numbers: Vec<u8> = set.iter().map(Priority::number).collect();
    format!("{numbers:?}")
}

/// P01, seen from the PG.
fn unpaused(port: &PortView<'_>, pg: PgId, account: &PgSpec, found: &mut Vec<LintFinding>) {
    let enabled = port.spec.pfc.enabled;
    let not_enabled: Vec<String> = account
        .priorities
        .iter()
        .filter(|priority| !enabled.contains(*priority))
        .map(|priority| priority.to_string())
        .collect();
    let message = if account.priorities.and(enabled).is_empty() {
        "a lossless PG pauses nobody: PFC is enabled on none of its priorities".to_owned()
    } else if not_enabled.is_empty() {
        return;
    } else {
        let list = not_enabled.join(", ");
        format!("a lossless PG doesn't pause all of its priorities: PFC isn't enabled on {list}")
    };
    let fix = "enable them in pfc.enabled, or set lossless = false";
    let finding = Finding::new(port.key(format_args!("pg.{pg}.priorities")), message, fix);
    let finding = finding.numbers(numbers(account.priorities), numbers(enabled));
    found.push(LintFinding::gravest(Id::P01, finding).at(port).of_pg(port.number, pg));
}

/// P09: a frame's CoS is the priority that its sender stops for.
fn foreign_cos(port: &PortView<'_>, pg: PgId, account: &PgSpec, found: &mut Vec<LintFinding>) {
    let missing = Cos::all()
        .filter(|cos| port.spec.maps.cos_to_pg[*cos] == pg)
        .filter(|cos| !account.priorities.contains(Priority::from_bits(cos.number())));
    for cos in missing {
        let message = format!("CoS {cos} is mapped to this lossless PG, which doesn't pause it");
        let fix = format!("add {cos} to priorities, or map CoS {cos} to a lossy PG");
        let finding = Finding::new(port.key(format_args!("pg.{pg}.priorities")), message, fix);
        let finding = finding.numbers(cos, numbers(account.priorities));
        found.push(LintFinding::gravest(Id::P09, finding).at(port).of_pg(port.number, pg));
    }
}

/// P01, seen from the priority.
fn lossy_priorities(port: &PortView<'_>, found: &mut Vec<LintFinding>) {
    let lossless = lossless_priorities(port);
    let lossy = port.spec.pfc.enabled.iter().filter(|priority| !lossless.contains(*priority));
    for priority in lossy {
        let message = format!("PFC is enabled on priority {priority}, but no lossless PG has it");
        let fix = format!("remove {priority}, or give it to a lossless PG's priorities");
        let finding = Finding::new(port.key("pfc.enabled"), message, fix);
        let finding = finding.numbers(priority, numbers(lossless));
        found.push(LintFinding::gravest(Id::P01, finding).at(port));
    }
}

fn lossless_priorities(port: &PortView<'_>) -> PrioritySet {
    let lossless = port.spec.pgs.0.iter().filter(|pg| pg.lossless);
    lossless.fold(PrioritySet::EMPTY, |set, pg| set.or(pg.priorities))
}

/// P02 and P03.
fn how_many(port: &PortView<'_>, found: &mut Vec<LintFinding>) {
    let lossless = lossless_priorities(port).and(port.spec.pfc.enabled);
    let count = lossless.iter().count();
    let mut report = |id, message: &str, limit: String| {
        let fix = "make classes that can bear loss lossy";
        let finding = Finding::new(port.key("pfc.enabled"), message, fix).numbers(count, limit);
        found.push(LintFinding::gravest(id, finding).at(port));
    };
    if count > USUAL_LOSSLESS {
        report(Id::P02, "many lossless priorities", format!("at most {USUAL_LOSSLESS}"));
    }
    if count == Priority::COUNT {
        report(Id::P03, "all priorities are lossless", format!("below {count}"));
    }
}

/// P05: a pause is refreshed when half of it is over (SPEC 4.1).
fn pause_time(port: &PortView<'_>, found: &mut Vec<LintFinding>) {
    let (pfc, speed) = (&port.spec.pfc, port.spec.speed);
    let pause = pfc.quanta.at(speed);
    if pfc.enabled.is_empty() || pause.0 >= 2 * LATE.0 {
        return;
    }
    let message = format!(
        "half of {} quanta at {} is shorter than a switch on a CPU may be late",
        pfc.quanta.0,
        rate_text(speed.bits_per_second())
    );
    let fix = "raise pause_quanta (65535 at most), or declare a lower speed";
    let finding = Finding::new(port.key("pfc.pause_quanta"), message, fix);
    let finding =
        finding.numbers(span_text(pause.0 / 2), format!("at least {}", span_text(LATE.0)));
    found.push(LintFinding::gravest(Id::P05, finding).at(port));
}

/// P08.
fn link_pause(port: &PortView<'_>, found: &mut Vec<LintFinding>) {
    if !port.spec.pfc.link_pause || port.spec.pfc.enabled.is_empty() {
        return;
    }
    let message = "the port obeys 802.3x PAUSE (link_pause), and PFC is enabled on it";
    let fix = "remove link_pause from the port in switch.toml, or set enabled = [] for it";
    let finding = Finding::new(port.key("pfc.enabled"), message, fix);
    let finding = finding.numbers(numbers(port.spec.pfc.enabled), "[]");
    found.push(LintFinding::gravest(Id::P08, finding).at(port));
}

/// P06 and P07.
fn watchdog(port: &PortView<'_>, found: &mut Vec<LintFinding>) {
    if port.spec.pgs.0.iter().all(|pg| !pg.lossless) {
        return;
    }
    let (id, finding) = match &port.spec.watchdog {
        None => {
            let fix = "add a [watchdog] section, or set enabled = true in it";
            let message = "a lossless port has no watchdog";
            (Id::P06, Finding::new(port.key("watchdog"), message, fix))
        }
        Some(watchdog) if !DETECTION.contains(&watchdog.detection_time) => {
            let key = port.key("watchdog.detection_time");
            let limit = DETECTION.start().0;
            let limit = format!("{}..{}", span_text(limit), span_text(DETECTION.end().0));
            let message = "the detection time is out of the usual range";
            let finding = Finding::new(key, message, format!("use a time in {limit}"));
            (Id::P07, finding.numbers(span_text(watchdog.detection_time.0), limit))
        }
        Some(_) => return,
    };
    found.push(LintFinding::gravest(id, finding).at(port));
}
