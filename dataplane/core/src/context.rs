//! What every stage of a worker's step works with: shared accounts, memory, hand-over, trace.

use crate::copies::Copies;
use crate::deadlock::stuck::StuckCells;
use crate::drop::DropReason;
use crate::fdb::Fdb;
use crate::frame::{Charge, Descriptor, Frame};
use crate::ids::{PerPg, PerPort, PgId, PortId, WorkerId, MAX_PORTS};
use crate::io::FramePool;
use crate::mmu::{Edge, EdgeKind, Mmu};
use crate::probe::{Probe, PROBE_EVERY};
use crate::profile::Profile;
use crate::ring::Producer;
use crate::topology::Topology;
use crate::trace::{EventKind, Trace};
use crate::units::{FrameLen, Time};
use std::sync::Arc;

/// What all workers share: the only things with several writers (DESIGN law 2).
pub struct Shared {
    /// Accounts and pools.
    pub mmu: Mmu,
    /// Where stations are.
    pub fdb: Fdb,
    /// Who holds frames with several copies.
    pub copies: Copies,
    /// The frame that is being timed.
    pub probe: Probe,
    /// What stands in queues that are paused for long.
    pub stuck: StuckCells,
}

/// XOFF and XON edges of one PG, as far as this worker won them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeCount {
    /// Entered XOFF.
    pub xoff: u64,
    /// Left it.
    pub xon: u64,
}

/// A set of workers to wake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bells(pub u16);

impl Bells {
    /// Adds a worker.
    #[inline]
    pub fn add(&mut self, worker: WorkerId) {
        self.0 |= 1 << worker.index();
    }

    /// Whether `worker` is to be woken.
    pub const fn contains(self, worker: WorkerId) -> bool {
        self.0 & (1 << worker.index()) != 0
    }
}

/// Which of a worker's ports is where: by the port's number, its index among the worker's own.
pub(crate) struct Slots([u8; MAX_PORTS]);

impl Slots {
    const NOT_OURS: u8 = u8::MAX;

    /// The slots of these ports, in this order.
    pub(crate) fn new(ports: impl Iterator<Item = PortId>) -> Self {
        let mut slots = [Self::NOT_OURS; MAX_PORTS];
        for (slot, port) in ports.enumerate().take(MAX_PORTS) {
            slots[port.index()] = slot as u8;
        }
        Self(slots)
    }

    /// Where `port` is; `None` if another worker has it, or nobody.
    #[inline]
    pub(crate) fn of(&self, port: PortId) -> Option<usize> {
        let slot = self.0[port.index() % MAX_PORTS];
        (slot != Self::NOT_OURS).then_some(usize::from(slot))
    }
}

const _: () = assert!(MAX_PORTS <= Slots::NOT_OURS as usize, "a slot fits into its byte");

/// The workplace of one worker.
pub struct Context<M> {
    pub(crate) id: WorkerId,
    pub(crate) now: Time,
    pub(crate) shared: Arc<Shared>,
    pub(crate) profile: Arc<Profile>,
    pub(crate) topology: Arc<Topology>,
    pub(crate) slots: Slots,
    pub(crate) pool: M,
    /// Hand-over rings to other workers, by worker; `None` for this one.
    pub(crate) outboxes: Vec<Option<Producer>>,
    pub(crate) trace: Trace,
    pub(crate) edges: PerPort<PerPg<EdgeCount>>,
    /// Edges of the call to the MMU that is under way: a charge has two at most.
    pub(crate) new_edges: Vec<Edge>,
    pub(crate) bells: Bells,
    /// When this worker chooses a frame to time again.
    pub(crate) next_probe: Time,
    /// Frames that it has chosen.
    pub(crate) probes: usize,
}

/// Calls a method of the MMU; its edges go where [`Context::note_edges`] finds them.
macro_rules! with_edges {
    ($context:expr, $method:ident, $($argument:expr),*) => {{
        let Context { shared, profile, new_edges, .. } = $context;
        let result =
            shared.mmu.$method(profile, $($argument,)* &mut |edge| new_edges.push(edge));
        if !$context.new_edges.is_empty() {
            $context.note_edges();
        }
        result
    }};
}

impl<M: FramePool> Context<M> {
    /// Counts and records what the MMU has just decided; wakes the port's owner, who sends the PFC
    /// frame.
    #[cold]
    fn note_edges(&mut self) {
        for edge in self.new_edges.drain(..) {
            let count = &mut self.edges[edge.port][edge.pg];
            match edge.kind {
                EdgeKind::Xoff => count.xoff += 1,
                EdgeKind::Xon => count.xon += 1,
            }
            self.trace.record(self.now, edge.port, EventKind::Edge(edge));
            if self.slots.of(edge.port).is_none() {
                if let Some(owner) = self.topology.owner(edge.port) {
                    self.bells.add(owner);
                }
            }
        }
    }

    /// Charges a frame to a PG (SPEC 3.2).
    #[inline(always)]
    pub(crate) fn admit(
        &mut self,
        port: PortId,
        pg: PgId,
        len: FrameLen,
    ) -> Result<Charge, DropReason> {
        with_edges!(self, admit, port, pg, len)
    }

    /// Wakes the owner of a port if that is another worker.
    #[inline]
    pub(crate) fn wake_owner(&mut self, port: PortId) {
        if self.slots.of(port).is_none() {
            if let Some(owner) = self.topology.owner(port) {
                self.bells.add(owner);
            }
        }
    }

    /// Gives a receipt's cells back (SPEC 3.4).
    #[inline]
    pub(crate) fn release(&mut self, charge: Charge) {
        // The frame goes home to that worker, which may sleep with an empty fill ring.
        self.wake_owner(charge.port());
        with_edges!(self, release, charge);
    }

    /// The owner's look at a PG in XOFF (SPEC 3.3).
    pub(crate) fn reevaluate(&mut self, port: PortId, pg: PgId) {
        with_edges!(self, reevaluate, port, pg);
    }

    /// Evaluates a PG under a new profile (SPEC 3.3).
    pub(crate) fn adopt_pg(&mut self, port: PortId, pg: PgId) {
        with_edges!(self, adopt, port, pg);
    }

    /// Which frame of a burst of `came` is to be timed; `came` for none.
    #[inline]
    pub(crate) fn probe_place(&mut self, came: usize) -> usize {
        if self.now < self.next_probe || came == 0 || !self.shared.probe.is_free() {
            return came;
        }
        self.next_probe = self.now.after(PROBE_EVERY);
        self.probes = self.probes.wrapping_add(1);
        self.probes % came
    }

    /// Ends a frame that was dropped. The last holder releases and sends memory home.
    pub(crate) fn finish(&mut self, frame: Frame) {
        if frame.copy && !self.shared.copies.end(frame.handle.chunk()) {
            return;
        }
        if frame.timed {
            self.shared.probe.give_up();
        }
        self.release(frame.charge);
        self.pool.free(frame.handle);
    }

    /// Like [`finish`](Self::finish) for one of several frames that have left: its receipt joins
    /// those in `run` where one release of all is as good as one of each. That is so while the PG
    /// isn't in XOFF, for no edge can then lie between them; nobody else charges a PG of this
    /// worker's ports. (Another worker's adoption of a profile may pause it meanwhile; then the one
    /// release looks at the exit rule for all.) The caller releases what is left in `run`.
    #[inline(always)]
    pub(crate) fn finish_in_run(&mut self, run: &mut Option<Charge>, frame: Frame) {
        let Frame { handle, mut charge, copy, .. } = frame;
        if copy && !self.shared.copies.end(handle.chunk()) {
            return;
        }
        self.pool.free(handle);
        if let Some(run) = run {
            match run.absorb(charge) {
                Ok(()) => return,
                Err(other) => charge = other,
            }
        }
        self.begin_run(run, charge);
    }

    /// What was gathered goes back first: a PG in XOFF looks at the pool that others return to.
    fn begin_run(&mut self, run: &mut Option<Charge>, charge: Charge) {
        if let Some(before) = run.take() {
            self.release(before);
        }
        let ours = self.slots.of(charge.port()).is_some();
        if ours && !self.shared.mmu.in_xoff(charge.port(), charge.pg()) {
            *run = Some(charge);
        } else {
            self.release(charge);
        }
    }

    /// Hands a frame over to the worker that owns its egress port.
    pub(crate) fn hand_over(&mut self, owner: WorkerId, frame: Descriptor) {
        let word = frame.into_word();
        let pushed = match self.outboxes.get_mut(owner.index()) {
            Some(Some(outbox)) => outbox.push(word),
            _ => Err(word),
        };
        match pushed {
            Ok(()) => self.bells.add(owner),
            Err(word) => {
                // Rings hold every frame there can be, so this is a topology without its ring.
                debug_assert!(false, "no room in the hand-over ring to worker {owner:?}");
                self.finish(Descriptor::from_word(word).unpack(self.profile.cell()));
            }
        }
    }
}
