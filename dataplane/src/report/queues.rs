//! Egress queues and what WRED did at them (SPEC 3.5, 5).

use super::{PortReading, QueueReading, View};
use holdfast_api::message::{
    drop_counts, service_name, EcnReply, EcnStatus, QueueReply, QueueStatus, Watermarks, WredView,
};
use holdfast_core::counters::QueueCounters;
use holdfast_core::drop::DropReason;
use holdfast_core::ids::QueueId;
use holdfast_core::mmu::limit;
use holdfast_core::profile::QueueSpec;

/// One queue with all there is about it.
struct Queue<'a> {
    port: String,
    id: QueueId,
    held: bool,
    spec: &'a QueueSpec,
    now: &'a QueueReading,
    counters: &'a QueueCounters,
}

/// One queue, or all, of every port that was read.
fn queues(view: View<'_>, only: Option<QueueId>) -> Vec<Queue<'_>> {
    let of_port = |port: &PortReading| view.board.port_name(port.id);
    let mut queues = Vec::new();
    for (port, spec) in view.ports() {
        let wanted = QueueId::all().filter(|id| only.is_none_or(|only| only == *id));
        queues.extend(wanted.map(|id| Queue {
            port: of_port(port),
            id,
            held: port.held,
            spec: &spec.queues[id],
            now: &port.queues[id],
            counters: &port.counters.queues[id],
        }));
    }
    queues
}

/// The answer to `show_queue`.
pub(crate) fn queue_reply(view: View<'_>, only: Option<QueueId>) -> QueueReply {
    let free = view.board.shared.mmu.egress_pool(&view.board.profile).free;
    let status = |queue: Queue<'_>| QueueStatus {
        port: queue.port,
        queue: queue.id.number(),
        paused: queue.now.paused,
        held: queue.held,
        service: service_name(queue.spec.service),
        occupancy: queue.now.occupancy.0,
        frames: queue.now.frames,
        guarantee: queue.spec.guarantee.0,
        limit: queue.spec.limit.map(|of| limit(of, free).0),
        watermark: Watermarks {
            user: queue.now.user_peak.0,
            persistent: queue.now.persistent_peak.0,
        },
        tx_frames: queue.counters.transmitted.frames,
        tx_bytes: queue.counters.transmitted.bytes,
        drops: drop_counts(&queue.counters.dropped),
    };
    QueueReply { queues: queues(view, only).into_iter().map(status).collect() }
}

/// The answer to `show_ecn`.
pub(crate) fn ecn_reply(view: View<'_>, only: Option<QueueId>) -> EcnReply {
    let status = |queue: Queue<'_>| {
        let averaged = queue.spec.wred.is_some_and(|wred| wred.ewma_shift > 0);
        let depth = if averaged { queue.now.average } else { queue.now.occupancy };
        EcnStatus {
            port: queue.port,
            queue: queue.id.number(),
            wred: queue.spec.wred.as_ref().map(WredView::from),
            depth: depth.0,
            marked: queue.counters.marked,
            ce_passed: queue.counters.ce_passed,
            wred_dropped: queue.counters.dropped.get(DropReason::Wred),
            mark_skipped: queue.counters.mark_skipped,
        }
    };
    EcnReply { queues: queues(view, only).into_iter().map(status).collect() }
}
