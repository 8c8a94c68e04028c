//! The watchdogs of queues (SPEC 8).

use super::{PortReading, View};
use holdfast_api::message::{WatchdogReply, WatchdogStatus};
use holdfast_core::drop::DropReason;
use holdfast_core::ids::QueueId;
use holdfast_core::profile::{PortSpec, WatchdogSpec};

/// The answer to `show_watchdog`: one watched queue, or all, of every port that was read.
pub(crate) fn watchdog_reply(view: View<'_>, only: Option<QueueId>) -> WatchdogReply {
    let mut queues = Vec::new();
    for (port, spec) in view.ports() {
        let Some(watchdog) = &spec.watchdog else { continue };
        let watched = watched(spec).filter(|id| only.is_none_or(|only| only == *id));
        queues.extend(watched.map(|id| status(view, port, watchdog, id)));
    }
    WatchdogReply { queues }
}

fn watched(spec: &PortSpec) -> impl Iterator<Item = QueueId> {
    spec.pausable_queues().iter()
}

fn status(view: View<'_>, port: &PortReading, spec: &WatchdogSpec, id: QueueId) -> WatchdogStatus {
    let watch = &port.queues[id].watch;
    WatchdogStatus {
        port: view.board.port_name(port.id),
        queue: id.number(),
        watchdog: spec.into(),
        stormed: watch.is_stormed(),
        stormed_ns: watch.stormed_since().map_or(0, |since| view.now.since(since).0),
        restoration_ns: watch.restoration_time(spec).0,
        detected: watch.detections(),
        restored: watch.restorations(),
        dropped_frames: port.counters.queues[id].dropped.get(DropReason::Watchdog),
    }
}
