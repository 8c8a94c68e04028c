//! What is printed: the ready line and the final report, each one JSON object on one line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use holdfast_host::{FlowReport, ImpairmentReport, PfcReport, ReceivedFlow, ReceiverReport};
use holdfast_wire::InvalidKind;
use serde::Serialize;

use crate::latency::LatencyReport;
use crate::link::Link;

/// A report that can't be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportError {
    /// To a file.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// To standard output.
    #[error("standard output: {0}")]
    Output(#[source] io::Error),
}

impl ReportError {
    /// An error on the file at `path`.
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }
}

/// Why an endpoint ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndedBy {
    /// Everything was sent, or as many frames as wished came.
    Count,
    /// The time was over.
    Seconds,
    /// Nothing came any more.
    Idle,
    /// SIGTERM or SIGINT.
    Signal,
}

/// One line that says: sockets are bound, frames sent from now on are seen.
#[derive(Debug, Serialize)]
struct Ready<'a> {
    ready: bool,
    interface: &'a str,
    mac: String,
    pid: u32,
}

/// Prints the ready line.
pub(crate) fn announce(link: &Link) -> Result<(), ReportError> {
    let mac = link.mac().to_string();
    let ready = Ready { ready: true, interface: link.name(), mac, pid: std::process::id() };
    print_line(io::stdout().lock(), &ready).map_err(ReportError::Output)
}

/// Writes a final report to `path`, or to standard output.
pub(crate) fn deliver(report: &impl Serialize, path: Option<&Path>) -> Result<(), ReportError> {
    let Some(path) = path else {
        return print_line(io::stdout().lock(), report).map_err(ReportError::Output);
    };
    let file = File::create(path).map_err(|source| ReportError::file(path, source))?;
    print_line(file, report).map_err(|source| ReportError::file(path, source))
}

fn print_line(mut out: impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

/// The report of `send`, `receive` and `run`.
#[derive(Debug, Serialize)]
pub(crate) struct HostReport {
    pub(crate) interface: String,
    pub(crate) mac: String,
    pub(crate) ended_by: EndedBy,
    pub(crate) duration_ns: u64,
    /// Frames that the device took; those it refused were tried again.
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    /// Times the device refused a frame because its queue was full.
    pub(crate) refusals: u64,
    /// Frames lost in this program's own socket buffers.
    pub(crate) socket_drops: u64,
    #[serde(flatten)]
    pub(crate) pfc: PfcReport,
    pub(crate) impairments: ImpairmentReport,
    pub(crate) invalid_mac_control: BTreeMap<&'static str, u64>,
    pub(crate) flows_sent: Vec<FlowReport>,
    #[serde(flatten)]
    pub(crate) arrived: Arrived,
}

/// The receiving half of a [`HostReport`].
#[derive(Debug, Serialize)]
pub(crate) struct Arrived {
    pub(crate) received: u64,
    pub(crate) received_bytes: u64,
    pub(crate) lost: u64,
    pub(crate) reordered: u64,
    pub(crate) duplicates: u64,
    pub(crate) stale: u64,
    pub(crate) ce: u64,
    pub(crate) icrc_errors: u64,
    pub(crate) other_frames: u64,
    pub(crate) untracked: u64,
    /// From the first to the last data frame.
    pub(crate) goodput_bps: u64,
    pub(crate) latency_ns: Option<LatencyReport>,
    pub(crate) flows_received: Vec<ArrivedFlow>,
}

/// One received flow with its latency.
#[derive(Debug, Serialize)]
pub(crate) struct ArrivedFlow {
    #[serde(flatten)]
    pub(crate) flow: ReceivedFlow,
    pub(crate) latency_ns: Option<LatencyReport>,
}

impl Arrived {
    /// Puts counts, latencies and the time they took together.
    pub(crate) fn new(
        counts: ReceiverReport,
        span_ns: u64,
        all: Option<LatencyReport>,
        of_flow: impl Fn(&ReceivedFlow) -> Option<LatencyReport>,
    ) -> Self {
        let bits = u128::from(counts.bytes) * 8 * 1_000_000_000;
        let goodput = bits.checked_div(u128::from(span_ns)).unwrap_or(0);
        let with_latency = |flow| ArrivedFlow { latency_ns: of_flow(&flow), flow };
        Self {
            received: counts.received,
            received_bytes: counts.bytes,
            lost: counts.lost,
            reordered: counts.reordered,
            duplicates: counts.duplicates,
            stale: counts.stale,
            ce: counts.ce,
            icrc_errors: counts.icrc_errors,
            other_frames: counts.other_frames,
            untracked: counts.untracked,
            goodput_bps: u64::try_from(goodput).unwrap_or(u64::MAX),
            latency_ns: all,
            flows_received: counts.flows.into_iter().map(with_latency).collect(),
        }
    }
}

/// Counts of invalid MAC control frames by name.
pub(crate) fn by_kind(counts: &[u64; InvalidKind::COUNT]) -> BTreeMap<&'static str, u64> {
    InvalidKind::ALL.iter().map(|kind| kind.name()).zip(counts.iter().copied()).collect()
}
