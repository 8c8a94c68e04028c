//! Runs the binaries of the targets: some at once, each over a copy of its corpus that may grow.

use crate::outcome::Outcome;
use holdfast_fuzz::Target;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An input that takes longer is a crash.
const SLOWEST_SECONDS: u32 = 20;
/// Memory beyond which an input is a crash, MiB.
const MEMORY_MIB: u32 = 2048;
/// How often a target says how far it is.
const PULSE: Duration = Duration::from_secs(15);

/// What is to be run, and where.
pub(crate) struct Plan {
    /// Inputs of each target.
    pub(crate) inputs: u64,
    /// A target ends after so many seconds.
    pub(crate) seconds: u64,
    /// Targets at once.
    pub(crate) jobs: usize,
    /// The folder of the binaries.
    pub(crate) binaries: PathBuf,
    /// Where corpora grow, logs are written and crashes are kept.
    pub(crate) work: PathBuf,
}

/// Runs all targets; outcomes in the order of the targets.
///
/// # Errors
/// What keeps one from being run at all.
pub(crate) fn all(plan: &Plan, targets: &[Target]) -> io::Result<Vec<Outcome>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.min(targets.len()) {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = one(plan, target);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut outcomes = done.into_iter().collect::<io::Result<Vec<Outcome>>>()?;
    let place = |outcome: &Outcome| targets.iter().position(|t| t.name == outcome.target);
    outcomes.sort_by_key(place);
    Ok(outcomes)
}

fn one(plan: &Plan, target: &Target) -> io::Result<Outcome> {
    let (corpus, crashes) = (plan.work.join(target.name), plan.work.join("crashes"));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&crashes)?;
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let prefix = crashes.join(format!("{}-", target.name));
    let mut command = Command::new(plan.binaries.join(target.name));
    command
        .args([&corpus, &seeds])
        .arg(format!("-runs={}", plan.inputs))
        .arg(format!("-max_total_time={}", plan.seconds))
        .arg(format!("-max_len={}", target.max_len))
        .arg(format!("-timeout={SLOWEST_SECONDS}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-artifact_prefix={}", prefix.display()))
        .args(["-print_final_stats=1", "-reload=0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let begin = Instant::now();
    let mut child = command.spawn().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("{}: {error}", plan.binaries.join(target.name).display()),
        )
    })?;
    let mut outcome = Outcome { target: target.name, ..Outcome::default() };
    let mut log = File::create(plan.work.join(format!("{}.log", target.name)))?;
    let mut told = begin;
    for line in child.stderr.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
        let line = line?;
        writeln!(log, "{line}")?;
        outcome.read(&line);
        if told.elapsed() >= PULSE {
            told = Instant::now();
            eprintln!("{}: {} inputs, {} edges", target.name, outcome.inputs, outcome.edges);
        }
    }
    outcome.ended_well = child.wait()?.success();
    outcome.seconds = begin.elapsed().as_secs_f64();
    outcome.crashes = kept(&crashes, target.name)?;
    let Outcome { inputs, seconds, crashes, .. } = &outcome;
    eprintln!(
        "{}: ended, {inputs} inputs in {seconds:.0} s, {} crashes",
        target.name,
        crashes.len()
    );
    Ok(outcome)
}

/// Inputs of a target that were kept because they crashed, also in a run before.
fn kept(folder: &Path, target: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let kind = name.as_deref().and_then(|name| name.strip_prefix(target)?.strip_prefix('-'));
        if kind.is_some_and(|kind| !kind.starts_with("slow-unit")) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
