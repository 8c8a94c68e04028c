//! The way in: RX burst, MAC control first, then parse, classify, look up, admit, hand over.

use crate::classify::{dscp, pcp};
use crate::context::Context;
use crate::counters::PortCounters;
use crate::drop::DropReason;
use crate::egress;
use crate::frame::{Descriptor, Frame};
use crate::ids::{Cos, Dscp, Pcp, PgId, PrioritySet};
use crate::io::{FramePool, PortIo, Received, BURST};
use crate::late::ANSWERED;
use crate::pause;
use crate::port::Port;
use crate::profile::{PgSpec, PortSpec, Profile};
use crate::topology::PortSet;
use crate::trace::{EventKind, TraceMask};
use crate::units::{Cells, FrameLen};
use holdfast_wire::ethernet::{is_mac_control, source_address, ETHERTYPE_MAC_CONTROL};
use holdfast_wire::{parse, parse_mac_control, MacAddr, MacControl};
use way::{find_way, Before, Glance, Verdict, Way};

mod way;

/// One burst on its way in: what is the same for all of its frames.
struct Burst<'a> {
    /// The ingress port, as an index into the worker's ports.
    index: usize,
    profile: &'a Profile,
    /// What the profile says of the ingress port.
    spec: &'a PortSpec,
    /// The longest frame that the port takes, in bytes.
    largest: u16,
    /// One frame before for each value of [`Glance::slot`].
    before: [Option<Before>; Glance::SLOTS],
}

/// Takes one burst from the port at `index` through the switch; returns how many frames came.
/// `received` is where they lie meanwhile, allocated at boot.
pub(crate) fn burst<P: PortIo>(
    ports: &mut [Port<P>],
    index: usize,
    context: &mut Context<P::Pool>,
    profile: &Profile,
    received: &mut Vec<Received>,
) -> usize {
    let Some(port) = ports.get_mut(index) else { return 0 };
    port.io.receive(&mut context.pool, received);
    let came = received.len();
    mac_control_first(port, context, received);
    let Some(spec) = profile.port(port.id) else {
        received.drain(..).for_each(|frame| without_a_place(port, context, frame));
        return came;
    };
    pause::backlog(port, context, spec, came);
    if came == 0 && port.late.frames() == 0 {
        return 0;
    }
    let mut burst =
        Burst { index, profile, spec, largest: spec.largest_frame(), before: Default::default() };
    let admitted = match port.late.frames() {
        0 => 0,
        _ => try_late_again(ports, context, &mut burst),
    };
    let mut before = context.probe_place(came);
    loop {
        for frame in received.drain(..before) {
            take_in::<P, false>(ports, context, &mut burst, frame, false);
        }
        if received.is_empty() {
            return came + admitted;
        }
        let frame = received.remove(0);
        take_in_timed(ports, context, &mut burst, frame);
        before = received.len();
    }
}

/// Takes a frame through the switch that is to be timed, if it is admitted and has no copies.
#[cold]
fn take_in_timed<P: PortIo>(
    ports: &mut [Port<P>],
    context: &mut Context<P::Pool>,
    burst: &mut Burst<'_>,
    frame: Received,
) {
    take_in::<P, true>(ports, context, burst, frame, false);
}

/// Takes one frame through the switch. `again` says that it waited for room before; `false` comes
/// back if it has to go on waiting.
#[inline(always)]
fn take_in<P: PortIo, const TIMED: bool>(
    ports: &mut [Port<P>],
    context: &mut Context<P::Pool>,
    burst: &mut Burst<'_>,
    frame: Received,
    again: bool,
) -> bool {
    let glance = context.pool.read(&frame.handle, Glance::at);
    let slot = glance.slot();
    if !burst.before[slot].as_ref().is_some_and(|before| before.is_like(&glance)) {
        find_way(ports, context, burst, &frame, glance);
    }
    match &burst.before[slot] {
        Some(Before { way, .. }) => {
            data_frame::<P, TIMED>(ports, context, burst, (frame, again), way)
        }
        None => {
            context.pool.free(frame.handle);
            true
        }
    }
}

/// Tries frames that wait for room, of each PG until one doesn't fit; returns how many went on. No
/// more than two bursts, for a new one shall be looked at soon; one would be as many as may join
/// them meanwhile, and they would never get fewer.
#[cold]
fn try_late_again<P: PortIo>(
    ports: &mut [Port<P>],
    context: &mut Context<P::Pool>,
    burst: &mut Burst<'_>,
) -> usize {
    let index = burst.index;
    let mut gone = 0;
    for pg in PgId::all() {
        while gone < 2 * BURST {
            let first = ports.get_mut(index).and_then(|port| port.late.pop(pg));
            let Some(frame) = first else { break };
            if !take_in::<P, false>(ports, context, burst, frame, true) {
                break;
            }
            gone += 1;
        }
    }
    gone
}

/// Drops what waits for room at a port: the switch or the port ends.
pub(crate) fn give_up_late<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    reason: DropReason,
) {
    for pg in PgId::all() {
        while let Some(Received { handle, len }) = port.late.pop(pg) {
            count_drop(port, context, (reason, Some(pg)), len);
            context.pool.free(handle);
        }
    }
}

/// MAC control is obeyed before any data frame of the burst is looked at (DESIGN law 5). Its frames
/// stay in the burst, and end where the data frames are read.
fn mac_control_first<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    received: &[Received],
) {
    for Received { handle, .. } in received {
        if context.pool.read(handle, is_mac_control) {
            let read = |bytes: &[u8]| (parse_mac_control(bytes), source_address(bytes));
            let (control, source) = context.pool.read(handle, read);
            mac_control(port, context, &control, source);
        }
    }
}

#[cold]
fn mac_control<P: PortIo, M>(
    port: &mut Port<P>,
    context: &mut Context<M>,
    control: &MacControl,
    source: Option<MacAddr>,
) {
    let arrived = port.io.clock().max(context.now);
    port.receiver.receive(control, arrived);
    if let (MacControl::Pfc { .. } | MacControl::Pause { .. }, Some(source)) = (control, source) {
        port.receiver.note_source(source);
    }
    if let MacControl::Pfc { enable, quanta } = control {
        if context.trace.wants(TraceMask::PFC) {
            let kind = EventKind::PfcIn { enable: PrioritySet(*enable), quanta: *quanta };
            context.trace.record(context.now, port.id, kind);
        }
    }
}

/// A frame at a port that the profile doesn't have.
#[cold]
fn without_a_place<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    Received { handle, len }: Received,
) {
    match context.pool.read(&handle, parse) {
        Ok(headers) if headers.ethertype == ETHERTYPE_MAC_CONTROL => {}
        Ok(headers) => {
            port.counters.received.count(u64::from(len.0));
            count_class(&mut port.counters, (dscp(&headers), pcp(&headers)));
            count_drop(port, context, (DropReason::PortDown, None), len);
        }
        Err(_) => {
            port.counters.received.count(u64::from(len.0));
            count_drop(port, context, (DropReason::Parse, None), len);
        }
    }
    context.pool.free(handle);
}

#[cold]
fn count_drop<P: PortIo, M>(
    port: &mut Port<P>,
    context: &mut Context<M>,
    (reason, pg): (DropReason, Option<PgId>),
    len: FrameLen,
) {
    port.counters.dropped.count(reason);
    context.trace.record(context.now, port.id, EventKind::Drop { reason, pg, queue: None, len });
}

/// Counts, admits and hands over a frame whose way is known. `false` if it waited for room and has
/// to go on waiting.
#[inline(always)]
fn data_frame<P: PortIo, const TIMED: bool>(
    ports: &mut [Port<P>],
    context: &mut Context<P::Pool>,
    burst: &Burst<'_>,
    (frame, again): (Received, bool),
    way: &Way,
) -> bool {
    let Some(port) = ports.get_mut(burst.index) else {
        context.pool.free(frame.handle);
        return true;
    };
    let (pg, len) = (way.pg, frame.len);
    let reason = match way.verdict {
        Verdict::Drop(reason) => Some(reason),
        _ => (len.0 > burst.largest).then_some(DropReason::TooLong),
    };
    let charge = match reason {
        Some(reason) => Err((reason, None)),
        None if must_wait(port, context, burst.spec, pg, again) => {
            Err((DropReason::HeadroomOverflow, Some(pg)))
        }
        None => context.admit(port.id, pg, len).map_err(|reason| (reason, Some(pg))),
    };
    let (frame, refused) = match charge {
        Ok(charge) => {
            count_received(port, way, len);
            port.counters.pgs[pg].admitted.count(u64::from(len.0));
            let cells = charge.cells();
            let frame = way.stamp.on(frame.handle, charge, len);
            match way.verdict {
                Verdict::Flood(set) => flood(ports, context, burst, (frame, set), way.cos),
                _ if TIMED && context.shared.probe.begin(context.now) => {
                    deliver(ports, context, burst, frame.timed(), cells);
                }
                _ => deliver(ports, context, burst, frame, cells),
            }
            return true;
        }
        Err(refused) => (frame, refused),
    };
    refuse(port, context, burst, (frame, again), (way, refused))
}

/// Whether a frame must wait although Headroom may have room for it: behind others of its PG, or
/// because it came late to a PG in XOFF. Headroom is for what the peer sends until it obeys, which
/// is still to come when the worker is late, and has come when the pause is old.
#[inline(always)]
fn must_wait<P: PortIo, M>(
    port: &Port<P>,
    context: &Context<M>,
    spec: &PortSpec,
    pg: PgId,
    again: bool,
) -> bool {
    if !again && port.late.waits(pg) {
        return true;
    }
    let late = again || port.backlogged && !port.late.is_full();
    late && is_news(port, context, spec, pg)
}

/// Whether the peer may not know yet that it must pause this PG.
#[cold]
fn is_news<P: PortIo, M>(port: &Port<P>, context: &Context<M>, spec: &PortSpec, pg: PgId) -> bool {
    let PgSpec { lossless, priorities, .. } = spec.pgs[pg];
    let in_xoff = context.shared.mmu.xoff_set(port.id) & (1 << pg.index()) != 0;
    if !lossless || !in_xoff {
        return false;
    }
    let pausing = priorities.and(spec.pfc.enabled);
    let told = pausing.and(port.sender.paused());
    let old = |priority| context.now >= port.sender.told_since(priority).after(ANSWERED);
    pausing != told || told.iter().any(|priority| !old(priority))
}

/// A frame that is dropped, or that waits for room. `false` if it goes on waiting.
#[cold]
fn refuse<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    burst: &Burst<'_>,
    (mut frame, again): (Received, bool),
    (way, (reason, pg)): (&Way, (DropReason, Option<PgId>)),
) -> bool {
    let lossless = burst.spec.pgs[way.pg].lossless;
    if lossless && reason == DropReason::HeadroomOverflow {
        if again {
            port.late.put_back(way.pg, frame);
            return false;
        }
        if port.backlogged || port.late.waits(way.pg) {
            frame = match port.late.push(way.pg, frame) {
                Ok(()) => return true,
                Err(frame) => frame,
            };
        }
    }
    count_received(port, way, frame.len);
    count_drop(port, context, (reason, pg), frame.len);
    if let Some(pg) = pg {
        let counters = &mut port.counters.pgs[pg];
        counters.dropped.count(reason);
        counters.dropped_bytes += u64::from(frame.len.0);
        if lossless && reason == DropReason::HeadroomOverflow {
            port.counters.lossless_violations += 1;
        }
    }
    context.pool.free(frame.handle);
    true
}

#[inline(always)]
fn count_received<P>(port: &mut Port<P>, way: &Way, len: FrameLen) {
    let counters = &mut port.counters;
    counters.received.count(u64::from(len.0));
    counters.received_cos[way.cos] += 1;
    count_class(counters, (way.dscp, way.pcp));
}

#[inline(always)]
fn count_class(counters: &mut PortCounters, (dscp, pcp): (Option<Dscp>, Option<Pcp>)) {
    if let Some(dscp) = dscp {
        counters.received_dscp[dscp] += 1;
    }
    if let Some(pcp) = pcp {
        counters.received_pcp[pcp] += 1;
    }
    if dscp.is_none() && pcp.is_none() {
        counters.received_unclassed += 1;
    }
}

/// Brings a frame to its egress port: here, or by ring to the port's owner.
#[inline(always)]
fn deliver<P: PortIo>(
    ports: &mut [Port<P>],
    context: &mut Context<P::Pool>,
    burst: &Burst<'_>,
    frame: Descriptor,
    cells: Cells,
) {
    let egress = frame.egress();
    match context.slots.of(egress).and_then(|slot| ports.get_mut(slot)) {
        Some(port) => egress::join(port, context, burst.profile.port(egress), frame, cells),
        None => deliver_elsewhere(ports, context, burst, frame),
    }
}

/// To a port that another worker owns, or nobody.
#[inline(never)]
fn deliver_elsewhere<P: PortIo>(
    ports: &mut [Port<P>],
    context: &mut Context<P::Pool>,
    burst: &Burst<'_>,
    frame: Descriptor,
) {
    let cell = burst.profile.cell();
    match context.topology.owner(frame.egress()) {
        Some(owner) if owner == context.id => context.finish(frame.unpack(cell)),
        Some(owner) => {
            if let Some(port) = ports.get_mut(burst.index) {
                port.counters.handed_over += 1;
            }
            context.hand_over(owner, frame);
        }
        None => {
            if let Some(port) = ports.get_mut(burst.index) {
                count_drop(port, context, (DropReason::NoEgress, None), frame.len());
            }
            context.finish(frame.unpack(cell));
        }
    }
}

/// One receipt, one piece of memory, a copy for each port (SPEC 3.5).
#[inline(never)]
fn flood<P: PortIo>(
    ports: &mut [Port<P>],
    context: &mut Context<P::Pool>,
    burst: &Burst<'_>,
    (frame, set): (Descriptor, PortSet),
    cos: Cos,
) {
    let frame = frame.unpack(burst.profile.cell());
    if let Some(port) = ports.get_mut(burst.index) {
        port.counters.flooded += 1;
    }
    let chunk = frame.handle.chunk();
    let shared = std::sync::Arc::clone(&context.shared);
    let limit = burst.profile.spec().flood_limit;
    shared.copies.begin(chunk);
    for egress in set.iter() {
        if !shared.copies.add(chunk, limit) {
            if let Some(port) = ports.get_mut(burst.index) {
                count_drop(port, context, (DropReason::FloodLimit, None), frame.len);
            }
            continue;
        }
        let queue = burst.profile.port(egress).map(|spec| spec.maps.cos_to_queue[cos]);
        let copy = Frame { queue: queue.unwrap_or_default(), ..frame.copy_to(egress) };
        let cells = copy.charge.cells();
        deliver(ports, context, burst, copy.pack(), cells);
    }
    if shared.copies.let_go(chunk) {
        context.release(frame.charge);
        context.pool.free(frame.handle);
    }
}
