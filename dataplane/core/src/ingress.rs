//! The way in: RX burst, MAC control first, then parse, classify, look up, admit, hand over.

use crate::classify::{classify, dscp, pcp};
use crate::context::Context;
use crate::drop::DropReason;
use crate::egress;
use crate::fdb::Learn;
use crate::frame::{Charge, Frame, FrameHandle};
use crate::ids::{Cos, PgId, PortId, PrioritySet};
use crate::io::{FramePool, PortIo, Received};
use crate::port::Port;
use crate::profile::{PortSpec, Profile};
use crate::topology::{PortSet, ReservedGroups};
use crate::trace::{EventKind, TraceMask};
use crate::units::FrameLen;
use holdfast_wire::ethernet::ETHERTYPE_MAC_CONTROL;
use holdfast_wire::{parse, parse_mac_control, Ecn, Headers, MacAddr, MacControl};

/// A received frame with its headers, between the two passes over a burst.
pub(crate) struct Parsed {
    handle: FrameHandle,
    len: FrameLen,
    headers: Headers,
}

/// Buffers of a burst, allocated at boot.
pub(crate) struct Burst {
    pub(crate) received: Vec<Received>,
    pub(crate) parsed: Vec<Parsed>,
}

/// Where a frame goes.
enum Verdict {
    Unicast(PortId),
    Flood(PortSet),
    Drop(DropReason),
}

/// Takes one burst from the port at `index` through the switch; returns how many frames came.
pub(crate) fn burst<P: PortIo>(
    ports: &mut [Port<P>],
    index: usize,
    context: &mut Context<P::Pool>,
    profile: &Profile,
    burst: &mut Burst,
) -> usize {
    let Some(port) = ports.get_mut(index) else { return 0 };
    port.io.receive(&mut context.pool, &mut burst.received);
    let came = burst.received.len();
    for received in burst.received.drain(..) {
        if let Some(parsed) = first_pass(port, context, received) {
            burst.parsed.push(parsed);
        }
    }
    for parsed in burst.parsed.drain(..) {
        second_pass(ports, index, context, profile, parsed);
    }
    came
}

/// MAC control ends here, before any data frame of the burst is looked at (DESIGN law 5).
fn first_pass<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    received: Received,
) -> Option<Parsed> {
    let Received { handle, len } = received;
    let parsed = context.pool.read(&handle, |bytes| match parse(bytes) {
        Ok(headers) if headers.ethertype == ETHERTYPE_MAC_CONTROL => {
            Err(Some(parse_mac_control(bytes)))
        }
        Ok(headers) => Ok(headers),
        Err(_) => Err(None),
    });
    match parsed {
        Ok(headers) => return Some(Parsed { handle, len, headers }),
        Err(Some(control)) => mac_control(port, context, &control),
        Err(None) => {
            port.counters.received.count(u64::from(len.0));
            count_drop(port, context, (DropReason::Parse, None), len);
        }
    }
    context.pool.free(handle);
    None
}

fn mac_control<P: PortIo, M>(port: &mut Port<P>, context: &mut Context<M>, control: &MacControl) {
    port.receiver.receive(control, context.now);
    if let MacControl::Pfc { enable, quanta } = control {
        if context.trace.wants(TraceMask::PFC) {
            let kind = EventKind::PfcIn { enable: PrioritySet(*enable), quanta: *quanta };
            context.trace.record(context.now, port.id, kind);
        }
    }
}

fn count_drop<P: PortIo, M>(
    port: &mut Port<P>,
    context: &mut Context<M>,
    (reason, pg): (DropReason, Option<PgId>),
    len: FrameLen,
) {
    port.counters.dropped.count(reason);
    context.trace.record(context.now, port.id, EventKind::Drop { reason, pg, queue: None, len });
}

fn second_pass<P: PortIo>(
    ports: &mut [Port<P>],
    index: usize,
    context: &mut Context<P::Pool>,
    profile: &Profile,
    parsed: Parsed,
) {
    let Parsed { handle, len, headers } = parsed;
    let Some(port) = ports.get_mut(index) else { return context.pool.free(handle) };
    count_received(port, &headers, len);
    let Some(spec) = profile.port(port.id) else {
        count_drop(port, context, (DropReason::PortDown, None), len);
        return context.pool.free(handle);
    };
    let cos = classify(&spec.maps, &headers);
    let pg = spec.maps.cos_to_pg[cos];
    port.counters.received_cos[cos] += 1;
    let verdict = if len.0 > spec.largest_frame() {
        Verdict::Drop(DropReason::TooLong)
    } else {
        forward(port, context, &headers)
    };
    if let Verdict::Drop(reason) = verdict {
        count_drop(port, context, (reason, None), len);
        return context.pool.free(handle);
    }
    let Some(charge) = admit(port, context, spec, pg, len) else {
        return context.pool.free(handle);
    };
    let frame = Frame {
        handle,
        charge,
        len,
        egress: port.id,
        queue: crate::ids::QueueId::default(),
        tags: headers.tags,
        l3: headers.l3.kind(),
        ecn: headers.l3.ip().map_or(Ecn::NotEct, |ip| ip.ecn),
        lossless: spec.pgs[pg].lossless,
        copy: false,
    };
    match verdict {
        Verdict::Unicast(egress) => {
            deliver(ports, index, context, profile, Frame { egress, ..frame }, cos);
        }
        Verdict::Flood(set) => flood(ports, index, context, profile, (frame, set), cos),
        Verdict::Drop(_) => {}
    }
}

fn count_received<P>(port: &mut Port<P>, headers: &Headers, len: FrameLen) {
    let counters = &mut port.counters;
    counters.received.count(u64::from(len.0));
    let (dscp, pcp) = (dscp(headers), pcp(headers));
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

fn admit<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    spec: &PortSpec,
    pg: PgId,
    len: FrameLen,
) -> Option<Charge> {
    match context.admit(port.id, pg, len) {
        Ok(charge) => {
            port.counters.pgs[pg].admitted.count(u64::from(len.0));
            Some(charge)
        }
        Err(reason) => {
            count_drop(port, context, (reason, Some(pg)), len);
            port.counters.pgs[pg].dropped.count(reason);
            if spec.pgs[pg].lossless && reason == DropReason::HeadroomOverflow {
                port.counters.lossless_violations += 1;
            }
            None
        }
    }
}

/// Learns the source and finds the destination (SPEC 7).
fn forward<P: PortIo>(
    port: &mut Port<P>,
    context: &Context<P::Pool>,
    headers: &Headers,
) -> Verdict {
    let Some(place) = context.topology.place(port.id) else {
        return Verdict::Drop(DropReason::PortDown);
    };
    if let Some(peer) = place.wire_peer {
        return Verdict::Unicast(peer);
    }
    if is_reserved(context.topology.reserved_groups(), headers.dst) {
        return Verdict::Drop(DropReason::ReservedGroup);
    }
    let vid = headers.outer.map_or(0, |tag| tag.vid);
    let Some(vlan) = context.topology.vlan(port.id, vid) else {
        return Verdict::Drop(DropReason::Vlan);
    };
    let fdb = &context.shared.fdb;
    match fdb.learn(headers.src, vlan, port.id, context.now) {
        Learn::Full => port.counters.fdb_full += 1,
        Learn::Moved => port.counters.fdb_moves += 1,
        _ => {}
    }
    if !headers.dst.is_multicast() {
        match fdb.lookup(headers.dst, vlan, context.now) {
            Some(egress) if egress == port.id => return Verdict::Drop(DropReason::SamePort),
            Some(egress) if context.topology.in_vlan(egress, vlan) => {
                return Verdict::Unicast(egress);
            }
            _ => {}
        }
    }
    let set = context.topology.members(vlan).without(port.id);
    let mut ports = set.iter();
    match (ports.next(), ports.next()) {
        (None, _) => Verdict::Drop(DropReason::NoEgress),
        // One destination is no copy: it stays lossless and markable.
        (Some(only), None) => Verdict::Unicast(only),
        _ => Verdict::Flood(set),
    }
}

/// 01-80-C2-00-00-0x always; the rest of the block if the switch is told so (SPEC 7).
fn is_reserved(policy: ReservedGroups, dst: MacAddr) -> bool {
    const BLOCK: [u8; 5] = [0x01, 0x80, 0xc2, 0x00, 0x00];
    dst.is_reserved_group() || (policy == ReservedGroups::Drop && dst.0.starts_with(&BLOCK))
}

/// Brings a frame to its egress port: here, or by ring to the port's owner.
fn deliver<P: PortIo>(
    ports: &mut [Port<P>],
    ingress: usize,
    context: &mut Context<P::Pool>,
    profile: &Profile,
    mut frame: Frame,
    cos: Cos,
) {
    if let Some(spec) = profile.port(frame.egress) {
        frame.queue = spec.maps.cos_to_queue[cos];
    }
    match context.topology.owner(frame.egress) {
        Some(owner) if owner == context.id => egress::accept(ports, context, profile, frame),
        Some(owner) => {
            if let Some(port) = ports.get_mut(ingress) {
                port.counters.handed_over += 1;
            }
            context.hand_over(owner, frame);
        }
        None => {
            if let Some(port) = ports.get_mut(ingress) {
                count_drop(port, context, (DropReason::NoEgress, None), frame.len);
            }
            context.finish(frame);
        }
    }
}

/// One receipt, one piece of memory, a copy for each port (SPEC 3.5).
fn flood<P: PortIo>(
    ports: &mut [Port<P>],
    ingress: usize,
    context: &mut Context<P::Pool>,
    profile: &Profile,
    (frame, set): (Frame, PortSet),
    cos: Cos,
) {
    if let Some(port) = ports.get_mut(ingress) {
        port.counters.flooded += 1;
    }
    let chunk = frame.handle.chunk();
    let shared = std::sync::Arc::clone(&context.shared);
    let limit = profile.spec().flood_limit;
    shared.copies.begin(chunk);
    for egress in set.iter() {
        if !shared.copies.add(chunk, limit) {
            if let Some(port) = ports.get_mut(ingress) {
                count_drop(port, context, (DropReason::FloodLimit, None), frame.len);
            }
            continue;
        }
        deliver(ports, ingress, context, profile, frame.copy_to(egress), cos);
    }
    if shared.copies.let_go(chunk) {
        context.release(frame.charge);
        context.pool.free(frame.handle);
    }
}
