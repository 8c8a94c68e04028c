//! `holdfast`: the command line of the switch, a pure client of its control socket (SPEC 11);
//! `plan`, `lint` without `--live`, `import`, `export`, `doctor` and `man` ask no switch.
//!
//! Exit codes: 0 done, 1 refused or found, 2 usage, 3 switch unreachable.
#![forbid(unsafe_code)]

mod assert;
mod change;
mod cli;
mod connect;
mod deadlock;
mod doctor;
mod events;
mod exchange;
mod follow;
mod layout;
mod lint;
mod man;
mod plan;
mod preflight;
mod run;
mod show;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use holdfast_api::client::ClientError;
use holdfast_api::message::ErrorBody;
use holdfast_api::place::NotTheOnly;
use holdfast_plan::PlanError;
use serde_json::json;
use std::io::{self, Write};
use std::process::ExitCode;
use thiserror::Error;

/// Why a command wasn't done.
#[derive(Debug, Error)]
enum CommandError {
    /// The switch refused it, or can't be reached.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// No socket was named, and there is none or several could be meant.
    #[error("{0}")]
    NoSwitch(#[from] NotTheOnly),
    /// The dataplane can't be started.
    #[error("{program} can't be started: {source}; install it beside holdfast or into PATH")]
    NoDataplane {
        /// What was tried.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The dataplane said something else than what was asked.
    #[error("{program} gives no report: {why}; use one of the same release as holdfast")]
    NoReport {
        /// What was asked.
        program: String,
        /// What is wrong with it.
        why: String,
    },
    /// No plan can be made of this, or it doesn't hold.
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// The arguments don't say what is needed, or too much.
    #[error("{0}")]
    Usage(String),
    /// A file can't be written.
    #[error("{path}: can't be written: {source}; check path and rights")]
    File {
        /// The file as it was named.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The linter found errors.
    #[error("{0}")]
    Found(String),
    /// A document, or another system's file, is refused.
    #[error("{0}")]
    Document(exchange::Refusal),
    /// A profile was written, but not with all that was asked of it.
    #[error("{0}")]
    Partly(exchange::Refusal),
    /// Of several switches, some didn't answer.
    #[error("not all switches were asked: {0}")]
    NotAsked(String),
    /// The output can't be written.
    #[error("the output can't be written: {0}")]
    Output(#[from] io::Error),
}

impl CommandError {
    /// 1 refused or found, 2 usage, 3 switch unreachable (SPEC 11).
    const fn exit_code(&self) -> u8 {
        match self {
            Self::Client(ClientError::Refused(_)) | Self::NoDataplane { .. } => 1,
            Self::Document(_) | Self::Partly(_) | Self::Plan(_) => 1,
            Self::File { .. } | Self::Found(_) | Self::Output(_) | Self::NoReport { .. } => 1,
            Self::NoSwitch(NotTheOnly::Several { .. }) | Self::Usage(_) => 2,
            Self::NoSwitch(NotTheOnly::None { .. }) | Self::Client(_) | Self::NotAsked(_) => 3,
        }
    }
}

impl CommandError {
    /// What is said in JSON about a refusal.
    fn body(&self) -> Option<ErrorBody> {
        match self {
            Self::Client(ClientError::Refused(body)) => Some(body.clone()),
            Self::Plan(error) => Some(error.clone().into()),
            _ => None,
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.target.json;
    match dispatch(cli) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough: `holdfast show fdb | head`.
        Err(CommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            if let (true, Some(body)) = (json, error.body()) {
                // A closed output changes nothing about the exit code.
                let _ = print(&format!("{}\n", json!({ "error": body })));
            }
            if let (true, CommandError::Document(refusal)) = (json, &error) {
                let bodies = refusal.bodies();
                let answer = json!({ "error": bodies.first(), "errors": bodies });
                let _ = print(&format!("{answer}\n"));
            }
            eprintln!("holdfast: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn dispatch(cli: Cli) -> Result<(), CommandError> {
    let target = cli.target;
    match cli.command {
        Command::Run { config } => run::run(&config),
        Command::Show(what) => show::show(&target, &what),
        Command::Watermark(what) => change::watermark(&target, what),
        Command::Port(what) => change::port(&target, what),
        Command::Apply { file, dry_run } => change::apply(&target, &file, dry_run),
        Command::Set(what) => change::set(&target, what),
        Command::Fdb(what) => change::fdb(&target, what),
        Command::Assert(arguments) => assert::assert(&target, &arguments),
        Command::Deadlock(arguments) => deadlock::deadlock(&target, &arguments),
        Command::Doctor { switch, all } => doctor::doctor(&target, switch.as_deref(), all),
        Command::Preflight(arguments) => preflight::preflight(&target, &arguments),
        Command::Events(arguments) => events::events(&target, &arguments),
        Command::Trace(arguments) => follow::trace(&target, &arguments),
        Command::Plan(arguments) => plan::plan(&target, &arguments),
        Command::Lint(arguments) => lint::lint(&target, &arguments),
        Command::Import(arguments) => exchange::import(&target, &arguments),
        Command::Export(arguments) => exchange::export(&target, &arguments),
        Command::Man { out } => man::man(out.as_deref()),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "holdfast", &mut script);
            Ok(io::stdout().lock().write_all(&script)?)
        }
    }
}

/// Writes `text` to the standard output as it is.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
