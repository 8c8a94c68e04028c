//! What is in each block, read from the worker between two of its steps.

use crate::worker_thread::WorkerStats;
use holdfast_core::durations::Durations;
use holdfast_core::ids::{PerPg, PerPriority, PerQueue, PgId, PoolId, PortId, Priority, QueueId};
use holdfast_core::io::{FramePool, PortIo};
use holdfast_core::mmu::{Mmu, PoolSnapshot, View};
use holdfast_core::pfc::{PauseCause, PauseCounts, Peer};
use holdfast_core::port::Port;
use holdfast_core::profile::Profile;
use holdfast_core::units::{Cells, Time};
use holdfast_core::worker::Worker;
use holdfast_shm::counters::{
    PauseBlock, PgBlock, PoolBlock, PortBlock, PriorityBlock, QueueBlock, SharedBlock, Times,
    WorkerBlock,
};
use holdfast_wire::InvalidKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

fn count(cells: Cells) -> u64 {
    u64::from(cells.0)
}

fn times(durations: &Durations) -> Times {
    Times { below: durations.below, total: durations.total }
}

/// A port that the worker owns; `false`, and the block as it was, for one that it doesn't own.
pub(super) fn fill_port<P: PortIo>(
    block: &mut PortBlock,
    worker: &mut Worker<P>,
    id: PortId,
    now: Time,
) -> bool {
    let (profile, shared) = (Arc::clone(worker.profile()), Arc::clone(worker.shared()));
    let Some(port) = worker.port_mut(id) else { return false };
    let backlog = port.io_mut().rx_backlog();
    let (counters, receiver) = (port.counters(), port.pause_receiver());
    block.written_ns = now.0;
    block.up = port.is_up();
    block.received = counters.received;
    block.transmitted = counters.transmitted;
    block.dropped = counters.dropped;
    block.receive_overrun = counters.receive_overrun;
    block.lossless_violations = counters.lossless_violations;
    block.rx_backlog = u64::from(backlog) + u64::from(port.late_frames());
    block.peer_deaf = port.peer() == Peer::Deaf;
    block.received_dscp = counters.received_dscp;
    block.received_pcp = counters.received_pcp;
    block.invalid = InvalidKind::ALL.map(|kind| receiver.invalid(kind));
    block.xoff_reaction = times(port.reaction());
    block.forwarding_latency = times(port.latency());
    block.pgs = PerPg::from_fn(|pg| pg_block(&shared.mmu, &profile, port, pg));
    block.queues = PerQueue::from_fn(|queue| queue_block(port, queue));
    block.priorities = PerPriority::from_fn(|priority| priority_block(port, priority, now));
    true
}

fn pg_block<P>(mmu: &Mmu, profile: &Profile, port: &Port<P>, pg: PgId) -> PgBlock {
    let now = mmu.pg(profile, port.id(), pg);
    let peak = mmu.watermarks(port.id(), pg, View::Persistent);
    let (counters, suspicion) = (&port.counters().pgs[pg], port.suspicion(pg));
    PgBlock {
        occupancy: [now.guaranteed, now.service, now.headroom].map(count),
        watermark: [peak.guaranteed, peak.service, peak.headroom].map(count),
        xoff: now.xoff,
        xoff_threshold: count(now.xoff_eff),
        resume: count(now.resume),
        limit: count(now.limit),
        headroom: profile.port(port.id()).map_or(0, |spec| count(spec.pgs[pg].headroom)),
        admitted: counters.admitted,
        dropped: counters.dropped,
        deadlocks_suspected: suspicion.suspected(),
        deadlocks_resolved: suspicion.resolved(),
        suspected: suspicion.since().is_some(),
    }
}

fn queue_block<P>(port: &Port<P>, id: QueueId) -> QueueBlock {
    let (account, counters) = (port.queue(id).account(), &port.counters().queues[id]);
    let watch = port.watchdog(id);
    QueueBlock {
        occupancy: count(account.occupancy()),
        watermark: count(account.watermark(View::Persistent)),
        transmitted: counters.transmitted,
        dropped: counters.dropped,
        marked: counters.marked,
        ce_passed: counters.ce_passed,
        mark_skipped: counters.mark_skipped,
        storms_detected: watch.detections(),
        storms_restored: watch.restorations(),
        stormed: watch.is_stormed(),
    }
}

fn priority_block<P>(port: &Port<P>, id: Priority, now: Time) -> PriorityBlock {
    let (sender, receiver) = (port.pause_sender(), port.pause_receiver());
    let level = sender.level();
    let frames = |PauseCounts { xoff, refresh, xon }| PauseBlock {
        xoff,
        refresh,
        xon,
        ..PauseBlock::default()
    };
    PriorityBlock {
        causes: PauseCause::ALL.map(|cause| sender.cause(cause).contains(id) && level.contains(id)),
        transmitted: PauseBlock {
            paused_ns: sender.paused_time(id, now).0,
            transitions: sender.transitions(id),
            paused: sender.paused().contains(id),
            ..frames(sender.counts(id))
        },
        received: PauseBlock {
            paused_ns: receiver.paused_time(id, now).0,
            transitions: receiver.transitions(id),
            paused: receiver.is_paused(id, now),
            ..frames(receiver.counts(id))
        },
    }
}

/// What all workers share.
pub(super) fn fill_shared<P: PortIo>(worker: &Worker<P>, now: Time) -> SharedBlock {
    let (mmu, profile) = (&worker.shared().mmu, worker.profile());
    let pool = |snapshot: PoolSnapshot, peak: Cells| PoolBlock {
        size: count(snapshot.size),
        lent: count(snapshot.lent),
        watermark: count(peak),
    };
    SharedBlock {
        written_ns: now.0,
        pools: core::array::from_fn(|number| match PoolId::new(number as u8) {
            Some(id) => pool(mmu.pool(profile, id), mmu.pool_watermark(id, View::Persistent)),
            None => PoolBlock::default(),
        }),
        headroom_pool: pool(
            mmu.headroom_pool(profile),
            mmu.headroom_pool_watermark(View::Persistent),
        ),
        egress_pool: pool(mmu.egress_pool(profile), mmu.egress_watermark(View::Persistent)),
        fdb_entries: worker.shared().fdb.len() as u64,
    }
}

/// The worker itself and its thread's clockwork.
pub(super) fn fill_worker<P: PortIo>(
    worker: &Worker<P>,
    stats: &WorkerStats,
    now: Time,
) -> WorkerBlock {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    WorkerBlock {
        written_ns: now.0,
        generation: worker.profile().generation(),
        steps: read(&stats.steps),
        busy_steps: read(&stats.busy_steps),
        busy_ns: read(&stats.busy_ns),
        busy_millionths: 0,
        step_times: Times {
            below: stats.step_times.each_ref().map(read),
            total: read(&stats.busy_ns),
        },
        sleeps: read(&stats.sleeps),
        free_chunks: worker.pool().free_chunks() as u64,
    }
}
