//! High watermarks of PGs, queues and pools in both views (SPEC 3.8).

use super::accounts::pg_watermarks;
use super::buffer::buffer_reply;
use super::View;
use holdfast_api::message::{
    PgWatermark, PoolWatermark, QueueWatermark, WatermarkReply, Watermarks,
};
use holdfast_core::ids::{PgId, QueueId};

/// Which watermarks; the port was chosen when the workers were read.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatermarkQuery {
    /// PGs: none, one, or all.
    pub(crate) pgs: Choice<PgId>,
    /// Queues.
    pub(crate) queues: Choice<QueueId>,
    /// Pools, by name.
    pub(crate) pools: Choice<String>,
}

/// None, one or all of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Choice<T> {
    /// None of them.
    None,
    /// This one.
    One(T),
    /// All of them.
    #[default]
    All,
}

impl<T: PartialEq> Choice<T> {
    /// Whether `item` is chosen.
    pub(crate) fn has(&self, item: &T) -> bool {
        match self {
            Self::None => false,
            Self::One(one) => one == item,
            Self::All => true,
        }
    }
}

/// The answer to `watermark_show`.
pub(crate) fn watermark_reply(view: View<'_>, query: &WatermarkQuery) -> WatermarkReply {
    let mut reply = WatermarkReply::default();
    let mmu = &view.board.shared.mmu;
    for (port, _) in view.ports() {
        let name = view.board.port_name(port.id);
        let pgs = PgId::all().filter(|pg| query.pgs.has(pg));
        reply.pgs.extend(pgs.map(|pg| PgWatermark {
            port: name.clone(),
            pg: pg.number(),
            watermark: pg_watermarks(mmu, port.id, pg),
        }));
        let queues = port.queues.iter().filter(|(queue, _)| query.queues.has(queue));
        reply.queues.extend(queues.map(|(queue, now)| QueueWatermark {
            port: name.clone(),
            queue: queue.number(),
            watermark: Watermarks { user: now.user_peak.0, persistent: now.persistent_peak.0 },
        }));
    }
    let buffer = buffer_reply(view);
    let pools = buffer.pools.into_iter().chain(buffer.headroom_pool);
    reply.pools = pools
        .filter(|pool| query.pools.has(&pool.pool))
        .map(|pool| PoolWatermark { pool: pool.pool, watermark: pool.watermark })
        .collect();
    reply
}
