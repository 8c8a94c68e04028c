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
