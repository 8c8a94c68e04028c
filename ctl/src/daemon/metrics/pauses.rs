//! PFC by priority.

use super::family::{seconds, Families};
use super::snapshot::Snapshot;
use holdfast_core::pfc::PauseCause;
use holdfast_shm::counters::{PauseBlock, PriorityBlock};
use holdfast_wire::InvalidKind;

/// A direction of a priority.
type Direction = fn(&PriorityBlock) -> &PauseBlock;

/// Both with their names.
const DIRECTIONS: [(&str, Direction); 2] = [
    ("received", |priority| &priority.received),
    ("transmitted", |priority| &priority.transmitted),
];

pub(super) fn add(families: &mut Families, snapshot: &Snapshot) {
    for (direction, pick) in DIRECTIONS {
        let name = format!("holdfast_pfc_{direction}_frames_total");
        let help = format!("PFC frames {direction} that name the priority, by what they did.");
        families.counter(&name, &help);
        each(snapshot, |port, number, priority| {
            let pause = pick(priority);
            let kinds = [("xoff", pause.xoff), ("refresh", pause.refresh), ("xon", pause.xon)];
            for (kind, frames) in kinds {
                families.count(&[("port", port), ("priority", number), ("kind", kind)], frames);
            }
        });
    }
    let name = "holdfast_pfc_paused_seconds_total";
    families.counter(name, "Time paused: by the peer (received), or the peer by us.");
    both(families, snapshot, |pause| seconds(pause.paused_ns));
    let name = "holdfast_pfc_pause_transitions_total";
    families.counter(name, "Pauses begun.");
    both(families, snapshot, |pause| pause.transitions as f64);
    families.gauge("holdfast_pfc_paused", "Whether the priority is paused now.");
    both(families, snapshot, |pause| if pause.paused { 1.0 } else { 0.0 });
    families.gauge("holdfast_pfc_pause_cause", "Why we pause the peer now.");
    each(snapshot, |port, number, priority| {
        for (cause, holds) in PauseCause::ALL.iter().zip(priority.causes) {
            let labels = [("port", port), ("priority", number), ("cause", cause.name())];
            families.state(&labels, holds);
        }
    });
    let name = "holdfast_pfc_invalid_frames_total";
    families.counter(name, "MAC control frames received without effect, by what is wrong.");
    for (entry, port) in &snapshot.ports {
        for (kind, frames) in InvalidKind::ALL.iter().zip(port.invalid) {
            families.count(&[("port", &entry.name), ("kind", kind.name())], frames);
        }
    }
}

/// Calls `with` for each priority of each port: the port's name, the number as text, its block.
fn each<'a>(snapshot: &'a Snapshot, mut with: impl FnMut(&'a str, &str, &'a PriorityBlock)) {
    for (entry, port) in &snapshot.ports {
        for (id, priority) in port.priorities.iter() {
            with(&entry.name, &id.number().to_string(), priority);
        }
    }
}

/// A series for each direction of each priority.
fn both(families: &mut Families, snapshot: &Snapshot, value: fn(&PauseBlock) -> f64) {
    each(snapshot, |port, number, priority| {
        for (direction, pick) in DIRECTIONS {
            let labels = [("port", port), ("priority", number), ("direction", direction)];
            families.add(&labels, value(pick(priority)));
        }
    });
}
