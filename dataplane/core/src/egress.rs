//! The way out: join a queue; then gate, schedule, shape, mark, transmit, and release.

use crate::context::Context;
use crate::deadlock::standstill;
use crate::drop::DropReason;
use crate::frame::{is_timed, Descriptor};
use crate::ids::{PerQueue, QueueId, QueueSet};
use crate::io::{FramePool, PortIo, BURST};
use crate::port::Port;
use crate::profile::{PortSpec, Profile};
use crate::trace::{EventKind, TraceMask};
use crate::units::{Cells, FrameLen, Time};
use crate::wred::Arrival;
use holdfast_wire::{mark_ce, Ecn, Marking};

/// Fragments of the longest frame: the TX ring must have room for them all.
const MAX_FRAGMENTS: usize = 5;

/// Frames that one run sends at most: more than come in by a step, or a queue that has formed would
/// never drain at a port which goes on receiving full bursts.
const RUN: usize = 2 * BURST;

/// Takes a frame that another worker handed over, for a port that this worker owns.
pub(crate) fn accept<P: PortIo>(
    ports: &mut [Port<P>],
    context: &mut Context<P::Pool>,
    profile: &Profile,
    frame: Descriptor,
) {
    let egress = frame.egress();
    let cells = frame.len().to_cells(profile.cell());
    match context.slots.of(egress).and_then(|slot| ports.get_mut(slot)) {
        Some(port) => join(port, context, profile.port(egress), frame, cells),
        None => context.finish(frame.unpack(profile.cell())),
    }
}

/// Drops a frame at egress: counted at this port and queue, cells and memory go back.
#[cold]
pub(crate) fn refuse<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    frame: Descriptor,
    reason: DropReason,
) {
    let frame = frame.unpack(context.profile.cell());
    port.counters.dropped.count(reason);
    port.counters.queues[frame.queue].dropped.count(reason);
    let kind = EventKind::Drop { reason, pg: None, queue: Some(frame.queue), len: frame.len };
    context.trace.record(context.now, port.id, kind);
    context.finish(frame);
}

/// Puts a frame of `cells` into its queue at `port`, of which the profile says `spec`; drops it
/// with its reason where it must.
#[inline(always)]
pub(crate) fn join<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    spec: Option<&PortSpec>,
    mut frame: Descriptor,
    cells: Cells,
) {
    let Some(spec) = spec.filter(|_| port.up) else {
        return refuse(port, context, frame, DropReason::PortDown);
    };
    let id = frame.queue();
    if port.watch.dropping.contains(id) {
        return refuse(port, context, frame, DropReason::Watchdog);
    }
    let (queue_spec, queue) = (&spec.queues[id], &mut port.queues[id]);
    let exempt = frame.is_lossless() && !frame.is_copy();
    let mmu = &context.shared.mmu;
    if queue.account.join(mmu, &context.profile, queue_spec, cells, exempt).is_err() {
        return refuse(port, context, frame, DropReason::QueueLimit);
    }
    if let Some(wred) = &queue_spec.wred {
        let depth = queue.account.occupancy();
        match queue.wred.on_arrival(wred, depth, frame.ecn(), frame.is_lossless()) {
            Arrival::Join => {}
            Arrival::JoinMarked => frame = mark(port, context, frame, depth),
            Arrival::Drop => {
                queue.account.leave(mmu, cells);
                return refuse(port, context, frame, DropReason::Wred);
            }
        }
    }
    if port.waiting.is_empty() {
        port.shaper.idle(context.now);
    }
    port.queues[id].fifo.push_back(frame);
    port.waiting = port.waiting.or(QueueSet::only(id));
}

/// Writes CE where the frame allows it; counts and records what was done.
#[inline(never)]
fn mark<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    frame: Descriptor,
    depth: Cells,
) -> Descriptor {
    let mut frame = frame.unpack(context.profile.cell());
    let counters = &mut port.counters.queues[frame.queue];
    let mut marked = false;
    if frame.copy {
        counters.mark_skipped += 1;
    } else {
        let (l3, tags) = (frame.l3, frame.tags);
        match context.pool.write(&mut frame.handle, |bytes| mark_ce(bytes, l3, tags)) {
            Marking::Marked => {
                counters.marked += 1;
                marked = true;
            }
            Marking::AlreadyCe => counters.ce_passed += 1,
            Marking::NotEct => return frame.pack(),
        }
    }
    if context.trace.wants(TraceMask::MARKS) {
        let kind = EventKind::Mark { queue: frame.queue, depth, marked };
        context.trace.record(context.now, port.id, kind);
    }
    frame.pack()
}

/// Sends what may leave the port now; returns how much was done.
pub(crate) fn run<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    profile: &Profile,
    done: &mut Vec<u64>,
) -> usize {
    let mut work = reap(port, context, done);
    if port.held {
        // Time that passes in a hold is not to be made up for later.
        port.shaper.idle(context.now);
    }
    if port.waiting.is_empty() || port.held || !port.up {
        return work;
    }
    let Some(spec) = profile.port(port.id) else { return work };
    // Pauses come in at ingress only: none begins or ends between here and the last frame.
    let paused = port.receiver.paused_queues(context.now, &spec.maps);
    let paused = QueueSet(paused.0 & !port.watch.forwarding.0);
    let mut gate = Gate { paused, room: 0, sent: 0 };
    let mut sent = 0;
    // Where the driver sends within the kick, what it sent makes room for more at once: else a
    // port whose `tx_inflight` is less than a burst would fall behind what comes in.
    while sent < RUN {
        let before = sent;
        while sent < before + BURST && send_next(port, context, spec, &mut gate) {
            sent += 1;
        }
        if sent == before {
            break;
        }
        let left = port.io.kick();
        if is_timed(gate.sent) {
            port.latency.count(context.shared.probe.end(left));
            gate.sent = 0;
        }
        work += sent - before + reap(port, context, done);
    }
    work
}

/// What holds frames back, as far as one run over a port knows it.
struct Gate {
    paused: QueueSet,
    /// Fragments that the TX ring takes at least.
    room: usize,
    /// The descriptors that went into the TX ring, joined by "or": whether one is timed.
    sent: u64,
}

/// Sends the next frame, if one may leave: not paused, scheduled, shaped, and within the bound of
/// what may be in the TX ring.
#[inline(always)]
fn send_next<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    spec: &PortSpec,
    gate: &mut Gate,
) -> bool {
    let now = context.now;
    if !port.shaper.ready(now) {
        return false;
    }
    if gate.room < MAX_FRAGMENTS {
        gate.room = port.io.tx_room();
        if gate.room < MAX_FRAGMENTS {
            return false;
        }
    }
    let ready = QueueSet(port.waiting.0 & !gate.paused.0);
    if ready.is_empty() {
        // Nor is the time of a pause: the peer would get a burst when it lets us go.
        port.shaper.idle(now);
        return false;
    }
    let queues = &port.queues;
    let head_len = |id: QueueId| queues[id].fifo.front().map_or_else(Default::default, |d| d.len());
    let Some(id) = port.scheduler.pick(now, ready, head_len) else { return false };
    let queue = &mut port.queues[id];
    let Some(mut descriptor) = queue.fifo.pop_front() else { return false };
    let len = descriptor.len();
    if !port.pacer.has_room(len) {
        queue.fifo.push_front(descriptor);
        return false;
    }
    if let Some(wred) = &spec.queues[id].wred {
        let depth = queue.account.occupancy();
        if descriptor.ecn() != Ecn::NotEct && queue.wred.on_departure(wred, depth) {
            descriptor = mark(port, context, descriptor, depth);
        }
    }
    let (chunk, token) = (descriptor.chunk(), descriptor.into_word());
    if !port.io.transmit(&context.pool, chunk, len, token) {
        // The room was there a moment ago; keep the frame at the head of its queue.
        port.queues[id].fifo.push_front(Descriptor::from_word(token));
        return false;
    }
    gate.room -= MAX_FRAGMENTS;
    gate.sent |= token;
    has_left(port, id, len, now);
    true
}

/// Counts a frame that went into the TX ring, at everything that paces the next one.
#[inline(always)]
fn has_left<P: PortIo>(port: &mut Port<P>, id: QueueId, len: FrameLen, now: Time) {
    port.scheduler.charge(id, len, now);
    port.shaper.charge(len.on_wire(), now);
    port.pacer.entered(len);
    port.counters.transmitted.count(u64::from(len.0));
    port.counters.queues[id].transmitted.count(u64::from(len.0));
    let queue = &mut port.queues[id];
    if queue.fifo.is_empty() {
        queue.wred.emptied();
        port.waiting.0 &= !QueueSet::only(id).0;
        port.scheduler.emptied(id);
    }
}

/// Frames that have left give back their cells and go home (SPEC 3.4).
#[inline(always)]
fn reap<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    done: &mut Vec<u64>,
) -> usize {
    port.io.completions(done);
    let count = done.len();
    land(port, context, done.drain(..));
    count
}

/// Takes the cells and the memory back of frames that the port's rings are done with.
#[inline(always)]
pub(crate) fn land<P, M: FramePool>(
    port: &mut Port<P>,
    context: &mut Context<M>,
    tokens: impl Iterator<Item = u64>,
) {
    let cell = context.profile.cell();
    // Accounts are shared memory: once for all frames of a queue, and of a PG where that is right.
    let mut left: PerQueue<Cells> = PerQueue::default();
    let mut run = None;
    for word in tokens {
        let frame = Descriptor::from_word(word).unpack(cell);
        left[frame.queue].0 += frame.charge.cells().0;
        port.pacer.left(frame.len);
        context.finish_in_run(&mut run, frame);
    }
    if let Some(charge) = run {
        context.release(charge);
    }
    for (queue, cells) in left.iter().filter(|(_, cells)| **cells > Cells::ZERO) {
        port.queues[queue].account.leave(&context.shared.mmu, *cells);
    }
}

/// Empties every queue of a port that can't send any more.
pub(crate) fn flush<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    reason: DropReason,
) {
    QueueId::all().for_each(|id| flush_queue(port, context, id, reason));
}

/// Empties one queue.
pub(crate) fn flush_queue<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    id: QueueId,
    reason: DropReason,
) {
    standstill::let_go(port, context, id);
    let cell = context.profile.cell();
    while let Some(frame) = port.queues[id].fifo.pop_front() {
        let cells = frame.len().to_cells(cell);
        port.queues[id].account.leave(&context.shared.mmu, cells);
        refuse(port, context, frame, reason);
    }
    port.scheduler.emptied(id);
    port.waiting.0 &= !QueueSet::only(id).0;
}
