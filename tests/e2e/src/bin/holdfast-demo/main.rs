//! The demonstration: two hosts send more than the third one's port carries. One class is
//! lossless and arrives whole, the other is not and loses.
#![forbid(unsafe_code)]

mod incast;
mod outcome;
mod show;

use clap::Parser;
use holdfast_e2e::{Lab, LabError, LabPlan};
use incast::{Incast, PROFILE};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long `--once` sends.
const ONCE: Duration = Duration::from_secs(10);
/// How often CTRL-C is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How often progress is printed.
const PROGRESS: Duration = Duration::from_secs(1);

/// A lossless incast on real frames: h1 and h2 send into h3's port, 1G each, through a switch
/// between network namespaces. Runs until CTRL-C.
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
        Ok(faults) if faults.is_empty() => ExitCode::SUCCESS,
        Ok(faults) => {
            faults.iter().for_each(|fault| eprintln!("demo: not as it must be: {fault}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns what was not as it must be.
fn run(arguments: &Arguments) -> Result<Vec<String>, LabError> {
    let stop = stop_signal()?;
    println!("demo: network namespaces h1, h2, h3 and the switch's own; profile {PROFILE}");
    let mut plan = LabPlan::star(3);
    plan.prefix = "holdfast-demo".to_owned();
    let mut lab = Lab::start(&plan)?;
    let outcome = incast(&mut lab, arguments.once, &stop);
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            lab.print_logs();
            return Err(error);
        }
    };
    lab.finish()?;
    println!("\n{}", show::table(&outcome));
    if let Some(path) = &arguments.json {
        write_json(&outcome, path)?;
    }
    Ok(if arguments.once { outcome.faults() } else { Vec::new() })
}

fn incast(lab: &mut Lab, once: bool, stop: &AtomicBool) -> Result<outcome::Outcome, LabError> {
    println!("{}", incast::description());
    let mut incast = Incast::start(lab)?;
    let begin = Instant::now();
    let mut printed = begin;
    let mut before = None;
    while !(stop.load(Ordering::Relaxed) || once && begin.elapsed() >= ONCE) {
        sleep(LOOK);
        incast.check()?;
        if printed.elapsed() >= PROGRESS {
            let now = show::Reading::take(lab, printed.elapsed())?;
            println!("{}", show::progress(begin.elapsed(), &now, before.as_ref()));
            before = Some(now);
            printed = Instant::now();
        }
    }
    println!("demo: senders stop, the switch drains");
    incast.finish(lab)
}

fn stop_signal() -> Result<Arc<AtomicBool>, LabError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|source| LabError::Start { program: "signal handler".to_owned(), source })?;
    }
    Ok(stop)
}

fn write_json(outcome: &outcome::Outcome, path: &Path) -> Result<(), LabError> {
    let content = |error: serde_json::Error| LabError::Content {
        path: path.to_path_buf(),
        why: error.to_string(),
    };
    let text = serde_json::to_string_pretty(outcome).map_err(content)?;
    fs::write(path, text + "\n")
        .map_err(|source| LabError::File { path: path.to_path_buf(), source })
}
