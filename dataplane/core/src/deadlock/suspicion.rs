//! Whether a PG is suspected of a deadlock: judged by the owner of its port.

use super::stuck::AllStuck;
use crate::context::Context;
use crate::ids::PgId;
use crate::port::Port;
use crate::topology::PortSet;
use crate::trace::EventKind;
use crate::units::Time;

/// The suspicions of one PG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PgSuspicion {
    since: Option<Time>,
    last: Option<Time>,
    waits_for: PortSet,
    /// [`AllStuck::moves`] when it began.
    moves: u64,
    suspected: u64,
    resolved: u64,
}

impl PgSuspicion {
    /// Since when it is suspected, if it is.
    pub const fn since(&self) -> Option<Time> {
        self.since
    }

    /// When it was suspected last, whether it still is or not.
    pub const fn last_suspected(&self) -> Option<Time> {
        self.last
    }

    /// The egress ports whose queues held its frames when it was suspected last.
    pub const fn waits_for(&self) -> PortSet {
        self.waits_for
    }

    /// How often it was suspected.
    pub const fn suspected(&self) -> u64 {
        self.suspected
    }

    /// How often that ended.
    pub const fn resolved(&self) -> u64 {
        self.resolved
    }

    fn begin(&mut self, now: Time, AllStuck { ports, moves }: AllStuck) {
        (self.since, self.last) = (Some(now), Some(now));
        (self.waits_for, self.moves) = (ports, moves);
        self.suspected += 1;
    }

    fn end(&mut self) {
        self.since = None;
        self.resolved += 1;
    }
}

/// Judges the PGs of a port that the worker owns.
pub(crate) fn judge<P, M>(port: &mut Port<P>, context: &mut Context<M>) {
    let in_xoff = context.shared.mmu.xoff_set(port.id);
    for pg in PgId::all() {
        let in_xoff = in_xoff & 1 << pg.index() != 0;
        let begins = match port.suspicions[pg].since {
            None if in_xoff => {
                let shared = &context.shared;
                let held = || shared.mmu.held(port.id, pg);
                let Some(stuck) = shared.stuck.all(port.id, pg, held) else { continue };
                port.suspicions[pg].begin(context.now, stuck);
                true
            }
            Some(_) if !in_xoff || has_moved(port, context, pg) => {
                port.suspicions[pg].end();
                false
            }
            _ => continue,
        };
        let ports = port.suspicions[pg].waits_for;
        let kind = EventKind::Deadlock { pg, ports, begins };
        context.trace.record(context.now, port.id, kind);
    }
    port.suspected = port.suspicions.0.iter().any(|suspicion| suspicion.since.is_some());
}

/// Whether a queue has moved that held frames of a suspected PG. What came after, and goes through
/// elsewhere, frees nothing of what stands.
fn has_moved<P, M>(port: &Port<P>, context: &Context<M>, pg: PgId) -> bool {
    context.shared.stuck.moves(port.id, pg) != port.suspicions[pg].moves
}
