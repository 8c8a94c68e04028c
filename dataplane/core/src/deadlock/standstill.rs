//! Queues of one port that are paused with frames in them: since when, and what a stuck one holds.

use super::detection_time;
use super::stuck::Share;
use crate::context::Context;
use crate::ids::{PerPg, PerPort, PerQueue, PgId, PortId, Priority, QueueId, QueueSet, MAX_PORTS};
use crate::io::PortIo;
use crate::port::Port;
use crate::profile::{PortSpec, Profile};
use crate::units::{Nanos, Time};

/// Frames counted in one step at most: a long queue is counted in several.
const COUNT_AT_ONCE: usize = 4096;

/// What was counted of a stuck queue.
#[derive(Debug, Default)]
struct Counted {
    /// Frames from the head on.
    frames: usize,
    /// Whether some were copies: their shares grow when others of them leave.
    copies: bool,
    /// When the count began.
    at: Time,
    shares: PerPort<PerPg<Share>>,
}

/// The standing queues of one port. Belongs to the port's owner, who looks before each run of the
/// egress: so what is paused at a look has not moved since the look before.
#[derive(Debug, Default)]
pub(crate) struct Standstill {
    /// Paused with frames in them.
    standing: QueueSet,
    /// Of these, those that have been so for the detection time.
    stuck: QueueSet,
    since: PerQueue<Time>,
    counted: PerQueue<Counted>,
}

impl Standstill {
    /// Since when a queue has been paused with frames in it and sent none; `None` if it isn't so.
    pub(crate) fn since(&self, queue: QueueId) -> Option<Time> {
        self.standing.contains(queue).then_some(self.since[queue])
    }

    /// When the port must be looked at although nothing happens: a queue will be stuck then, or
    /// copies in one are to be counted anew.
    pub(crate) fn deadline(&self, spec: &PortSpec) -> Time {
        let due = self.standing.iter().filter_map(|id| {
            let from = match self.stuck.contains(id) {
                false => self.since[id],
                true => Some(&self.counted[id]).filter(|counted| counted.copies)?.at,
            };
            Some(from.after(detection_time(spec)))
        });
        due.min().unwrap_or(Time::NEVER)
    }

    fn forget(&mut self, queue: QueueId) {
        self.standing.0 &= !QueueSet::only(queue).0;
        self.stuck.0 &= !QueueSet::only(queue).0;
    }
}

/// Looks at a port whose egress is about to run. `true` if frames are left to be counted.
#[inline]
pub(crate) fn look<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    profile: &Profile,
) -> bool {
    if port.standstill.standing.is_empty() && !port.receiver.may_pause(context.now) {
        return false;
    }
    look_closely(port, context, profile)
}

#[inline(never)]
fn look_closely<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    profile: &Profile,
) -> bool {
    let now = context.now;
    let spec = profile.port(port.id);
    let paused = spec.map_or(QueueSet::EMPTY, |spec| port.receiver.paused_queues(now, &spec.maps));
    let stands = QueueSet(paused.0 & !port.watch.forwarding.0 & port.waiting.0);
    for id in QueueSet(port.standstill.standing.0 & !stands.0).iter() {
        let_go(port, context, id);
    }
    let Some(spec) = spec.filter(|_| !stands.is_empty()) else { return false };
    for id in QueueSet(stands.0 & !port.standstill.standing.0).iter() {
        // The pause may have come after the step began whose time this is.
        port.standstill.since[id] = now.max(heard(port, spec, id));
    }
    port.standstill.standing = stands;
    let detection = detection_time(spec);
    let mut left = false;
    for id in stands.iter() {
        if !port.standstill.stuck.contains(id) {
            if now.since(port.standstill.since[id]) < detection {
                continue;
            }
            port.standstill.stuck = port.standstill.stuck.or(QueueSet::only(id));
            context.shared.stuck.enter();
            begin_count(port, id, now);
        }
        left |= count(port, context, id, detection);
    }
    left
}

/// When the last pause was received that stops a queue.
fn heard<P>(port: &Port<P>, spec: &PortSpec, id: QueueId) -> Time {
    let pausing = |p: &Priority| spec.maps.priority_to_queues[*p].contains(id);
    let heard = spec.pfc.enabled.iter().filter(pausing).map(|p| port.receiver.heard(p));
    heard.max().unwrap_or_default()
}

fn begin_count<P>(port: &mut Port<P>, id: QueueId, now: Time) {
    let counted = &mut port.standstill.counted[id];
    (counted.frames, counted.copies, counted.at) = (0, false, now);
}

/// Counts the frames of a stuck queue that were not counted yet, and tells the owners of their PGs.
/// `true` if some are left for the next step.
fn count<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    id: QueueId,
    detection: Nanos,
) -> bool {
    let counted = &mut port.standstill.counted[id];
    if counted.copies && context.now.since(counted.at) >= detection {
        for account in accounts() {
            let share = core::mem::take(&mut counted.shares[account.0][account.1]);
            context.shared.stuck.recount(account, share);
        }
        begin_count(port, id, context.now);
    }
    let (fifo, counted) = (&port.queues[id].fifo, &mut port.standstill.counted[id]);
    let upto = fifo.len().min(counted.frames + COUNT_AT_ONCE);
    if upto == counted.frames {
        return false;
    }
    let cell = context.profile.cell();
    for frame in fifo.range(counted.frames..upto) {
        let holders = match frame.is_copy() {
            true => context.shared.copies.holders(frame.chunk()),
            false => 1,
        };
        counted.copies |= frame.is_copy();
        let (ingress, pg) = frame.account();
        let share = Share::of(frame.len().to_cells(cell), holders);
        counted.shares[ingress][pg].add(share);
        context.shared.stuck.add((ingress, pg), port.id, share);
        context.wake_owner(ingress);
    }
    counted.frames = upto;
    upto < fifo.len()
}

/// A queue moves, or will be emptied: from now on it holds nobody.
pub(crate) fn let_go<P: PortIo>(port: &mut Port<P>, context: &mut Context<P::Pool>, id: QueueId) {
    let was_stuck = port.standstill.stuck.contains(id);
    port.standstill.forget(id);
    if !was_stuck {
        return;
    }
    for (ingress, pg) in accounts() {
        let share = core::mem::take(&mut port.standstill.counted[id].shares[ingress][pg]);
        if share.is_nothing() {
            continue;
        }
        let others = &port.standstill.counted.0;
        let last = others.iter().all(|counted| counted.shares[ingress][pg].is_nothing());
        context.shared.stuck.moved((ingress, pg), port.id, share, last);
        context.wake_owner(ingress);
    }
    context.shared.stuck.leave();
}

/// The PGs of all ports there can be.
fn accounts() -> impl Iterator<Item = (PortId, PgId)> {
    let ports = (0..MAX_PORTS).map(|number| PortId::from_bits(number as u8));
    ports.flat_map(|port| PgId::all().map(move |pg| (port, pg)))
}
