//! `holdfast-dataplane`: the switch process. It boots alone from its files and forwards whether or
//! not anyone is connected (SPEC 11).
#![forbid(unsafe_code)]

mod boot;
mod config;
mod control;
mod doctor;
mod host;
mod kept_links;
mod link_events;
mod mailbox;
mod opening;
mod ports;
mod publication;
mod report;
mod shedding;
mod switch;
mod worker_thread;

use clap::Parser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// The switch: forwards frames between AF_XDP ports, lossless where the profile says so.
///
/// Example: holdfast-dataplane /etc/holdfast/lab.toml
#[derive(Parser)]
#[command(name = "holdfast-dataplane", version)]
struct Arguments {
    /// The switch file (switch.toml): ports, workers, rings, where the profile is.
    #[arg(required_unless_present = "doctor")]
    config: Option<PathBuf>,

    /// Only read and check both files; say what is wrong and end (exit 0 or 1).
    #[arg(long)]
    check: bool,

    /// Look at the machine, and at what the switch file asks of it, change nothing, and print the
    /// findings as JSON (exit 0, or 1 if a switch can't run).
    #[arg(long, conflicts_with = "check")]
    doctor: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.doctor {
        let report = doctor::examine(arguments.config.as_deref());
        println!("{}", serde_json::json!(report));
        return ExitCode::from(u8::from(!report.can_run));
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("holdfast-dataplane: {}", with_causes(error.as_ref()));
            ExitCode::from(1)
        }
    }
}

/// An error and its causes, each that hasn't been told yet on a line of its own.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}\n  because: {more}");
        }
        cause = error.source();
    }
    text
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    // Before any thread starts, so that a signal during boot is not lost.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let file = arguments.config.as_deref().ok_or("no switch file is named")?;
    if arguments.check {
        println!("{}", config::Config::load(file)?.summary());
        return Ok(());
    }
    let config = config::Config::load_for_boot(file)?;
    start_logging(&config);
    let running = boot::boot(config)?;
    log::info!("forwarding");
    if let Some(signal) = signals.forever().next() {
        log::info!("signal {signal}: draining");
    }
    running.shut_down();
    log::info!("ended; link settings are back");
    Ok(())
}

fn start_logging(config: &config::Config) {
    let level = config.switch.log.level.name();
    let environment = env_logger::Env::default().filter_or("HOLDFAST_LOG", level);
    env_logger::Builder::from_env(environment).format_timestamp_micros().init();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Outer {
        text: &'static str,
        source: io::Error,
    }

    #[test]
    fn a_cause_is_told_once() {
        let with = |text| with_causes(&Outer { text, source: io::Error::other("no such device") });
        assert_eq!(with("veth1: no such device"), "veth1: no such device");
        assert_eq!(with("veth1 fails"), "veth1 fails\n  because: no such device");
    }
}
