//! A switch's bad day, for as long as one likes: everything that can happen to it at random, under
//! load, and at the end the books are balanced (SPEC 3.7).
#![forbid(unsafe_code)]

use clap::Parser;
use holdfast_e2e::unrest::{self, all_quiet, all_up, lost_by_the_spared, resident};
use holdfast_e2e::unrest::{Happening, Unrest};
use holdfast_e2e::{in_lab, Lab, TestResult};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{json, Value};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Events before memory is measured first: what is allocated once is there then.
const WARM_UP: u32 = 150;
/// What the switch process may grow by, KiB: three minutes were seen to take up to 1.5 MiB, and a
/// leak of each event's would be more. `random_flaps` holds 1 MiB over its 200 events.
const GROWTH: u64 = 4096;

/// Flaps, removals, storms, applies, kills and stops at random under lossless load; two hosts are
/// spared and must lose nothing.
///
/// Example: holdfast-soak --minutes 30 --seed 7 --json soak.json
#[derive(Parser)]
struct Arguments {
    /// How long.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    minutes: u32,
    /// What happens: the same in each run of the same seed. Default: another one each time.
    #[arg(long)]
    seed: Option<u64>,
    /// Worker threads of the switch.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    workers: u32,
    /// Write the outcome here as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("holdfast-soak: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> TestResult {
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..));
    println!("{} minutes, {} workers, seed {seed}", arguments.minutes, arguments.workers);
    if let Some(file) = &arguments.json {
        // An older outcome must not be taken for this one's.
        let _ = std::fs::remove_file(file);
    }
    let mut outcome = Value::Null;
    in_lab(&unrest::plan(arguments.workers), |lab| {
        outcome = soak(lab, arguments, seed)?;
        Ok(())
    })?;
    println!("{outcome:#}");
    if let Some(file) = &arguments.json {
        std::fs::write(file, format!("{outcome:#}\n"))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

fn soak(
    lab: &mut Lab,
    arguments: &Arguments,
    seed: u64,
) -> Result<Value, Box<dyn std::error::Error>> {
    let receiver = lab.endpoint("h2", &["receive"])?;
    let flow = "dscp=26,qp=0x11,size=1024,rate=100M";
    let sender = lab.send("h1", "h2", &[flow], &["--seconds", "1000000", "--speed", "1G"])?;
    let mut unrest = Unrest::new(lab, seed)?;
    unrest.warm_up(lab, true)?;
    let length = Duration::from_secs(60 * u64::from(arguments.minutes));
    let bar = ProgressBar::new(length.as_secs());
    bar.set_style(ProgressStyle::with_template("{wide_bar} {elapsed}/{len}s {msg}")?);
    let (begin, mut events, mut before) = (Instant::now(), 0, None);
    while begin.elapsed() < length {
        let happening = unrest.one(lab, &Happening::ALL)?;
        events += 1;
        let lost = lost_by_the_spared(lab)?;
        bar.set_position(begin.elapsed().as_secs());
        bar.set_message(format!("{events} events, {happening:?}"));
        if let Some(lost) = lost {
            return Err(format!("event {events}, {happening:?}: {lost}").into());
        }
        if events == WARM_UP {
            before = Some(resident(lab)?);
        }
    }
    bar.finish();
    unrest.calm();
    all_up(lab)?;
    let sent = sender.stop()?;
    std::thread::sleep(Duration::from_millis(200));
    let received = receiver.stop()?;
    let flows = received["flows_received"].as_array().ok_or("no flows")?;
    let flow = flows.iter().find(|flow| flow["qp"] == 0x11).ok_or("h1's flow is missing")?;
    if flow["received"] != sent["sent"] || flow["lost"] != 0 {
        return Err(format!("h1 sent {}, h2 received {flow}", sent["sent"]).into());
    }
    all_quiet(lab)?;
    let after = resident(lab)?;
    let before = before.unwrap_or(after);
    if after > before + GROWTH {
        return Err(format!("the switch grew from {before} to {after} KiB").into());
    }
    let happened: serde_json::Map<String, Value> =
        unrest.count.iter().map(|(kind, count)| (format!("{kind:?}"), json!(count))).collect();
    Ok(json!({
        "minutes": arguments.minutes,
        "workers": arguments.workers,
        "seed": seed,
        "events": events,
        "happened": happened,
        "frames": sent["sent"],
        "lost": 0,
        "resident_kib": { "before": before, "after": after },
    }))
}
