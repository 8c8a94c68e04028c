//! Priority groups: what they hold, what they may hold, what they refused.

use super::family::Families;
use super::snapshot::Snapshot;
use holdfast_core::drop::DropReason;
use holdfast_shm::counters::PgBlock;

const SEGMENTS: [&str; 3] = ["guaranteed", "service", "headroom"];
/// What the MMU refuses a frame for: the reasons that a PG can have.
const REASONS: [DropReason; 2] = [DropReason::HeadroomOverflow, DropReason::LossyIngress];

pub(super) fn add(families: &mut Families, snapshot: &Snapshot) {
    let name = "holdfast_pg_occupancy_cells";
    families.gauge(name, "Cells that the PG holds, by segment.");
    segments(families, snapshot, |pg| &pg.occupancy);
    let name = "holdfast_pg_watermark_cells";
    families.gauge(name, "The most cells that the PG has held since the start, by segment.");
    segments(families, snapshot, |pg| &pg.watermark);
    let name = "holdfast_pg_threshold_cells";
    families.gauge(name, "Levels of now on Service (xoff, resume, limit) and the Headroom size.");
    each(snapshot, |port, number, pg| {
        let levels = [
            ("xoff", pg.xoff_threshold),
            ("resume", pg.resume),
            ("limit", pg.limit),
            ("headroom", pg.headroom),
        ];
        for (threshold, cells) in levels {
            families.count(&[("port", port), ("pg", number), ("threshold", threshold)], cells);
        }
    });
    let name = "holdfast_pg_dropped_frames_total";
    families.counter(name, "Frames that the PG had no room for.");
    each(snapshot, |port, number, pg| {
        for reason in REASONS {
            let labels = [("port", port), ("pg", number), ("reason", reason.name())];
            families.count(&labels, pg.dropped.get(reason));
        }
    });
    deadlocks(families, snapshot);
}

/// A family of one series a PG: the end of its name, its help, its value.
type Family = (&'static str, &'static str, fn(&PgBlock) -> u64);

/// Suspected deadlocks.
const DEADLOCKS: [Family; 2] = [
    ("suspected_total", "Times that no frame of the PG could move.", |pg| pg.deadlocks_suspected),
    ("resolved_total", "Times that this ended.", |pg| pg.deadlocks_resolved),
];

fn deadlocks(families: &mut Families, snapshot: &Snapshot) {
    let add = |value: fn(&PgBlock) -> u64, families: &mut Families| {
        each(snapshot, |port, number, pg| {
            families.count(&[("port", port), ("pg", number)], value(pg));
        });
    };
    for (name, help, value) in DEADLOCKS {
        families.counter(&format!("holdfast_deadlocks_{name}"), help);
        add(value, families);
    }
    let name = "holdfast_deadlock_suspected";
    families.gauge(name, "Whether the PG is in XOFF and all its frames are in paused queues.");
    add(|pg| u64::from(pg.suspected), families);
}

fn each<'a>(snapshot: &'a Snapshot, mut with: impl FnMut(&'a str, &str, &'a PgBlock)) {
    for (entry, port) in &snapshot.ports {
        for (id, pg) in port.pgs.iter() {
            with(&entry.name, &id.number().to_string(), pg);
        }
    }
}

fn segments(families: &mut Families, snapshot: &Snapshot, pick: fn(&PgBlock) -> &[u64; 3]) {
    each(snapshot, |port, number, pg| {
        for (segment, cells) in SEGMENTS.into_iter().zip(pick(pg)) {
            families.count(&[("port", port), ("pg", number), ("segment", segment)], *cells);
        }
    });
}
