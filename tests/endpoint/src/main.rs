//! `holdfast-endpoint`: a RoCEv2 host on one netdev, for tests and demos (SPEC 13).
//!
//! Runs in the network namespace it is started in. It prints one JSON line once its sockets are
//! bound, and one JSON object with its report when it ends: by its own end condition, or by
//! SIGTERM or SIGINT.
#![forbid(unsafe_code)]

mod capture;
mod cli;
mod clock;
mod exchange;
mod flow_arg;
mod frame_file;
mod latency;
mod link;
mod replay;
mod report;
mod storm;

use std::process::ExitCode;

use clap::Parser;

/// What can go wrong after the arguments have been understood.
#[derive(Debug, thiserror::Error)]
enum EndpointError {
    #[error(transparent)]
    Link(#[from] link::LinkError),
    #[error(transparent)]
    Flow(#[from] flow_arg::FlowArgError),
    #[error(transparent)]
    FrameFile(#[from] frame_file::FrameFileError),
    #[error(transparent)]
    Report(#[from] report::ReportError),
    #[error(transparent)]
    Storm(#[from] storm::StormError),
    #[error("signal handlers: {0}")]
    Signals(#[source] std::io::Error),
}

fn main() -> ExitCode {
    let result = match cli::Cli::parse().command {
        cli::Command::Send(args) => exchange::send(&args),
        cli::Command::Receive(args) => exchange::receive(&args),
        cli::Command::Run(args) => exchange::run(&args),
        cli::Command::Replay(args) => replay::run(&args),
        cli::Command::Capture(args) => capture::run(&args),
        cli::Command::Storm(args) => storm::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("holdfast-endpoint: {error}");
            ExitCode::FAILURE
        }
    }
}
