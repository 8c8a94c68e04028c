//! The demonstration: two hosts send more than the third one's port carries. One class is
//! lossless and arrives whole, the other is not and loses.
#![forbid(unsafe_code)]

mod incast;
mod outcome;
mod show;
mod verdict;

use clap::Parser;
use holdfast_e2e::{binaries, remove_leftovers, Lab, LabError, LabPlan};
use incast::{Incast, PROFILE, SWITCH};
use outcome::Outcome;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};
use verdict::ENOUGH;

/// First part of the names of namespaces and folders.
const PREFIX: &str = "holdfast-demo";
/// How often CTRL-C is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How often progress is printed.
const PROGRESS: Duration = Duration::from_secs(1);
/// Lines of progress between two headers.
const PAGE: u32 = 20;

/// A lossless incast on real frames: h1 and h2 send into h3's port, 1G each, through a switch
/// between network namespaces. Runs until CTRL-C. Exit code 1 if the outcome isn't what it must
/// be.
#[derive(Debug, Parser)]
#[command(name = "holdfast-demo", version)]
struct Arguments {
    /// Send for 10 s, then end
    #[arg(long)]
    once: bool,
    /// Write the outcome to this file as one JSON object
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether all was as it must be.
fn run(arguments: &Arguments) -> Result<bool, LabError> {
    let stop = stop_signal()?;
    for name in remove_leftovers(PREFIX) {
        show::say(&format!("demo: removed {name}: its demo was killed"));
    }
    show::say(&format!("demo: namespaces h1, h2, h3 and the switch's own; profile {PROFILE}"));
    let mut plan = LabPlan::star(3);
    plan.prefix = PREFIX.to_owned();
    let mut lab = Lab::start(&plan)?;
    let (outcome, ran) = match incast(&mut lab, arguments.once, &stop) {
        Ok(outcome) => outcome,
        Err(error) => {
            lab.print_logs();
            return Err(error);
        }
    };
    lab.finish()?;
    if let Some(path) = &arguments.json {
        write_json(&outcome, path)?;
    }
    show::say(&format!("\n{}\n{}", show::table(&outcome), outcome.verdict(ran)));
    Ok(outcome.ok)
}

/// How to look inside while it runs.
fn look_inside(lab: &mut Lab) -> Result<String, LabError> {
    let socket = lab.switch(SWITCH)?.socket().display().to_string();
    let program = binaries::find(binaries::CLI).unwrap_or_else(|_| binaries::CLI.into());
    let command = format!("{} --socket {socket} show pg", program.display());
    Ok(format!("demo: look inside meanwhile, from another terminal:\n  {command}"))
}

/// The outcome, and how long was sent.
fn incast(lab: &mut Lab, once: bool, stop: &AtomicBool) -> Result<(Outcome, Duration), LabError> {
    show::say(&incast::description());
    show::say(&look_inside(lab)?);
    let mut incast = Incast::start(lab)?;
    let begin = Instant::now();
    let mut printed = begin;
    let mut before = None;
    let mut lines = 0;
    while !(stop.load(Ordering::Relaxed) || once && begin.elapsed() >= ENOUGH) {
        sleep(LOOK);
        incast.check()?;
        if printed.elapsed() >= PROGRESS {
            let now = show::Reading::take(lab, printed.elapsed())?;
            if lines % PAGE == 0 {
                show::say(show::HEADER);
            }
            lines += 1;
            if !show::say(&show::progress(begin.elapsed(), &now, before.as_ref())) {
                break;
            }
            before = Some(now);
            printed = Instant::now();
        }
    }
    let ran = begin.elapsed();
    show::say("demo: senders stop, the switch drains");
    let mut outcome = incast.finish(lab)?;
    outcome.judge(ran);
    Ok((outcome, ran))
}

fn stop_signal() -> Result<Arc<AtomicBool>, LabError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|source| LabError::Start { program: "signal handler".to_owned(), source })?;
    }
    Ok(stop)
}

fn write_json(outcome: &Outcome, path: &Path) -> Result<(), LabError> {
    let content = |error: serde_json::Error| LabError::Content {
        path: path.to_path_buf(),
        why: error.to_string(),
    };
    let text = serde_json::to_string_pretty(outcome).map_err(content)?;
    fs::write(path, text + "\n")
        .map_err(|source| LabError::File { path: path.to_path_buf(), source })
}
