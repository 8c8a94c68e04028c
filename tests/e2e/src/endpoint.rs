//! `holdfast-endpoint` in a host's namespace.

use crate::netns::{Netns, HOST_IFNAME};
use crate::process::{Niceness, Process};
use crate::wait::wait_for;
use crate::{binaries, LabError};
use nix::sys::signal::Signal;
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Until its sockets are bound, on a machine that does much else.
const READY: Duration = Duration::from_secs(20);
/// Until it has written its report after a signal.
const ENDING: Duration = Duration::from_secs(20);

/// A running endpoint. Dropping it kills it.
#[derive(Debug)]
pub struct Endpoint {
    process: Process,
}

impl Endpoint {
    /// Starts it on the host's netdev and waits until its sockets are bound.
    ///
    /// # Errors
    /// [`LabError::NoBinary`], [`LabError::Start`], or the end of its log if it isn't ready.
    pub fn start(
        name: &str,
        host: &Netns,
        arguments: &[&str],
        folder: &Path,
    ) -> Result<Self, LabError> {
        let mut command = host.command(binaries::find(binaries::ENDPOINT)?);
        let (verb, rest) = arguments.split_first().unwrap_or((&"run", &[]));
        command.args([verb, "--interface", HOST_IFNAME]).args(rest);
        let mut process = Process::start(name, Niceness::Host, &command, folder)?;
        wait_for(&format!("endpoint {name} isn't ready"), READY, || {
            if process.output().lines().next().is_some_and(|line| line.contains("\"ready\":true")) {
                return Ok(Some(()));
            }
            if process.status()?.is_some_and(|status| !status.success()) {
                process.wait_for_success(Duration::ZERO)?;
            }
            Ok(None)
        })?;
        Ok(Self { process })
    }

    /// Waits for its own end and reads its report.
    ///
    /// # Errors
    /// [`LabError::Late`], [`LabError::Failed`], [`LabError::Content`].
    pub fn report(mut self, within: Duration) -> Result<Value, LabError> {
        self.process.wait_for_success(within)?;
        let output = self.process.output();
        let line = output.lines().nth(1).unwrap_or_default();
        serde_json::from_str(line).map_err(|error| LabError::Content {
            path: PathBuf::from(self.process.name()),
            why: format!("no report: {error}: {line:?}"),
        })
    }

    /// Whether it has ended by itself.
    ///
    /// # Errors
    /// [`LabError::Start`] if the system has lost it.
    pub fn has_ended(&mut self) -> Result<bool, LabError> {
        Ok(self.process.status()?.is_some())
    }

    /// Ends it and reads its report.
    ///
    /// # Errors
    /// As [`Self::report`].
    pub fn stop(self) -> Result<Value, LabError> {
        self.process.signal(Signal::SIGTERM);
        self.report(ENDING)
    }
}

/// A frame that arrived at a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When, ns.
    pub time_ns: u64,
    /// The whole frame, tags in place, no FCS.
    pub bytes: Vec<u8>,
}

/// A running capture on a host. Dropping it kills it.
#[derive(Debug)]
pub struct Capture {
    endpoint: Endpoint,
    file: PathBuf,
}

#[derive(Deserialize)]
struct CapturedLine {
    t_ns: u64,
    hex: String,
}

impl Capture {
    /// Starts a capture; `filter` are further arguments of `holdfast-endpoint capture`.
    ///
    /// # Errors
    /// As [`Endpoint::start`].
    pub fn start(
        name: &str,
        host: &Netns,
        filter: &[&str],
        folder: &Path,
    ) -> Result<Self, LabError> {
        let file = folder.join(format!("{name}.frames"));
        let path = file.to_string_lossy().into_owned();
        let arguments = [&["capture", "--json", &path], filter].concat();
        Ok(Self { endpoint: Endpoint::start(name, host, &arguments, folder)?, file })
    }

    /// Ends the capture; all frames that arrived, in order.
    ///
    /// # Errors
    /// As [`Endpoint::stop`]; [`LabError::Content`] too if the capture itself lost frames.
    pub fn stop(self) -> Result<Vec<Captured>, LabError> {
        let Self { endpoint, file } = self;
        let report = endpoint.stop()?;
        let content = |why| LabError::Content { path: file.clone(), why };
        if report.get("socket_drops").and_then(Value::as_u64) != Some(0) {
            return Err(content(format!("the capture lost frames: {report}")));
        }
        let text = fs::read_to_string(&file)
            .map_err(|source| LabError::File { path: file.clone(), source })?;
        let read = |line: &str| {
            let line: CapturedLine =
                serde_json::from_str(line).map_err(|error| content(error.to_string()))?;
            let bytes = crate::frames::from_hex(&line.hex);
            let bytes = bytes.ok_or_else(|| content(format!("not hex: {}", line.hex)))?;
            Ok(Captured { time_ns: line.t_ns, bytes })
        };
        text.lines().map(read).collect()
    }
}
