//! What ports received by class, and the maps they class by (SPEC 2).

use super::View;
use holdfast_api::message::{ClassMapsView, ClassifyReply, ClassifyStatus};

/// The answer to `show_classify`.
pub(crate) fn classify_reply(view: View<'_>) -> ClassifyReply {
    let ports = view.ports().into_iter().map(|(port, spec)| ClassifyStatus {
        port: view.board.port_name(port.id),
        dscp_frames: port.counters.received_dscp.0.to_vec(),
        pcp_frames: port.counters.received_pcp.0.to_vec(),
        unclassified_frames: port.counters.received_unclassed,
        cos_frames: port.counters.received_cos.0.to_vec(),
        maps: ClassMapsView::from(&spec.maps),
    });
    ClassifyReply { ports: ports.collect() }
}
