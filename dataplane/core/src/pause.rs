//! The pause side of a port's step: levels of all causes become PFC frames, ahead of data.

use crate::context::Context;
use crate::ids::{PgId, PrioritySet};
use crate::io::PortIo;
use crate::pfc::peer::Sight;
use crate::pfc::PauseCause;
use crate::port::Port;
use crate::profile::{PortSpec, Profile};
use crate::trace::{EventKind, TraceMask};
use crate::units::{CellSize, Time};
use holdfast_wire::mac_control::{encode_pfc, FRAME_LEN};

/// Brings what the peer was told in line with the accounts, before the next RX burst is taken
/// (SPEC 3.3, 4.1). Returns how many PFC frames went out.
pub(crate) fn settle<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    profile: &Profile,
) -> usize {
    let Some(spec) = profile.port(port.id) else { return 0 };
    let in_xoff = context.shared.mmu.xoff_set(port.id);
    if in_xoff != 0 {
        for pg in PgId::all().filter(|pg| in_xoff & (1 << pg.index()) != 0) {
            context.reevaluate(port.id, pg);
        }
    }
    if context.shared.mmu.take_work(port.id) {
        let level = context.shared.mmu.pfc_level(profile, port.id);
        port.sender.set_cause(PauseCause::Mmu, level);
    }
    let sent = send(port, context);
    if port.peer.is_due(port.sender.paused(), context.now) {
        watch_peer(port, spec, profile.cell(), context.now);
    }
    sent
}

/// Looks whether the peer does what it was told.
#[cold]
fn watch_peer<P: PortIo>(port: &mut Port<P>, spec: &PortSpec, cell: CellSize, now: Time) {
    let unseen = port.io.rx_backlog() > 0 || port.late.is_full();
    let (sender, counters, ring) = (&port.sender, &port.counters.pgs, port.io.rx_ring());
    let late = port.late.bytes();
    port.peer.look(&Sight { now, sender, spec, cell, counters, late, ring, unseen });
}

/// Pauses by receive backlog (SPEC 4.3): all lossless priorities from above the mark until half of
/// it, and when frames came because a pause ran out while the worker had no core; those of a PG as
/// long as frames of it wait for room. Looked at before the `came` frames of a burst are: what has
/// no room then waits from the first one on.
pub(crate) fn backlog<P: PortIo, M>(
    port: &mut Port<P>,
    context: &mut Context<M>,
    spec: &PortSpec,
    came: usize,
) {
    let in_ring = port.io.rx_backlog();
    let mark = spec.pfc.rx_backlog_mark;
    let above = if port.backlogged { in_ring > mark / 2 } else { in_ring > mark };
    port.backlogged = above || came > 0 && port.sender.has_lapsed(context.now);
    let before = port.sender.cause(PauseCause::RxBacklog);
    if before.is_empty() && !port.backlogged && port.late.frames() == 0 {
        return;
    }
    let level = backlog_level(port, spec);
    if level == before {
        return;
    }
    port.sender.set_cause(PauseCause::RxBacklog, level);
    let [began, ended] = [(level, before), (before, level)].map(|(a, b)| PrioritySet(a.0 & !b.0));
    for (priorities, on) in [(began, true), (ended, false)] {
        if !priorities.is_empty() {
            let kind = EventKind::RxBacklog(priorities, on);
            context.trace.record(context.now, port.id, kind);
        }
    }
}

/// The priorities that the backlog pauses. A class whose frames can't go on must not stop another
/// one that could.
pub(crate) fn backlog_level<P>(port: &Port<P>, spec: &PortSpec) -> PrioritySet {
    if port.backlogged {
        return lossless_priorities(spec);
    }
    let late = spec.pgs.iter().filter(|(pg, _)| port.late.waits(*pg));
    late.fold(PrioritySet::EMPTY, |set, (_, pg)| set.or(pg.priorities)).and(spec.pfc.enabled)
}

/// The PFC-enabled priorities of the port's lossless PGs.
pub(crate) fn lossless_priorities(spec: &PortSpec) -> PrioritySet {
    spec.pgs
        .iter()
        .filter(|(_, pg)| pg.lossless)
        .fold(PrioritySet::EMPTY, |set, (_, pg)| set.or(pg.priorities))
        .and(spec.pfc.enabled)
}

/// Sends what the pause sender wants sent; frames that find no slot are tried again next step.
pub(crate) fn send<P: PortIo, M>(port: &mut Port<P>, context: &mut Context<M>) -> usize {
    if !port.up {
        return 0;
    }
    let mut sent = 0;
    let mut paused_anew = false;
    while let Some(frame) = port.sender.next_frame(context.now) {
        let mut bytes = [0; FRAME_LEN];
        encode_pfc(&mut bytes, port.mac, frame.enable, &frame.quanta);
        if !port.io.transmit_control(&bytes) {
            break;
        }
        port.sender.sent(&frame, context.now);
        paused_anew |= frame.quanta.iter().any(|quanta| *quanta != 0);
        sent += 1;
        if context.trace.wants(TraceMask::PFC) {
            let enable = PrioritySet(frame.enable);
            let kind = EventKind::PfcOut { enable, quanta: frame.quanta };
            context.trace.record(context.now, port.id, kind);
        }
    }
    if sent > 0 {
        let left = port.io.kick();
        if paused_anew {
            port.reaction.count(left.since(context.now));
        }
    }
    sent
}
