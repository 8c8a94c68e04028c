//! Findings in order, folded, and merged where ports are alike.

use super::fold::{fold, Scope};
use super::{Id, Severity};
use holdfast_api::doc::{Finding, Source};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::cmp::Reverse;

/// One finding of the linter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintFinding {
    /// Which check found it.
    pub id: Id,
    /// How grave it is here.
    pub severity: Severity,
    /// Key, what is wrong, value, limit and what to do.
    pub what: Finding,
    /// The ports it was found at; empty if it is about none in particular.
    pub ports: Vec<String>,
    /// The file, once it is known.
    pub file: Option<String>,
    /// The line in it, from 1.
    pub line: Option<usize>,
    /// Findings that follow from this one.
    pub implied: Vec<LintFinding>,
    /// What it is about, for folding: one entry a port.
    pub(super) scopes: Vec<Scope>,
}

impl LintFinding {
    pub(super) fn new(id: Id, severity: Severity, what: Finding) -> Self {
        let (ports, scopes) = (Vec::new(), vec![Scope::default()]);
        Self { id, severity, what, ports, file: None, line: None, implied: Vec::new(), scopes }
    }

    /// A finding as grave as its check can be.
    pub(super) fn gravest(id: Id, what: Finding) -> Self {
        Self::new(id, id.severity(), what)
    }

    pub(super) fn at(mut self, port: &super::PortView<'_>) -> Self {
        self.ports = vec![port.name.to_owned()];
        self.scopes.iter_mut().for_each(|scope| scope.port = Some(port.number));
        self
    }

    pub(super) fn of_pg(mut self, port: usize, pg: holdfast_core::ids::PgId) -> Self {
        self.scopes.iter_mut().for_each(|scope| scope.pg = Some((port, pg)));
        self
    }

    pub(super) fn of_queue(mut self, port: usize, queue: holdfast_core::ids::QueueId) -> Self {
        self.scopes.iter_mut().for_each(|scope| scope.queue = Some((port, queue)));
        self
    }

    /// The key without its port: `pg.3.xoff`.
    fn shared_key(&self) -> &str {
        let port = self.ports.first().map(|port| format!("port.{port}."));
        port.and_then(|front| self.what.key.strip_prefix(&front)).unwrap_or(&self.what.key)
    }

    /// Whether the two differ in nothing but the port.
    fn is_like(&self, other: &Self) -> bool {
        let numbers = |f: &Self| (f.what.value.clone(), f.what.limit.clone());
        self.id == other.id
            && self.severity == other.severity
            && self.shared_key() == other.shared_key()
            && self.what.message == other.what.message
            && self.what.fix == other.what.fix
            && numbers(self) == numbers(other)
    }

    fn locate(&mut self, source: &Source) {
        if self.file.is_none() {
            let place = source.locate(self.what.clone());
            (self.file, self.line) = (Some(place.file), place.line);
        }
    }
}

impl Serialize for LintFinding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Where<'a> {
            file: Option<&'a str>,
            line: Option<usize>,
            key: &'a str,
            ports: &'a [String],
        }
        let (file, line, ports) = (self.file.as_deref(), self.line, self.ports.as_slice());
        let place = Where { file, line, key: &self.what.key, ports };
        let mut object = serializer.serialize_struct("LintFinding", 9)?;
        object.serialize_field("id", &self.id)?;
        object.serialize_field("severity", &self.severity)?;
        object.serialize_field("where", &place)?;
        object.serialize_field("message", &self.what.message)?;
        object.serialize_field("value", &self.what.value)?;
        object.serialize_field("limit", &self.what.limit)?;
        object.serialize_field("why", self.id.why())?;
        object.serialize_field("fix", &self.what.fix)?;
        object.serialize_field("implied", &self.implied)?;
        object.end()
    }
}

/// All findings about a profile: errors first, then by check and port, implied ones folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    findings: Vec<LintFinding>,
}

impl Report {
    pub(super) fn new(findings: Vec<LintFinding>) -> Self {
        Self::sorted(fold(findings))
    }

    fn sorted(mut findings: Vec<LintFinding>) -> Self {
        // The sort is stable: ports stay in order.
        findings.sort_by_key(|finding| (Reverse(finding.severity), finding.id));
        findings.iter_mut().for_each(|finding| finding.implied.sort_by_key(|effect| effect.id));
        Self { findings }
    }

    /// The findings that no other implies.
    pub fn findings(&self) -> &[LintFinding] {
        &self.findings
    }

    /// How many of them are of this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// What a profile is refused with; `None` if it may be loaded.
    pub fn first_error(&self) -> Option<&LintFinding> {
        self.findings.first().filter(|finding| finding.severity == Severity::Error)
    }

    /// With one finding for all ports that are alike, and with file and line: for people.
    /// `ports` is how many the profile has.
    #[must_use]
    pub fn merged(self, source: &Source, ports: usize) -> Self {
        self.alike(ports, |finding| finding.locate(source))
    }

    /// The same for a running switch, which is no file.
    #[must_use]
    pub fn merged_live(self, ports: usize) -> Self {
        self.alike(ports, |_| ())
    }

    fn alike(self, ports: usize, locate: impl Fn(&mut LintFinding)) -> Self {
        let mut merged: Vec<LintFinding> = Vec::new();
        for finding in self.unfolded().findings {
            match merged.iter_mut().find(|earlier| earlier.is_like(&finding)) {
                Some(earlier) => {
                    earlier.ports.extend(finding.ports);
                    earlier.scopes.extend(finding.scopes);
                }
                None => merged.push(finding),
            }
        }
        for finding in &mut merged {
            if finding.ports.len() == ports {
                finding.what.key = finding.shared_key().to_owned();
            }
            locate(finding);
        }
        Self::new(merged)
    }

    /// With implied findings beside those that imply them.
    #[must_use]
    pub fn unfolded(self) -> Self {
        let apart = |mut finding: LintFinding| {
            let implied = std::mem::take(&mut finding.implied);
            std::iter::once(finding).chain(implied)
        };
        Self::sorted(self.findings.into_iter().flat_map(apart).collect())
    }

    /// With what another run found.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.findings.extend(other.findings);
        Self::sorted(self.findings)
    }
}
