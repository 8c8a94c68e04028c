//! Why a lab can't be made or a step in it failed.

use holdfast_api::client::ClientError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// Why a lab can't be made or a step in it failed.
#[derive(Debug, Error)]
pub enum LabError {
    /// A program can't be started.
    #[error("{program} can't be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program that was to succeed failed.
    #[error("`{line}` failed ({status}): {output}")]
    Failed {
        /// The command line.
        line: String,
        /// Its exit status.
        status: String,
        /// What it wrote to standard error.
        output: String,
    },
    /// Something didn't happen in time.
    #[error("after {within:?}: {what}")]
    Late {
        /// What didn't happen.
        what: String,
        /// How long it was waited for.
        within: Duration,
    },
    /// A binary isn't built.
    #[error("{path} isn't there; fix: cargo build --workspace --bins, or set HOLDFAST_BIN_DIR")]
    NoBinary {
        /// Where it was expected.
        path: PathBuf,
    },
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file holds something else than expected.
    #[error("{path}: {why}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The switch refused a call or can't be reached.
    #[error(transparent)]
    Control(Box<ClientError>),
    /// An HTTP request has no answer, or one that isn't what was asked for.
    #[error("{url}: {why}")]
    Http {
        /// What was asked for.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// The plan or a step names something that isn't in the lab.
    #[error("there is no {kind} {name:?} in this lab")]
    Unknown {
        /// Host, switch, port or PG.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// Something is still there, or different, after the end.
    #[error("left behind: {0}")]
    LeftBehind(String),
}

impl From<ClientError> for LabError {
    fn from(error: ClientError) -> Self {
        Self::Control(Box::new(error))
    }
}
