//! Arguments of `holdfast set`: thresholds of the running profile.

use clap::{Args, Subcommand, ValueEnum};
use holdfast_api::amount::{CellAmount, XoffAmount};
use holdfast_api::profile_doc::{MarkAtDoc, NotEctDoc, XonModeDoc};

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum XonMode {
    /// Resume at XOFF - XON (AC5P).
    Offset,
    /// Resume at XON.
    Absolute,
}

impl From<XonMode> for XonModeDoc {
    fn from(mode: XonMode) -> Self {
        match mode {
            XonMode::Offset => Self::Offset,
            XonMode::Absolute => Self::Absolute,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MarkAt {
    /// Before the frame leaves.
    Dequeue,
    /// After it joined.
    Enqueue,
}

impl From<MarkAt> for MarkAtDoc {
    fn from(at: MarkAt) -> Self {
        match at {
            MarkAt::Dequeue => Self::Dequeue,
            MarkAt::Enqueue => Self::Enqueue,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum NotEct {
    /// Drop it with the marking probability.
    Drop,
    /// Let it pass.
    Pass,
}

impl From<NotEct> for NotEctDoc {
    fn from(what: NotEct) -> Self {
        match what {
            NotEct::Drop => Self::Drop,
            NotEct::Pass => Self::Pass,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Set {
    /// Change thresholds of a PG. Amounts: 4096 (cells), 38400B, 40KiB, 55% (of Q_limit).
    ///
    /// Example: holdfast set pg 3 --port h1 --xoff 5000 --xon 1024
    #[command(verbatim_doc_comment)]
    Pg(SetPgArguments),
    /// Change the marking line of a queue.
    ///
    /// Example: holdfast set wred 3 --kmin 128 --kmax 1024 --pmax 0.1
    /// Example: holdfast set wred 3 --port h2 --off
    #[command(verbatim_doc_comment)]
    Wred(SetWredArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SetPgArguments {
    /// The PG, 0..7.
    #[arg(value_parser = clap::value_parser!(u8).range(0..=7))]
    pub pg: u8,
    /// Only at this port; default: at all where it is lossless.
    #[arg(long)]
    pub port: Option<String>,
    /// When to pause: an amount, or `limit`.
    #[arg(long)]
    pub xoff: Option<XoffAmount>,
    /// When to resume.
    #[arg(long)]
    pub xon: Option<CellAmount>,
    /// How XON is read.
    #[arg(long)]
    pub xon_mode: Option<XonMode>,
    /// Least resume level.
    #[arg(long)]
    pub xon_floor: Option<CellAmount>,
    /// Size for frames in flight.
    #[arg(long)]
    pub headroom: Option<CellAmount>,
    /// Size reserved to the PG.
    #[arg(long)]
    pub guaranteed: Option<CellAmount>,
    /// Static limit of what it may borrow.
    #[arg(long, conflicts_with = "alpha")]
    pub limit: Option<CellAmount>,
    /// Dynamic limit 2^N times the free pool, N in -8..7.
    #[arg(long, allow_hyphen_values = true, value_name = "N")]
    pub alpha: Option<i8>,
}

#[derive(Debug, Args)]
pub(crate) struct SetWredArguments {
    /// The queue, 0..7.
    #[arg(value_parser = clap::value_parser!(u8).range(0..=7))]
    pub queue: u8,
    /// Only at this port; default: at all.
    #[arg(long)]
    pub port: Option<String>,
    /// No marking on this queue.
    #[arg(long)]
    pub off: bool,
    /// Nothing is marked below this depth.
    #[arg(long)]
    pub kmin: Option<CellAmount>,
    /// Everything is marked from this depth on.
    #[arg(long)]
    pub kmax: Option<CellAmount>,
    /// Probability at kmax, 0..1.
    #[arg(long, value_parser = probability)]
    pub pmax: Option<f64>,
    /// Where the depth is taken.
    #[arg(long)]
    pub mark_at: Option<MarkAt>,
    /// Frames without ECT on a lossy queue.
    #[arg(long)]
    pub not_ect: Option<NotEct>,
    /// Average the depth with weight 1/2^N, 0 for none.
    #[arg(long, value_name = "N")]
    pub ewma_weight: Option<u8>,
}

/// A probability; JSON has no other numbers than finite ones.
fn probability(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| "write a probability from 0 to 1, such as 0.2".to_owned())
}
