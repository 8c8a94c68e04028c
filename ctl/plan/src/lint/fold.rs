//! Which finding implies which: an implied one is nothing to act on by itself.

use super::{Id, LintFinding};
use holdfast_core::ids::{PgId, QueueId};

/// What two findings must have in common for one to imply the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The same key.
    Key,
    /// The same PG of the same port.
    Pg,
    /// The same queue of the same port.
    Queue,
    /// The same port.
    Port,
}

/// The first implies the second, where both are about the same thing. Errors of reading and
/// planning (D01, Q01, E06) imply everything by themselves: no other check runs on such a
/// document.
pub const IMPLICATIONS: &[(Id, Id, About)] = &[
    // Headroom below the formula's need says more than Headroom below one frame.
    (Id::B03, Id::B11, About::Key),
    // So does Headroom below the need of a CPU switch; below the profile's own need comes first.
    (Id::B03, Id::H07, About::Key),
    (Id::H07, Id::B11, About::Key),
    // XOFF above the limit is above 70 % of it, and leaves nothing for Headroom.
    (Id::B04, Id::B07, About::Pg),
    (Id::B04, Id::B12, About::Pg),
    // A window of nothing or of all of XOFF is too small or too large.
    (Id::B05, Id::B06, About::Pg),
    // A resume level of 0 is below every Kmax.
    (Id::B05, Id::E03, About::Pg),
    // A PG that may not borrow a frame can't have XOFF below its limit, nor a window of a burst,
    // and no line marks below it.
    (Id::B11, Id::B04, About::Pg),
    (Id::B11, Id::B05, About::Pg),
    (Id::B11, Id::E02, About::Pg),
    (Id::B11, Id::E05, About::Pg),
    // Above XOFF is above the resume level.
    (Id::E02, Id::E03, About::Queue),
    // Two queues of one PG are two classes in it.
    (Id::E07, Id::Q06, About::Pg),
    // A PG that pauses nobody doesn't pause its CoS either.
    (Id::P01, Id::P09, About::Pg),
    // Eight are more than two.
    (Id::P03, Id::P02, About::Port),
];

/// What a finding is about at one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) port: Option<usize>,
    pub(super) pg: Option<(usize, PgId)>,
    pub(super) queue: Option<(usize, QueueId)>,
}

fn implies(cause: &LintFinding, effect: &LintFinding) -> bool {
    let within = |same: fn(&Scope, &Scope) -> bool| {
        effect.scopes.iter().all(|its| cause.scopes.iter().any(|scope| same(scope, its)))
    };
    let same = |about: About| match about {
        About::Key => cause.what.key == effect.what.key,
        About::Pg => within(|cause, its| cause.pg.is_some() && cause.pg == its.pg),
        About::Queue => within(|cause, its| cause.queue.is_some() && cause.queue == its.queue),
        About::Port => within(|cause, its| cause.port.is_some() && cause.port == its.port),
    };
    // A warning never hides an error.
    cause.severity >= effect.severity
        && IMPLICATIONS
            .iter()
            .any(|(c, e, about)| *c == cause.id && *e == effect.id && same(*about))
}

/// Moves each implied finding below the one that nothing implies and that leads to it.
pub(super) fn fold(findings: Vec<LintFinding>) -> Vec<LintFinding> {
    let cause = |effect: &LintFinding| findings.iter().position(|cause| implies(cause, effect));
    let causes: Vec<Option<usize>> = findings.iter().map(cause).collect();
    let root = |start: usize| {
        let mut at = start;
        // The table has no cycle; the bound holds if somebody adds one.
        for _ in 0..IMPLICATIONS.len() {
            match causes.get(at).copied().flatten() {
                Some(cause) => at = cause,
                None => break,
            }
        }
        at
    };
    let roots: Vec<usize> = (0..findings.len()).map(root).collect();
    let mut slots: Vec<Option<LintFinding>> = findings.into_iter().map(Some).collect();
    for (number, root) in roots.iter().enumerate() {
        if number == *root {
            continue;
        }
        let Some(effect) = slots.get_mut(number).and_then(Option::take) else { continue };
        if let Some(Some(cause)) = slots.get_mut(*root) {
            cause.implied.push(effect);
        }
    }
    slots.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    #[test]
    fn the_table_has_no_cycle_and_no_check_that_implies_itself() {
        for start in Id::ALL {
            let mut reached = vec![*start];
            let mut next = 0;
            while let Some(id) = reached.get(next).copied() {
                let effects = IMPLICATIONS.iter().filter(|(cause, ..)| *cause == id);
                for (_, effect, _) in effects {
                    assert_ne!(effect, start, "{start} implies itself by {id}");
                    if !reached.contains(effect) {
                        reached.push(*effect);
                    }
                }
                next += 1;
            }
        }
    }
    #[test]
    fn a_warning_never_hides_an_error() {
        let found = |id, severity| {
            let what = holdfast_api::doc::Finding::new("port.h1.queue.3.wred.kmax", "m", "f");
            LintFinding::new(id, severity, what).of_queue(0, QueueId::default())
        };
        let of = |above, below| fold(vec![found(Id::E02, above), found(Id::E03, below)]).len();
        assert_eq!(of(Severity::Error, Severity::Error), 1);
        assert_eq!(of(Severity::Warning, Severity::Warning), 1);
        assert_eq!(of(Severity::Warning, Severity::Error), 2);
    }
}
