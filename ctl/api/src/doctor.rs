//! What `holdfast-dataplane --doctor` finds and `holdfast doctor` shows (SPEC 11): whether a switch
//! can run here, and what is degraded.

use serde::{Deserialize, Serialize};

/// Everything that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorReport {
    /// Version of the dataplane.
    pub version: String,
    /// Whether a switch can run: nothing that is needed is missing.
    pub can_run: bool,
    /// One entry a subject, in the order they are shown.
    pub conditions: Vec<Condition>,
}

impl DoctorReport {
    /// A report of these.
    pub fn new(version: &str, conditions: Vec<Condition>) -> Self {
        let can_run = conditions.iter().all(|found| found.state != Health::Missing);
        Self { version: version.to_owned(), can_run, conditions }
    }
}

/// How one subject stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// As it should be.
    Ok,
    /// A switch runs, but not with all it can do, or not as well.
    Degraded,
    /// A switch can't run like that.
    Missing,
}

impl Health {
    /// As on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Missing => "missing",
        }
    }
}

/// One subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// What was looked at: `kernel`, `cap-net-admin`, `port h1 link`. The same in every release.
    pub id: String,
    /// How it stands.
    pub state: Health,
    /// What was found.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// What to do; `None` where there is nothing to do.
    pub fix: Option<String>,
}

impl Condition {
    /// A subject that stands so.
    pub fn new(
        id: impl Into<String>,
        state: Health,
        what: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), state, what: what.into(), why: why.into(), fix: None }
    }

    /// With what to do.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_can_run_unless_something_is_missing() {
        let with = |state| DoctorReport::new("1", vec![Condition::new("x", state, "", "")]);
        assert!(with(Health::Ok).can_run && with(Health::Degraded).can_run);
        assert!(!with(Health::Missing).can_run);
    }
}
