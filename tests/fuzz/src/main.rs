//! `holdfast-fuzz`: runs the targets under libFuzzer, two at a time, and tells what came of it.
//!
//! `deploy/fuzz.sh` builds the targets' binaries with coverage and calls this.
#![forbid(unsafe_code)]

mod outcome;
mod run;

use clap::Parser;
use comfy_table::{presets, Table};
use holdfast_fuzz::TARGETS;
use outcome::Outcome;
use serde_json::json;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// Fuzzes every door of the switch: bytes as frames, files, control lines and HTTP.
///
/// Example: deploy/fuzz.sh 1000000 --only wire,http --json fuzz.json
#[derive(Parser)]
#[command(name = "holdfast-fuzz", version)]
struct Arguments {
    /// Inputs of each target.
    #[arg(default_value_t = 10_000_000)]
    inputs: u64,

    /// Only these targets, separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,

    /// The folder of the binaries, built with the feature `libfuzzer` and coverage.
    #[arg(long, required_unless_present_any = ["list", "replay"])]
    binaries: Option<PathBuf>,

    /// Where corpora grow and crashes are kept.
    #[arg(long, default_value = "target/fuzz-corpora")]
    work: PathBuf,

    /// A target ends after so many seconds, with what it has done by then.
    #[arg(long, default_value_t = 7_200)]
    seconds: u64,

    /// Targets that run at once.
    #[arg(long, default_value_t = 2)]
    jobs: usize,

    /// Writes the outcome as JSON into this file; `-` is the standard output.
    #[arg(long)]
    json: Option<PathBuf>,

    /// Prints the names of the targets and ends.
    #[arg(long)]
    list: bool,

    /// Runs one input, as `TARGET FILE`, without libFuzzer.
    #[arg(long, num_args = 2, value_names = ["TARGET", "FILE"])]
    replay: Option<Vec<String>>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("holdfast-fuzz: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether every target took all its inputs without a crash.
fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    if arguments.list {
        TARGETS.iter().for_each(|target| println!("{}", target.name));
        return Ok(true);
    }
    if let Some([name, file]) = arguments.replay.as_deref() {
        let target = find(name)?;
        (target.run)(&std::fs::read(file).map_err(|error| format!("{file}: {error}"))?);
        return Ok(true);
    }
    let targets = match arguments.only.as_slice() {
        [] => TARGETS.to_vec(),
        names => names.iter().map(|name| find(name)).collect::<Result<_, _>>()?,
    };
    let plan = run::Plan {
        inputs: arguments.inputs,
        seconds: arguments.seconds,
        jobs: arguments.jobs.max(1),
        binaries: arguments.binaries.clone().unwrap_or_default(),
        work: arguments.work.clone(),
    };
    let outcomes = run::all(&plan, &targets)?;
    let well = outcomes.iter().all(|outcome| outcome.is_well(arguments.inputs));
    let text = json!({ "inputs": arguments.inputs, "well": well, "targets": outcomes });
    match arguments.json.as_deref() {
        Some(file) if file.as_os_str() == "-" => println!("{text:#}"),
        Some(file) => std::fs::write(file, format!("{text:#}\n"))
            .map_err(|error| format!("{}: {error}", file.display()))?,
        None => {}
    }
    if arguments.json.as_deref().is_none_or(|file| file.as_os_str() != "-") {
        println!("{}", table(&outcomes));
    }
    for crash in outcomes.iter().flat_map(|outcome| &outcome.crashes) {
        println!("crash: {}; see tests/fuzz/README.md for what to do with it", crash.display());
    }
    Ok(well)
}

fn find(name: &str) -> Result<holdfast_fuzz::Target, String> {
    let names = || TARGETS.map(|target| target.name).join(", ");
    let found = TARGETS.iter().find(|target| target.name == name);
    found.copied().ok_or_else(|| format!("there is no target {name:?}; use one of {}", names()))
}

fn table(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_header(["target", "inputs", "seconds", "edges", "corpus", "slowest s", "crashes"]);
    for outcome in outcomes {
        table.add_row([
            outcome.target.to_owned(),
            outcome.inputs.to_string(),
            format!("{:.0}", outcome.seconds),
            outcome.edges.to_string(),
            outcome.corpus.to_string(),
            outcome.slowest_s.to_string(),
            outcome.crashes.len().to_string(),
        ]);
    }
    table
}
