//! What a port's owner does about storms (SPEC 8): its queues are looked at after each step, what
//! is stormed is flushed, let go, or only told.

use crate::context::Context;
use crate::drop::DropReason;
use crate::egress;
use crate::ids::{PerQueue, Priority, PrioritySet, QueueId, QueueSet};
use crate::io::PortIo;
use crate::pfc::watchdog::{Change, Look, QueueWatch};
use crate::pfc::PauseReceiver;
use crate::port::Port;
use crate::profile::{PortSpec, WatchdogAction, WatchdogSpec};
use crate::trace::EventKind;
use crate::units::{Nanos, Time};

/// The watchdog of one port.
#[derive(Debug, Default)]
pub(crate) struct PortWatch {
    queues: PerQueue<QueueWatch>,
    /// Queues that stand, or are stormed: without any, only a pause is worth a look.
    engaged: QueueSet,
    /// Stormed queues.
    stormed: QueueSet,
    /// Of these, those whose frames are dropped.
    pub(crate) dropping: QueueSet,
    /// Of these, those whose pauses are ignored.
    pub(crate) forwarding: QueueSet,
}

impl PortWatch {
    /// One queue's watchdog.
    pub(crate) fn queue(&self, id: QueueId) -> &QueueWatch {
        &self.queues[id]
    }

    fn act(&mut self, action: WatchdogAction) {
        self.dropping = QueueSet::EMPTY;
        self.forwarding = QueueSet::EMPTY;
        match action {
            WatchdogAction::Drop => self.dropping = self.stormed,
            WatchdogAction::Forward => self.forwarding = self.stormed,
            WatchdogAction::Alert => {}
        }
    }

    /// When the port must be looked at although nothing happens.
    pub(crate) fn deadline(&self, spec: &WatchdogSpec) -> Time {
        if self.engaged.is_empty() {
            return Time::NEVER;
        }
        self.queues.0.iter().map(|queue| queue.deadline(spec)).min().unwrap_or(Time::NEVER)
    }
}

/// Looks at every queue of a port that a pause can stop.
pub(crate) fn look<P: PortIo>(port: &mut Port<P>, context: &mut Context<P::Pool>, spec: &PortSpec) {
    let Some(watchdog) = &spec.watchdog else { return };
    let now = context.now;
    if port.watch.engaged.is_empty() && !port.receiver.may_pause(now) {
        return;
    }
    let (mut detected, mut restored) = (QueueSet::EMPTY, QueueSet::EMPTY);
    for id in spec.pausable_queues().iter() {
        let (seen, only) = (see(port, spec, id, now), QueueSet::only(id));
        let queue = &mut port.watch.queues[id];
        match queue.look(watchdog, seen) {
            None => {}
            Some(Change::Detected) => detected = detected.or(only),
            Some(Change::Restored) => restored = restored.or(only),
        }
        port.watch.engaged.0 &= !only.0;
        if queue.is_engaged() {
            port.watch.engaged = port.watch.engaged.or(only);
        }
    }
    if detected.or(restored).is_empty() {
        return;
    }
    port.watch.stormed = QueueSet((port.watch.stormed.0 | detected.0) & !restored.0);
    port.watch.act(watchdog.action);
    tell(port, context, detected, restored);
    for id in QueueSet(detected.0 & port.watch.dropping.0).iter() {
        egress::flush_queue(port, context, id, DropReason::Watchdog);
    }
}

/// One event for all queues that storm at once.
fn tell<P, M>(port: &Port<P>, context: &mut Context<M>, detected: QueueSet, restored: QueueSet) {
    for (queues, begins) in [(detected, true), (restored, false)] {
        if !queues.is_empty() {
            let kind = EventKind::Storm(queues, begins);
            context.trace.record(context.now, port.id, kind);
        }
    }
}

fn see<P>(port: &Port<P>, spec: &PortSpec, id: QueueId, now: Time) -> Look {
    let pausing = spec.pfc.enabled.iter().filter(|p| spec.maps.priority_to_queues[*p].contains(id));
    let pausing = pausing.fold(PrioritySet::EMPTY, PrioritySet::with);
    let receiver = &port.receiver;
    // Of several priorities that stop the queue, the longest pause is at most all of them together.
    let most = |of: fn(&PauseReceiver, Priority, Time) -> u64| {
        pausing.iter().map(|priority| of(receiver, priority, now)).max().unwrap_or_default()
    };
    Look {
        now,
        waiting: port.waiting.contains(id),
        sent: port.counters.queues[id].transmitted.frames,
        paused: Nanos(most(|receiver, priority, now| receiver.paused_time(priority, now).0)),
        heard: Time(most(|receiver, priority, _| receiver.heard(priority).0)),
        paused_until: Time(most(|receiver, priority, _| receiver.paused_until(priority).0)),
    }
}

/// Ends the storms of queues that are watched no more: watchdog, PFC or port are gone, or all of
/// them where `spec` is `None`.
pub(crate) fn give_up<P: PortIo>(
    port: &mut Port<P>,
    context: &mut Context<P::Pool>,
    spec: Option<&PortSpec>,
) {
    let watched = spec.filter(|spec| spec.watchdog.is_some());
    let watched = watched.map_or(QueueSet::EMPTY, PortSpec::pausable_queues);
    let mut restored = QueueSet::EMPTY;
    for id in QueueId::all().filter(|id| !watched.contains(*id)) {
        if port.watch.queues[id].give_up(context.now) {
            restored = restored.or(QueueSet::only(id));
        }
        port.watch.engaged.0 &= !QueueSet::only(id).0;
    }
    port.watch.stormed = QueueSet(port.watch.stormed.0 & !restored.0);
    let action =
        spec.and_then(|spec| spec.watchdog).map_or(WatchdogAction::Alert, |dog| dog.action);
    let dropping = port.watch.dropping;
    port.watch.act(action);
    tell(port, context, QueueSet::EMPTY, restored);
    // A storm whose frames are to be dropped from now on: those that wait, too.
    for id in QueueSet(port.watch.dropping.0 & !dropping.0).iter() {
        egress::flush_queue(port, context, id, DropReason::Watchdog);
    }
}
