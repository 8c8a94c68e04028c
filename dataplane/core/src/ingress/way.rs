//! Which way a frame goes: its headers, its class, its destination; remembered within a burst.

use super::{count_drop, Burst};
use crate::classify::{classify, dscp, pcp};
use crate::context::Context;
use crate::drop::DropReason;
use crate::fdb::Learn;
use crate::frame::Stamp;
use crate::ids::{Cos, Dscp, Pcp, PgId, PortId};
use crate::io::{FramePool, PortIo, Received};
use crate::port::Port;
use crate::topology::{PortSet, ReservedGroups};
use holdfast_wire::ethernet::{ETHERTYPE_MAC_CONTROL, L3};
use holdfast_wire::{parse, Ecn, Headers, MacAddr};

/// Bytes of an untagged frame that decide its way: addresses, EtherType, and the first two of the
/// IP header with version, length and traffic class.
const HEAD: usize = 16;

/// The head of a frame, and how many bytes lie there to be read: a frame with the head of another
/// one and at least as many bytes has the same headers, if those are untagged IP.
#[derive(Clone, Copy)]
pub(super) struct Glance {
    head: [u8; HEAD],
    present: usize,
}

impl Glance {
    pub(super) const SLOTS: usize = 8;

    /// Where frames like this one are remembered: what comes in at one port mostly differs in these
    /// bytes, marked and unmarked frames of one flow included.
    #[inline(always)]
    pub(super) const fn slot(&self) -> usize {
        let [.., traffic_class] = self.head;
        let class = traffic_class ^ traffic_class >> 3;
        (self.head[5] ^ self.head[11] ^ class) as usize % Self::SLOTS
    }

    /// At the bytes of a frame; a head that is cut short doesn't matter, for it holds no IP.
    #[inline(always)]
    pub(super) fn at(bytes: &[u8]) -> Self {
        let head = bytes.first_chunk::<HEAD>().copied().unwrap_or_default();
        Self { head, present: bytes.len() }
    }
}

/// A frame before. If it was untagged IP to one known port, a next one with the same head goes the
/// same way, without parsing it or asking the FDB: all ways are forgotten when a frame comes that
/// could have changed what this worker knows.
pub(super) struct Before {
    glance: Glance,
    pub(super) way: Way,
    repeats: bool,
}

impl Before {
    #[inline(always)]
    pub(super) fn is_like(&self, next: &Glance) -> bool {
        self.repeats && next.present >= self.glance.present && next.head == self.glance.head
    }
}

/// What a frame's headers say, and what follows from them.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) verdict: Verdict,
    pub(super) cos: Cos,
    pub(super) pg: PgId,
    pub(super) dscp: Option<Dscp>,
    pub(super) pcp: Option<Pcp>,
    /// Of a frame to one port whole; else egress port and queue are still open.
    pub(super) stamp: Stamp,
}

/// Where a frame goes.
#[derive(Clone, Copy)]
pub(super) enum Verdict {
    Unicast(PortId),
    Flood(PortSet),
    Drop(DropReason),
}

/// Parses and classifies a frame and looks its destination up, into its slot of `burst.before`.
/// That is `None` for one that goes no further: MAC control, which was obeyed already, and what has
/// no whole Ethernet header.
#[inline(never)]
pub(super) fn find_way<P: PortIo>(
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
