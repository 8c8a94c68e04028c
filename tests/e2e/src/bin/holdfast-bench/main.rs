//! Measures the whole switch against a bare AF_XDP forwarder, and against DPDK's on request, on
//! the same netdevs, in turn, in one run: absolute numbers of a shared machine prove nothing.
#![forbid(unsafe_code)]

mod contender;
mod report;
mod round;

use clap::Parser;
use contender::Contender;
use report::{Report, Sample};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// Frame sizes of the comparison, bytes without FCS.
const SIZES: [u16; 2] = [64, 1024];

/// Forwarding rate and CPU time a frame: holdfast, a bare AF_XDP forwarder, DPDK testpmd.
///
/// Example: holdfast-bench --rounds 5 --peers --json bench.json
#[derive(Parser)]
struct Arguments {
    /// Rounds; in each, every contender runs once at every size.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=50))]
    rounds: u8,
    /// Seconds that are measured of each run.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=60))]
    seconds: u8,
    /// Also DPDK testpmd (Debian package dpdk-dev), io forwarding on af_xdp.
    #[arg(long)]
    peers: bool,
    /// Fail if holdfast forwards less than this share of the bare forwarder's rate at any size.
    #[arg(long, value_name = "RATIO")]
    at_least: Option<f64>,
    /// Write all samples, medians and ratios here as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("holdfast-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut contenders = vec![Contender::Holdfast, Contender::Bare];
    if arguments.peers {
        contenders.push(Contender::Testpmd);
    }
    let mut samples: Vec<Sample> = Vec::new();
    let total = usize::from(arguments.rounds) * SIZES.len() * contenders.len();
    let mut order = contenders.clone();
    for _ in 0..arguments.rounds {
        // Another one first each time: what drifts with the machine meets them all alike.
        order.rotate_left(1);
        for size in SIZES {
            for contender in &order {
                let sample = round::measure(*contender, size, arguments.seconds)?;
                samples.push(sample);
                eprintln!(
                    "[{}/{total}] {:<9} {size:>5} B  {:>9.0} frames/s  {:>5.0} ns CPU a frame",
                    samples.len(),
                    contender.name(),
                    sample.frames_per_second,
                    sample.cpu_ns_per_frame
                );
            }
        }
    }
    let report = Report::new(&samples, &contenders, &SIZES);
    println!("{}", report.table());
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    match arguments.at_least {
        Some(least) if report.least_of_bare(Contender::Holdfast) < least => {
            Err(format!("holdfast is below {least} of the bare forwarder").into())
        }
        _ => Ok(()),
    }
}
