//! Whether a PG is suspected of a deadlock: judged by the owner of its port.

use super::stuck::Share;
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
    /// [`super::stuck::Sight::moves`] when it began.
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
}

/// Judges the PGs of a port that the worker owns.
pub(crate) fn judge<P, M>(port: &mut Port<P>, context: &mut Context<M>) {
    let in_xoff = context.shared.mmu.xoff_set(port.id);
    for pg in PgId::all() {
        let in_xoff = in_xoff & 1 << pg.index() != 0;
        let begins = match port.suspicions[pg].since {
            None if in_xoff => match waits_for(port, context, pg) {
                Some((ports, moves)) => begin(&mut port.suspicions[pg], context.now, ports, moves),
                None => continue,
            },
            Some(_) if !in_xoff || has_moved(port, context, pg) => {
                let suspicion = &mut port.suspicions[pg];
                suspicion.since = None;
                suspicion.resolved += 1;
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

fn begin(suspicion: &mut PgSuspicion, now: Time, ports: PortSet, moves: u64) -> bool {
    (suspicion.since, suspicion.last) = (Some(now), Some(now));
    (suspicion.waits_for, suspicion.moves) = (ports, moves);
    suspicion.suspected += 1;
    true
}

/// Whether a queue has moved that held frames of a suspected PG. What came after, and goes through
/// elsewhere, frees nothing of what stands.
fn has_moved<P, M>(port: &Port<P>, context: &Context<M>, pg: PgId) -> bool {
    context.shared.stuck.moves(port.id, pg) != port.suspicions[pg].moves
}

/// The ports whose stuck queues hold all frames of a PG, if they do: then no cell of its account is
/// anywhere else. Only this worker charges the PG, so cells can only have gone between the two
/// reads; of those that stood, the queue has said before that it moves.
fn waits_for<P, M>(port: &Port<P>, context: &Context<M>, pg: PgId) -> Option<(PortSet, u64)> {
    let stuck = &context.shared.stuck;
    let sight = stuck.sight(port.id, pg);
    let held = context.shared.mmu.held(port.id, pg);
    let all = !sight.share.is_nothing() && sight.share.is(Share::whole(held));
    (all && stuck.moves(port.id, pg) == sight.moves).then_some((sight.ports, sight.moves))
}
