//! Egress queues: depth, traffic, marks, drops.

use super::family::Families;
use super::snapshot::Snapshot;
use holdfast_core::drop::DropReason;
use holdfast_shm::counters::QueueBlock;

/// What a frame is dropped for at a queue.
const REASONS: [DropReason; 5] = [
    DropReason::QueueLimit,
    DropReason::Wred,
    DropReason::Watchdog,
    DropReason::PortDown,
    DropReason::Shutdown,
];

/// A family of one series a queue: the end of its name, its help, its value.
type Family = (&'static str, &'static str, fn(&QueueBlock) -> u64);

const GAUGES: [Family; 2] = [
    ("occupancy_cells", "Cells queued and in the TX ring.", |queue| queue.occupancy),
    ("watermark_cells", "The most cells queued since the start.", |queue| queue.watermark),
];

const COUNTERS: [Family; 6] = [
    ("transmitted_frames_total", "Frames that left.", |queue| queue.transmitted.frames),
    ("transmitted_bytes_total", "Bytes that left, without FCS.", |queue| queue.transmitted.bytes),
    ("ecn_marked_frames_total", "ECT frames that became CE.", |queue| queue.marked),
    ("ce_passed_frames_total", "Frames that were CE already.", |queue| queue.ce_passed),
    ("mark_skipped_frames_total", "Frames with copies, never marked.", |queue| queue.mark_skipped),
    ("wred_dropped_frames_total", "Frames without ECT that WRED dropped.", |queue| {
        queue.dropped.get(DropReason::Wred)
    }),
];

const WATCHDOG: [Family; 2] = [
    ("storms_detected_total", "Storms that began.", |queue| queue.storms_detected),
    ("storms_restored_total", "Storms that ended.", |queue| queue.storms_restored),
];

pub(super) fn add(families: &mut Families, snapshot: &Snapshot) {
    for (name, help, value) in GAUGES {
        families.gauge(&format!("holdfast_queue_{name}"), help);
        each(families, snapshot, value);
    }
    for (name, help, value) in COUNTERS {
        families.counter(&format!("holdfast_queue_{name}"), help);
        each(families, snapshot, value);
    }
    for (name, help, value) in WATCHDOG {
        families.counter(&format!("holdfast_watchdog_{name}"), help);
        each(families, snapshot, value);
    }
    families.gauge("holdfast_watchdog_stormed", "Whether a storm of the queue lasts.");
    each(families, snapshot, |queue| u64::from(queue.stormed));
    let name = "holdfast_queue_dropped_frames_total";
    families.counter(name, "Frames dropped at the queue.");
    for (entry, port) in &snapshot.ports {
        for (id, queue) in port.queues.iter() {
            let number = id.number().to_string();
            for reason in REASONS {
                let labels =
                    [("port", &*entry.name), ("queue", &*number), ("reason", reason.name())];
                families.count(&labels, queue.dropped.get(reason));
            }
        }
    }
}

fn each(families: &mut Families, snapshot: &Snapshot, value: fn(&QueueBlock) -> u64) {
    for (entry, port) in &snapshot.ports {
        for (id, queue) in port.queues.iter() {
            let labels = [("port", &*entry.name), ("queue", &*id.number().to_string())];
            families.count(&labels, value(queue));
        }
    }
}
