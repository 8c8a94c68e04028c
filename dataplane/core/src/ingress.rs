//! The way in: RX burst, MAC control first, then parse, classify, look up, admit, hand over.

use crate::classify::{classify, dscp, pcp};
use crate::context::Context;
use crate::drop::DropReason;
use crate::egress;
use crate::fdb::Learn;
use crate::frame::{Charge, Descriptor, Frame, Stamp};
use crate::ids::{Cos, Dscp, Pcp, PgId, PortId, PrioritySet};
use crate::io::{FramePool, PortIo, Received};
use crate::port::Port;
use crate::profile::{PortSpec, Profile};
use crate::topology::{PortSet, ReservedGroups};
use crate::trace::{EventKind, TraceMask};
use crate::units::{Cells, FrameLen};
use holdfast_wire::ethernet::{is_mac_control, ETHERTYPE_MAC_CONTROL, L3};
use holdfast_wire::{parse, parse_mac_control, Ecn, Headers, MacAddr, MacControl};

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

/// Bytes of an untagged frame that decide its way: addresses, EtherType, and the first two of the
/// IP header with version, length and traffic class.
const HEAD: usize = 16;

/// The head of a frame, and how many bytes lie there to be read: a frame with the head of another
/// one and at least as many bytes has the same headers, if those are untagged IP.
#[derive(Clone, Copy)]
struct Glance {
    head: [u8; HEAD],
    present: usize,
}

impl Glance {
    const SLOTS: usize = 8;

    /// Where frames like this one are remembered: what comes in at one port mostly differs in these
    /// bytes, marked and unmarked frames of one flow included.
    #[inline(always)]
    const fn slot(&self) -> usize {
        let [.., traffic_class] = self.head;
        let class = traffic_class ^ traffic_class >> 3;
        (self.head[5] ^ self.head[11] ^ class) as usize % Self::SLOTS
    }

    /// At the bytes of a frame; a head that is cut short doesn't matter, for it holds no IP.
    #[inline(always)]
    fn at(bytes: &[u8]) -> Self {
        let head = bytes.first_chunk::<HEAD>().copied().unwrap_or_default();
        Self { head, present: bytes.len() }
    }
}

/// A frame before. If it was untagged IP to one known port, a next one with the same head goes the
/// same way, without parsing it or asking the FDB: all ways are forgotten when a frame comes that
/// could have changed what this worker knows.
struct Before {
    glance: Glance,
    way: Way,
    repeats: bool,
}

impl Before {
    #[inline(always)]
    fn is_like(&self, next: &Glance) -> bool {
        self.repeats && next.present >= self.glance.present && next.head == self.glance.head
    }
}

/// What a frame's headers say, and what follows from them.
#[derive(Clone, Copy)]
struct Way {
    verdict: Verdict,
    cos: Cos,
    pg: PgId,
    dscp: Option<Dscp>,
    pcp: Option<Pcp>,
    /// Of a frame to one port whole; else egress port and queue are still open.
    stamp: Stamp,
}

/// Where a frame goes.
#[derive(Clone, Copy)]
enum Verdict {
    Unicast(PortId),
    Flood(PortSet),
    Drop(DropReason),
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
    if came == 0 {
        return 0;
    }
    mac_control_first(port, context, received);
    let Some(spec) = profile.port(port.id) else {
        received.drain(..).for_each(|frame| without_a_place(port, context, frame));
        return came;
    };
    let mut burst =
        Burst { index, profile, spec, largest: spec.largest_frame(), before: Default::default() };
    for frame in received.drain(..) {
        let glance = context.pool.read(&frame.handle, Glance::at);
        let slot = glance.slot();
        if !burst.before[slot].as_ref().is_some_and(|before| before.is_like(&glance)) {
            find_way(ports, context, &mut burst, &frame, glance);
        }
        match &burst.before[slot] {
            Some(Before { way, .. }) => data_frame(ports, context, &burst, frame, way),
            None => context.pool.free(frame.handle),
        }
    }
    came
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
            let control = context.pool.read(handle, parse_mac_control);
            mac_control(port, context, &control);
        }
    }
}

#[cold]
fn mac_control<P: PortIo, M>(port: &mut Port<P>, context: &mut Context<M>, control: &MacControl) {
    port.receiver.receive(control, context.now);
    if let MacControl::Pfc { enable, quanta } = control {
        if context.trace.wants(TraceMask::PFC) {
            let kind = EventKind::PfcIn { enable: PrioritySet(*enable), quanta: *quanta };
            context.trace.record(context.now, port.id, kind);
        }
    }
}

/// Parses and classifies a frame and looks its destination up, into its slot of `burst.before`.
/// That is `None` for one that goes no further: MAC control, which was obeyed already, and what has
/// no whole Ethernet header.
#[inline(never)]
fn find_way<P: PortIo>(
    ports: &mut [Port<P>],
    context: &mut Context<P::Pool>,
    burst: &mut Burst<'_>,
    Received { handle, len }: &Received,
    glance: Glance,
) {
    let slot = glance.slot();
    burst.before[slot] = None;
    let Some(port) = ports.get_mut(burst.index) else { return };
    let Ok(headers) = context.pool.read(handle, parse) else {
        port.counters.received.count(u64::from(len.0));
        return count_drop(port, context, (DropReason::Parse, None), *len);
    };
    if headers.ethertype == ETHERTYPE_MAC_CONTROL {
        return;
    }
    // A frame that is too long teaches nothing.
    let (verdict, lasting) = match len.0 > burst.largest {
        true => (Verdict::Drop(DropReason::TooLong), false),
        false => look_up(port, context, &headers),
    };
    if !lasting {
        burst.before = Default::default();
    }
    let repeats = lasting && headers.tags == 0 && headers.l3 != L3::Other;
    let way = Way::new((port.id, burst), &headers, verdict);
    burst.before[slot] = Some(Before { glance, way, repeats });
}

impl Way {
    #[inline(always)]
    fn new((ingress, burst): (PortId, &Burst<'_>), headers: &Headers, verdict: Verdict) -> Self {
        let maps = &burst.spec.maps;
        let cos = classify(maps, headers);
        let pg = maps.cos_to_pg[cos];
        let egress = match verdict {
            Verdict::Unicast(egress) => egress,
            _ => ingress,
        };
        let queue = burst.profile.port(egress).map(|spec| spec.maps.cos_to_queue[cos]);
        let ecn = headers.l3.ip().map_or(Ecn::NotEct, |ip| ip.ecn);
        let stamp = Stamp::new(
            (ingress, pg),
            (egress, queue.unwrap_or_default()),
            (headers.tags, headers.l3.kind(), ecn),
            burst.spec.pgs[pg].lossless,
            false,
        );
        Self { verdict, cos, pg, dscp: dscp(headers), pcp: pcp(headers), stamp }
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
            count_received(port, (dscp(&headers), pcp(&headers)), len);
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

/// Counts, admits and hands over a frame whose way is known.
#[inline(always)]
fn data_frame<P: PortIo>(
    ports: &mut [Port<P>],
    context: &mut Context<P::Pool>,
    burst: &Burst<'_>,
    Received { handle, len }: Received,
    way: &Way,
) {
    let Some(port) = ports.get_mut(burst.index) else { return context.pool.free(handle) };
    count_received(port, (way.dscp, way.pcp), len);
    port.counters.received_cos[way.cos] += 1;
    let reason = match way.verdict {
        Verdict::Drop(reason) => Some(reason),
        _ => (len.0 > burst.largest).then_some(DropReason::TooLong),
    };
    if let Some(reason) = reason {
        count_drop(port, context, (reason, None), len);
        return context.pool.free(handle);
    }
    let Some(charge) = admit(port, context, burst.spec, way.pg, len) else {
        return context.pool.free(handle);
    };
    let cells = charge.cells();
    let frame = way.stamp.on(handle, charge, len);
    match way.verdict {
        Verdict::Flood(set) => flood(ports, context, burst, (frame, set), way.cos),
        _ => deliver(ports, context, burst, frame, cells),
    }
}

#[inline(always)]
fn count_received<P>(port: &mut Port<P>, (dscp, pcp): (Option<Dscp>, Option<Pcp>), len: FrameLen) {
    let counters = &mut port.counters;
    counters.received.count(u64::from(len.0));
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

#[inline(always)]
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

/// Learns the source and finds the destination (SPEC 7). Also says whether the same frame at the
/// same time would meet the same answer, with nothing to learn and nothing to count.
#[inline(always)]
fn look_up<P: PortIo>(
    port: &mut Port<P>,
    context: &Context<P::Pool>,
    headers: &Headers,
) -> (Verdict, bool) {
    let Some(place) = context.topology.place(port.id) else {
        return (Verdict::Drop(DropReason::PortDown), false);
    };
    if let Some(peer) = place.wire_peer {
        return (Verdict::Unicast(peer), true);
    }
    if is_reserved(context.topology.reserved_groups(), headers.dst) {
        return (Verdict::Drop(DropReason::ReservedGroup), false);
    }
    let vid = headers.outer.map_or(0, |tag| tag.vid);
    let Some(vlan) = context.topology.vlan(port.id, vid) else {
        return (Verdict::Drop(DropReason::Vlan), false);
    };
    let fdb = &context.shared.fdb;
    let learnt = fdb.learn(headers.src, vlan, port.id, context.now);
    match learnt {
        Learn::Full => port.counters.fdb_full += 1,
        Learn::Moved => port.counters.fdb_moves += 1,
        Learn::Known | Learn::New | Learn::Refused => {}
    }
    if !headers.dst.is_multicast() {
        match fdb.lookup(headers.dst, vlan, context.now) {
            Some(egress) if egress == port.id => {
                return (Verdict::Drop(DropReason::SamePort), false);
            }
            Some(egress) if context.topology.in_vlan(egress, vlan) => {
                return (Verdict::Unicast(egress), learnt == Learn::Known);
            }
            _ => {}
        }
    }
    (to_members(port.id, context.topology.members(vlan)), false)
}

/// All members of the VLAN but the ingress port itself.
fn to_members(ingress: PortId, members: PortSet) -> Verdict {
    let set = members.without(ingress);
    let mut ports = set.iter();
    match (ports.next(), ports.next()) {
        (None, _) => Verdict::Drop(DropReason::NoEgress),
        // One destination is no copy: it stays lossless and markable.
        (Some(only), None) => Verdict::Unicast(only),
        _ => Verdict::Flood(set),
    }
}

/// 01-80-C2-00-00-0x always; the rest of the block if the switch is told so (SPEC 7).
#[inline]
fn is_reserved(policy: ReservedGroups, dst: MacAddr) -> bool {
    const BLOCK: u64 = 0x0180_c200_0000;
    let in_block = dst.to_u64() & !0xff == BLOCK;
    in_block && (dst.is_reserved_group() || policy == ReservedGroups::Drop)
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
