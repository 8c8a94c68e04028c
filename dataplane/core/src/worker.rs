//! A worker: its ports, and the step that moves frames through them (DESIGN 4).

use crate::context::{Bells, Context, EdgeCount, Shared, Slots};
use crate::deadlock::{standstill, suspicion};
use crate::drop::DropReason;
use crate::egress;
use crate::exchange;
use crate::frame::Descriptor;
use crate::ids::{PerPort, PgId, PortId, WorkerId};
use crate::ingress;
use crate::io::{FramePool, Losses, PortIo, Received, BURST};
use crate::pause;
use crate::pfc::PauseCause;
use crate::port::Port;
use crate::profile::{PortSpec, Profile};
use crate::ring::{Consumer, Producer};
use crate::topology::Topology;
use crate::trace::{Trace, TraceMask};
use crate::units::{Nanos, Time};
use crate::watch;
use holdfast_wire::mac_control::FRAME_LEN;
use std::sync::Arc;

/// A PG in XOFF may be let go because others released, and nobody rings for that: a sleeping
/// owner looks again after this time (SPEC 3.3).
const XOFF_RECHECK: Nanos = Nanos::micros(200);

/// Aged stations are removed little by little: so many FDB entries are looked at ...
const SWEEP_ENTRIES: usize = 64;
/// ... once in this time. An aged entry is not used meanwhile.
const SWEEP_EVERY: Nanos = Nanos::millis(10);

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Frames moved, sent or given back; 0 for a step that found nothing to do.
    pub work: usize,
    /// When the next step must be made although nothing arrives; [`Time::NEVER`] if never.
    pub next_deadline: Time,
    /// Workers that have got something to do by this step.
    pub bells: Bells,
}

/// What a worker starts with.
pub struct WorkerParts<P: PortIo> {
    /// Its number.
    pub id: WorkerId,
    /// Accounts, FDB and copies, shared with the other workers.
    pub shared: Arc<Shared>,
    /// The profile to start under.
    pub profile: Arc<Profile>,
    /// Who owns which port.
    pub topology: Arc<Topology>,
    /// Its view of the memory.
    pub pool: P::Pool,
    /// Its ports.
    pub ports: Vec<Port<P>>,
    /// Rings from the other workers.
    pub inboxes: Vec<Consumer>,
    /// Rings to the other workers, by their number; `None` for itself.
    pub outboxes: Vec<Option<Producer>>,
    /// Events it keeps.
    pub trace_capacity: usize,
}

/// One worker with the ports it owns. Pure: time comes in with each step (DESIGN law 1).
pub struct Worker<P: PortIo> {
    pub(crate) ports: Vec<Port<P>>,
    inboxes: Vec<Consumer>,
    pub(crate) context: Context<P::Pool>,
    received: Vec<Received>,
    done: Vec<u64>,
    accepting: bool,
    next_sweep: Time,
    /// A stuck queue has frames that are not counted yet.
    uncounted: bool,
}

impl<P: PortIo> Worker<P> {
    /// A worker that is ready for its first step; it allocates here and not later.
    pub fn new(parts: WorkerParts<P>) -> Self {
        let WorkerParts { id, shared, profile, topology, pool, ports, inboxes, outboxes, .. } =
            parts;
        let slots = Slots::new(ports.iter().map(Port::id));
        Self {
            ports,
            inboxes,
            context: Context {
                id,
                now: Time::default(),
                shared,
                profile,
                topology,
                slots,
                pool,
                outboxes,
                trace: Trace::new(parts.trace_capacity),
                edges: PerPort::from_fn(|_| Default::default()),
                new_edges: Vec::with_capacity(8),
                bells: Bells::default(),
                next_probe: Time::default(),
                probes: 0,
            },
            received: Vec::with_capacity(BURST),
            done: Vec::with_capacity(BURST),
            accepting: true,
            next_sweep: Time::default(),
            uncounted: false,
        }
    }

    /// One step at the time `now`: inbox, then for each port RX burst and PFC, then egress of each
    /// port, then refill (DESIGN 4).
    pub fn step(&mut self, now: Time) -> Step {
        self.context.now = now;
        self.context.bells = Bells::default();
        let profile = Arc::clone(&self.context.profile);
        self.follow_links();
        let mut work = self.take_inboxes(&profile);
        work += self.context.pool.take_returned();
        if self.accepting {
            for index in 0..self.ports.len() {
                let (ports, received) = (&mut self.ports, &mut self.received);
                work += ingress::burst(ports, index, &mut self.context, &profile, received);
                // Before the next burst: what this one decided must be on the wire first.
                work += self.settle(index, &profile);
            }
        }
        self.look_for_deadlocks(&profile);
        for port in &mut self.ports {
            work += egress::run(port, &mut self.context, &profile, &mut self.done);
            if let Some(spec) = profile.port(port.id) {
                watch::look(port, &mut self.context, spec);
            }
            if self.accepting {
                port.io.refill(&mut self.context.pool, port.late.frames());
            }
        }
        if self.context.id == WorkerId::default() {
            self.keep_house(&profile);
        }
        let next_deadline = if work == 0 { self.next_deadline(&profile) } else { now };
        Step { work, next_deadline, bells: self.context.bells }
    }

    /// Before frames leave: queues that stand, and PGs that wait for them (SPEC 8).
    #[inline]
    fn look_for_deadlocks(&mut self, profile: &Profile) {
        self.uncounted = false;
        for port in &mut self.ports {
            self.uncounted |= standstill::look(port, &mut self.context, profile);
        }
        let none = self.context.shared.stuck.is_empty();
        for port in &mut self.ports {
            if !none || port.suspected {
                suspicion::judge(port, &mut self.context);
            }
        }
    }

    /// What one worker does for all: cells of shrunk sizes, and stations not seen for long.
    fn keep_house(&mut self, profile: &Profile) {
        let Shared { mmu, fdb, .. } = &*self.context.shared;
        mmu.recompute_withheld_if_any(profile);
        let now = self.context.now;
        if now >= self.next_sweep {
            fdb.sweep(now, SWEEP_ENTRIES);
            self.next_sweep = now.after(SWEEP_EVERY);
        }
    }

    fn settle(&mut self, index: usize, profile: &Profile) -> usize {
        match self.ports.get_mut(index) {
            Some(port) => pause::settle(port, &mut self.context, profile),
            None => 0,
        }
    }

    fn take_inboxes(&mut self, profile: &Profile) -> usize {
        let mut taken = 0;
        for inbox in &mut self.inboxes {
            while let Some(word) = inbox.pop() {
                let frame = Descriptor::from_word(word);
                egress::accept(&mut self.ports, &mut self.context, profile, frame);
                taken += 1;
                if taken % (4 * BURST) == 0 {
                    break;
                }
            }
        }
        taken
    }

    fn next_deadline(&self, profile: &Profile) -> Time {
        let now = self.context.now;
        let mut next = if self.uncounted { now } else { Time::NEVER };
        for port in self.ports.iter().filter(|port| port.up) {
            next = next.min(port.sender.deadline());
            if self.context.shared.mmu.xoff_set(port.id) != 0 {
                next = next.min(now.after(XOFF_RECHECK));
            }
            let Some(spec) = profile.port(port.id) else { continue };
            next = next.min(port.standstill.deadline(spec));
            if let Some(watchdog) = &spec.watchdog {
                next = next.min(port.watch.deadline(watchdog));
            }
            if port.waiting.is_empty() || port.held {
                continue;
            }
            let paused = port.receiver.paused_queues(now, &spec.maps);
            let paused = crate::ids::QueueSet(paused.0 & !port.watch.forwarding.0);
            if !paused.is_empty() {
                next = next.min(port.receiver.deadline(now));
            }
            let ready = crate::ids::QueueSet(port.waiting.0 & !paused.0);
            if !ready.is_empty() {
                let shaped = port.shaper.ready_at().max(port.scheduler.deadline(now, ready));
                next = next.min(shaped.max(now));
            }
        }
        next
    }

    /// Takes over a new profile: every PG this worker may charge or release is evaluated under it,
    /// so that the last worker to adopt leaves the right state (SPEC 3.3).
    pub fn adopt(&mut self, profile: Arc<Profile>, now: Time) {
        self.context.now = now;
        self.context.profile = Arc::clone(&profile);
        self.context.shared.mmu.recompute_withheld(&profile);
        for number in 0..profile.spec().ports.len() {
            let port = PortId::from_bits(number as u8);
            for pg in PgId::all() {
                self.context.adopt_pg(port, pg);
            }
        }
        for port in &mut self.ports {
            let Some(spec) = profile.port(port.id) else { continue };
            port.adopt(spec, now);
            watch::give_up(port, &mut self.context, Some(spec));
            let level = self.context.shared.mmu.pfc_level(&profile, port.id);
            port.sender.set_cause(PauseCause::Mmu, level);
            let backlog = pause::backlog_level(port, spec);
            port.sender.set_cause(PauseCause::RxBacklog, backlog);
            pause::send(port, &mut self.context);
        }
    }

    /// Takes over what was lost at a port before the switch saw it, with the totals of now. Where a
    /// lossless PG exists each frame of an overrun may have been lossless, so all count as
    /// violations (SPEC 4.3).
    pub fn count_losses(&mut self, id: PortId, now: Losses) {
        let profile = Arc::clone(&self.context.profile);
        let Some(port) = self.port_mut(id) else { return };
        let Losses { overrun, rx_pressure_lossy, runt, too_long } = port.losses;
        let lost = now.overrun.saturating_sub(overrun);
        port.counters.receive_overrun += lost;
        let lossless = |spec: &PortSpec| spec.pgs.iter().any(|(_, pg)| pg.lossless);
        if profile.port(id).is_some_and(lossless) {
            port.counters.lossless_violations += lost;
        }
        for (reason, total, before) in [
            (DropReason::RxPressureLossy, now.rx_pressure_lossy, rx_pressure_lossy),
            (DropReason::Parse, now.runt, runt),
            (DropReason::TooLong, now.too_long, too_long),
        ] {
            port.counters.dropped.add(reason, total.saturating_sub(before));
        }
        port.losses = now;
    }

    /// Stops or lets go the egress of a port, at once and completely (SPEC 11). `false` if this
    /// worker doesn't own the port.
    pub fn hold(&mut self, port: PortId, hold: bool) -> bool {
        let Some(port) = self.port_mut(port) else { return false };
        port.held = hold;
        true
    }

    /// Sends a frame of ours out of a port as PFC goes out: from the reserved slots, ahead of data
    /// and past the shaper. For a look at the way that MAC control takes (SPEC 9, preflight).
    /// `None` if this worker doesn't own the port, `false` if the link is down or no slot is free.
    pub fn send_control(&mut self, port: PortId, bytes: &[u8; FRAME_LEN]) -> Option<bool> {
        let port = self.port_mut(port)?;
        if !port.up || !port.io.transmit_control(bytes) {
            return Some(false);
        }
        port.io.kick();
        Some(true)
    }

    /// Ports whose link went up or down: going down, what waits is dropped, its stations are
    /// forgotten, and the peer's pauses with them (SPEC 9).
    fn follow_links(&mut self) {
        for port in &mut self.ports {
            let up = port.io.is_up();
            if up == port.up {
                continue;
            }
            exchange::follow(port, &mut self.context, up);
        }
    }

    /// From now on no frame is taken in; what is queued goes on leaving. Every paused priority is
    /// let go (SPEC 14, SIGTERM).
    pub fn stop_accepting(&mut self, now: Time) {
        self.context.now = now;
        self.accepting = false;
        for port in &mut self.ports {
            port.sender.release_all();
            pause::send(port, &mut self.context);
            ingress::give_up_late(port, &mut self.context, DropReason::Shutdown);
        }
    }

    /// Drops what is still queued, with the reason `shutdown`.
    pub fn discard_queued(&mut self) {
        for port in &mut self.ports {
            egress::flush(port, &mut self.context, DropReason::Shutdown);
        }
    }

    /// Whether any frame still waits in a queue of this worker.
    pub fn has_queued(&self) -> bool {
        self.ports.iter().any(|port| !port.waiting.is_empty())
    }

    /// Its number.
    pub const fn id(&self) -> WorkerId {
        self.context.id
    }

    /// Its ports.
    pub fn ports(&self) -> &[Port<P>] {
        &self.ports
    }

    /// One of its ports.
    pub fn port_mut(&mut self, id: PortId) -> Option<&mut Port<P>> {
        self.ports.iter_mut().find(|port| port.id == id)
    }

    /// What all workers share.
    pub const fn shared(&self) -> &Arc<Shared> {
        &self.context.shared
    }

    /// The profile it runs.
    pub const fn profile(&self) -> &Arc<Profile> {
        &self.context.profile
    }

    /// Edges that this worker won on a PG of any port.
    pub fn edges(&self, port: PortId, pg: PgId) -> EdgeCount {
        self.context.edges[port][pg]
    }

    /// Its events.
    pub const fn trace(&self) -> &Trace {
        &self.context.trace
    }

    /// Chooses which events are recorded.
    pub fn set_trace_mask(&mut self, mask: TraceMask) {
        self.context.trace.set_mask(mask);
    }

    /// Its memory.
    pub const fn pool(&self) -> &P::Pool {
        &self.context.pool
    }

    /// Its memory, for a test that puts frames on a wire.
    pub fn pool_mut(&mut self) -> &mut P::Pool {
        &mut self.context.pool
    }
}
