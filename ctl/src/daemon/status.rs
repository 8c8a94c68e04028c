//! What the daemon knows of itself and of the switch: `GET /api/v1/status`.

use crate::http::Status;
use crate::reconcile::Tally;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The answer.
#[derive(Debug, Serialize)]
pub(crate) struct StatusReply<'a> {
    /// This daemon's release.
    pub version: &'static str,
    /// Since it was started, seconds.
    pub uptime_seconds: u64,
    /// Calls that change the switch are allowed over HTTP.
    pub may_change: bool,
    /// The connection to the switch.
    pub switch: SwitchStatus<'a>,
    /// What is in force, as last seen; `null` before.
    pub running: Option<RunningStatus>,
    /// What shall be in force; `null` without `--profile`.
    pub desired: Option<DesiredStatus<'a>>,
    /// HTTP.
    pub http: HttpStatus<'a>,
}

/// The connection to the switch.
#[derive(Debug, Serialize)]
pub(crate) struct SwitchStatus<'a> {
    /// There is a connection.
    pub connected: bool,
    /// For so long, seconds.
    pub connected_seconds: Option<u64>,
    /// Why there was none last.
    pub last_error: Option<&'a str>,
    /// The switch's name.
    pub name: Option<&'a str>,
    /// Its process.
    pub pid: Option<u32>,
    /// Its release.
    pub version: Option<&'a str>,
    /// Its release is another one than this daemon's.
    pub version_differs: bool,
    /// Why its counters can't be read, if they can't.
    pub no_metrics: Option<&'a str>,
}

/// The profile in force.
#[derive(Debug, Serialize)]
pub(crate) struct RunningStatus {
    /// Its name.
    pub name: String,
    /// Hash of its thresholds.
    pub sha256: String,
    /// Which change made it.
    pub generation: u64,
    /// It was seen so long ago, seconds.
    pub seen_seconds_ago: u64,
}

/// The profile that shall be in force.
#[derive(Debug, Serialize)]
pub(crate) struct DesiredStatus<'a> {
    /// Its file.
    pub file: String,
    /// SHA-256 of the file's text.
    pub file_sha256: Option<&'a str>,
    /// Hash of its thresholds on this switch, to be held against that of the one in force.
    pub sha256: Option<&'a str>,
    /// So often it was put into force.
    pub accepted: u64,
    /// So often it was refused.
    pub refused: u64,
    /// Why it is not in force, if it was not the last time.
    pub problem: Option<&'a str>,
}

impl<'a> DesiredStatus<'a> {
    /// What the reconciler has to tell.
    pub(crate) fn new(file: String, tally: &'a Tally) -> Self {
        Self {
            file,
            file_sha256: tally.text_sha256.as_deref(),
            sha256: tally.sha256.as_deref(),
            accepted: tally.accepted,
            refused: tally.refused,
            problem: tally.problem.as_deref(),
        }
    }
}

/// HTTP.
#[derive(Debug, Serialize)]
pub(crate) struct HttpStatus<'a> {
    /// Connections now.
    pub connections: usize,
    /// Connections at most.
    pub connections_limit: usize,
    /// Answers by status code.
    pub answers: &'a Answers,
}

/// Answers by status code.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Answers(BTreeMap<u16, u64>);

impl Answers {
    /// Counts one.
    pub(crate) fn count(&mut self, status: Status) {
        *self.0.entry(status.code()).or_default() += 1;
    }
}

/// What is read of a `show_profile`, whatever else a switch of another release says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Running {
    /// Its name.
    pub name: String,
    /// Hash of its thresholds.
    pub sha256: String,
    /// Which change made it.
    pub generation: u64,
}

/// What is read of a `ping`'s answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Hello {
    /// The switch's name.
    pub name: String,
    /// Its release.
    pub version: String,
    /// Its process.
    pub pid: u32,
}

impl Hello {
    /// Whether it is of another release than this daemon.
    pub(crate) fn differs(&self) -> bool {
        self.version != env!("CARGO_PKG_VERSION")
    }
}
