//! Programs that run beside the test and end with it.

use crate::wait::wait_for;
use crate::LabError;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Lines of a log that are worth showing.
const TAIL: usize = 60;

/// Who goes first where all share a few cores: the switch, which real hosts leave its own cores,
/// then the hosts, then whatever else the machine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Niceness {
    /// The switch.
    Switch,
    /// A host.
    Host,
    /// Neither.
    Other,
}

impl Niceness {
    const fn value(self) -> &'static str {
        match self {
            Self::Switch => "-20",
            Self::Host => "-10",
            Self::Other => "0",
        }
    }
}

/// A program in the background. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    output: PathBuf,
    log: PathBuf,
}

impl Process {
    /// Starts `command`, standard output to `NAME.out` and standard error to `NAME.log` in
    /// `folder`. The kernel kills it if this thread dies; CTRL-C doesn't reach it.
    ///
    /// # Errors
    /// [`LabError::File`] for the two files, [`LabError::Start`].
    pub fn start(
        name: &str,
        niceness: Niceness,
        command: &Command,
        folder: &Path,
    ) -> Result<Self, LabError> {
        let (output, log) =
            (folder.join(format!("{name}.out")), folder.join(format!("{name}.log")));
        let create = |path: &Path| {
            File::create(path).map_err(|source| LabError::File { path: path.to_path_buf(), source })
        };
        let mut guarded = Command::new("setpriv");
        guarded
            .args(["--pdeathsig", "KILL", "nice", "-n", niceness.value()])
            .arg(command.get_program())
            .args(command.get_args());
        guarded.stdin(Stdio::null()).stdout(create(&output)?).stderr(create(&log)?);
        let child = guarded.process_group(0).spawn().map_err(|source| LabError::Start {
            program: command.get_program().to_string_lossy().into_owned(),
            source,
        })?;
        Ok(Self { name: name.to_owned(), child, output, log })
    }

    /// Its name in this lab.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written to standard output so far.
    pub fn output(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }

    /// Its exit status, `None` while it runs.
    ///
    /// # Errors
    /// [`LabError::Start`] if the system has lost it.
    pub fn status(&mut self) -> Result<Option<ExitStatus>, LabError> {
        let lost = |source| LabError::Start { program: self.name.clone(), source };
        self.child.try_wait().map_err(lost)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        // It may just have ended: then there is nothing to tell it.
        let _ = i32::try_from(self.child.id()).map(|pid| kill(Pid::from_raw(pid), signal));
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`LabError::Late`].
    pub fn wait(&mut self, within: Duration) -> Result<ExitStatus, LabError> {
        let what = format!("{} still runs; its log:\n{}", self.name, self.log_tail());
        wait_for(&what, within, || self.status())
    }

    /// Waits for its end and insists on exit code 0.
    ///
    /// # Errors
    /// [`LabError::Late`], [`LabError::Failed`] with the end of its log.
    pub fn wait_for_success(&mut self, within: Duration) -> Result<(), LabError> {
        let status = self.wait(within)?;
        if status.success() {
            return Ok(());
        }
        Err(LabError::Failed {
            line: self.name.clone(),
            status: status.to_string(),
            output: self.log_tail(),
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end and returns its standard output.
///
/// # Errors
/// [`LabError::Start`]; [`LabError::Failed`] if its exit code isn't 0.
pub fn run(command: &mut Command) -> Result<String, LabError> {
    let line = || {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    };
    let shown = line();
    let done = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| LabError::Start { program: shown.clone(), source })?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(LabError::Failed {
        line: shown,
        status: done.status.to_string(),
        output: String::from_utf8_lossy(&done.stderr).trim().to_owned(),
    })
}
