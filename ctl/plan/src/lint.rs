//! The linter (SPEC 10): what is wrong, doubtful or without effect in a profile, all of it.
//!
//! Each check has an [`Id`] and a file of its family: `buffer` and `levels` (B), `ecn` (E),
//! `pfc` and `link` (P), `qos` (Q). They read the planned profile, so what a document gets by
//! default is checked like what it says. `host` (H) needs a [`running()`] switch. A finding that
//! another one implies is folded under it (`fold`). Errors block: [`crate::resolve`] and
//! [`crate::edit`] refuse a profile with the first of them.

use crate::resolve::{assemble, HeadroomTerm, ProfilePlan, SMALLEST_LOSSLESS};
use crate::SwitchFacts;
use holdfast_api::doc::{DocError, Finding};
use holdfast_api::profile_doc::{ProfileDoc, DSCP_FIX, SLOT_FIX};
use holdfast_core::ids::{Cos, PgId, QueueId};
use holdfast_core::profile::{PortSpec, Profile, ProfileSpec};
use holdfast_core::units::{Cells, FrameLen};

mod buffer;
mod ecn;
mod fold;
mod host;
mod id;
mod levels;
mod link;
mod pfc;
mod qos;
mod report;
mod running;

pub use fold::{About, IMPLICATIONS};
pub use id::{Id, Severity};
pub use link::{link, End};
pub use report::{LintFinding, Report};
pub use running::{running, Running};

/// What a lint run is told beyond the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Queues that one PG may feed at once (k of E02 and E03): what marks on them adds up
    /// before the PG pauses.
    pub queues_at_once: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { queues_at_once: 1 }
    }
}

/// Lints `doc` on the ports of `facts`. What can't be planned is reported alone: the other
/// checks would judge values that aren't there.
pub fn profile(doc: &ProfileDoc, facts: &SwitchFacts, options: Options) -> Report {
    match assemble(doc, facts) {
        Ok(planned) => plan(&planned, options),
        Err(errors) => Report::new(errors.into_iter().map(|e| refusal(e.into())).collect()),
    }
}

/// Lints a document that couldn't be read.
pub fn unreadable(error: DocError) -> Report {
    let (file, line) = (error.file, error.line);
    let mut found = refusal(*error.finding);
    (found.file, found.line) = (Some(file), line);
    Report::new(vec![found])
}

/// Lints a plan.
pub(crate) fn plan(plan: &ProfilePlan, options: Options) -> Report {
    Subject {
        spec: plan.spec(),
        names: plan.port_names(),
        terms: plan.headroom_terms(),
        smallest: plan.smallest_lossless_frame(),
        rx_ring: Some(plan.rx_ring()),
        queues_at_once: options.queues_at_once.max(1),
    }
    .lint()
}

/// Holds a profile that is changed live against the linter's errors.
///
/// # Errors
/// The first error.
pub(crate) fn refuse(spec: &ProfileSpec, names: &[String]) -> Result<(), Finding> {
    let subject = Subject {
        spec,
        names,
        terms: &[],
        smallest: FrameLen(SMALLEST_LOSSLESS),
        rx_ring: None,
        queues_at_once: 1,
    };
    subject.lint().first_error().map_or(Ok(()), |error| Err(error.what.clone()))
}

/// A finding about a value that can't be planned at all.
fn refusal(mut finding: Finding) -> LintFinding {
    let id = match &finding {
        f if f.fix == SLOT_FIX || f.fix == DSCP_FIX => Id::Q01,
        f if f.key.ends_with(".wred.pmax") => Id::E06,
        _ => Id::D01,
    };
    if id == Id::Q01 {
        let range = if finding.fix == SLOT_FIX { "0..7" } else { "0..63" };
        // Where a key is out of range there is no value beside it.
        let key = finding.key.rsplit('.').next().unwrap_or_default();
        finding.value = finding.value.or_else(|| Some(key.to_owned()));
        finding.limit = Some(range.to_owned());
    }
    let port = finding.key.strip_prefix("port.").and_then(|rest| rest.split_once('.'));
    let ports = port.map(|(name, _)| name.to_owned()).into_iter().collect();
    LintFinding { ports, ..LintFinding::new(id, Severity::Error, finding) }
}

/// What the checks look at.
struct Subject<'a> {
    spec: &'a ProfileSpec,
    names: &'a [String],
    /// Headroom against the formula; empty without one, and in a live change.
    terms: &'a [HeadroomTerm],
    smallest: FrameLen,
    /// `None` where it isn't known.
    rx_ring: Option<u32>,
    queues_at_once: u32,
}

/// One port of the profile.
#[derive(Clone, Copy)]
struct PortView<'a> {
    number: usize,
    name: &'a str,
    spec: &'a PortSpec,
}

impl PortView<'_> {
    /// The key `rest` of this port.
    fn key(&self, rest: impl std::fmt::Display) -> String {
        format!("port.{}.{rest}", self.name)
    }
}

impl Subject<'_> {
    fn lint(&self) -> Report {
        Report::new(self.find())
    }

    fn find(&self) -> Vec<LintFinding> {
        let mut found = Vec::new();
        buffer::check(self, &mut found);
        levels::check(self, &mut found);
        ecn::check(self, &mut found);
        pfc::check(self, &mut found);
        qos::check(self, &mut found);
        self.hold_core(&mut found);
        found
    }

    /// The core holds ranges of its own. It names one thing at a time, which is news only where
    /// no check has found an error yet.
    fn hold_core(&self, found: &mut Vec<LintFinding>) {
        if found.iter().any(|finding| finding.severity == Severity::Error) {
            return;
        }
        if let Err(error) = Profile::new(0, self.spec.clone()) {
            let finding = crate::PlanError::from(error).finding(self.names);
            found.push(LintFinding::new(Id::D01, Severity::Error, finding));
        }
    }

    fn ports(&self) -> impl Iterator<Item = PortView<'_>> {
        let named = self.names.iter().zip(&self.spec.ports).enumerate();
        // A place without a name is vacant.
        let named = named.filter(|(_, (name, _))| !name.is_empty());
        named.map(|(number, (name, spec))| PortView { number, name, spec })
    }

    /// Whether frames of a lossless PG of any port may leave by `queue` of `egress`.
    fn carries_lossless(&self, egress: &PortSpec, queue: QueueId) -> bool {
        self.ports().any(|port| {
            let lossless = port.spec.pgs.iter().filter(|(_, account)| account.lossless);
            lossless.into_iter().any(|(pg, _)| feeds(port.spec, pg, egress, queue))
        })
    }

    fn pool(&self, pg: &holdfast_core::profile::PgSpec) -> Cells {
        self.spec.pools.get(pg.pool.index()).map_or(Cells::ZERO, |(_, size)| *size)
    }
}

/// Whether frames that enter PG `pg` of `ingress` may leave by `queue` of `egress`.
fn feeds(ingress: &PortSpec, pg: PgId, egress: &PortSpec, queue: QueueId) -> bool {
    Cos::all()
        .any(|cos| ingress.maps.cos_to_pg[cos] == pg && egress.maps.cos_to_queue[cos] == queue)
}

/// Whether the port's own maps make `queue` lossless: its defaults are chosen by that.
fn is_lossless(port: &PortSpec, queue: QueueId) -> bool {
    port.pgs.iter().any(|(pg, account)| account.lossless && feeds(port, pg, port, queue))
}
