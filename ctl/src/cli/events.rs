//! Arguments of `holdfast events`.

use clap::{Args, ValueEnum};
use holdfast_api::message;

/// How much an entry has to matter.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Severity {
    /// Everything.
    Info,
    /// What somebody should look at.
    Warn,
    /// Losses, and what doesn't work.
    Error,
}

impl From<Severity> for message::Severity {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Info => Self::Info,
            Severity::Warn => Self::Warn,
            Severity::Error => Self::Error,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct EventsArguments {
    /// Go on until interrupted.
    #[arg(long)]
    pub follow: bool,
    /// Only entries that matter at least so much.
    #[arg(long)]
    pub severity: Option<Severity>,
}
