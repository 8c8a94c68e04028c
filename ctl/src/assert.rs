//! `holdfast assert`: the counters of a running switch become a verdict for CI.
//!
//! [`sight`] is what was read of the switch, [`checks`] judges it and asks nobody, [`junit`] writes
//! the verdict as JUnit XML.

mod checks;
mod junit;
mod sight;

use crate::cli::assert::AssertArguments;
use crate::cli::Target;
use crate::layout::table;
use crate::{print, CommandError};
use checks::Verdict;
use serde_json::json;
use sight::Sight;
use std::path::Path;

/// Reads, judges, and says so in every form that was asked for.
pub(crate) fn assert(target: &Target, arguments: &AssertArguments) -> Result<(), CommandError> {
    let sight = match Sight::take(target) {
        Ok(sight) => sight,
        Err(error) => {
            if let Some(file) = &arguments.junit {
                write(file, &junit::unknown(&error.to_string())?)?;
            }
            return Err(error);
        }
    };
    let verdict = checks::judge(&sight, arguments);
    if let Some(file) = &arguments.junit {
        write(file, &junit::report(&verdict)?)?;
    }
    let text = if target.json { format!("{}\n", json!(verdict)) } else { text(&verdict) };
    print(&text)?;
    let failed = verdict.failed();
    if failed.is_empty() {
        return Ok(());
    }
    let all = verdict.checks.len();
    let names = failed.join(", ");
    Err(CommandError::Found(format!("{} of {all} checks don't hold: {names}", failed.len())))
}

fn write(file: &Path, text: &str) -> Result<(), CommandError> {
    std::fs::write(file, text)
        .map_err(|source| CommandError::File { path: file.display().to_string(), source })
}

fn text(verdict: &Verdict) -> String {
    let mut out = table(["check", "wanted", "found", "verdict"], 4);
    for check in &verdict.checks {
        let holds = if check.passed { "holds" } else { "FAILS" };
        out.add_row([check.check.as_str(), &check.wanted, &check.found, holds]);
    }
    let held = verdict.checks.len() - verdict.failed().len();
    format!("{out}\n\n{held} of {} checks hold\n", verdict.checks.len())
}
