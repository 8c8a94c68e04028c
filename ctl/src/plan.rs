//! `holdfast plan`: thresholds for a link, term by term (SPEC 10). Asks no switch.

mod arguments;
mod json;
mod text;

pub(crate) use arguments::PlanArguments;

use crate::cli::Target;
use crate::{print, CommandError};
use holdfast_plan::headroom::{Formula, Given, Need};
use holdfast_plan::propose::{propose, Request};
use std::path::Path;

/// Where `--toml` without a file writes.
const OUTPUT: &str = "-";

/// One formula beside the others.
struct Compared {
    formula: Formula,
    /// `exact`: with a largest frame that is leaving.
    reverse_frame: bool,
    /// The need, or why there is none.
    need: Result<Need, String>,
}

/// `holdfast plan …`
pub(crate) fn plan(target: &Target, arguments: &PlanArguments) -> Result<(), CommandError> {
    let request = arguments.request()?;
    let compared = if arguments.compare { compare(&request) } else { Vec::new() };
    let proposal = propose(request)?;
    if let Some(path) = &arguments.toml {
        if path.as_os_str() == OUTPUT {
            if target.json || arguments.compare {
                let text = "--toml without a file is the whole output; name a file, or leave out \
                            --json and --compare";
                return Err(CommandError::Usage(text.to_owned()));
            }
            return Ok(print(&proposal.document)?);
        }
        write(path, &proposal.document)?;
    }
    if target.json {
        return Ok(print(&format!("{}\n", json::plan(&proposal, &compared)))?);
    }
    Ok(print(&text::plan(&proposal, &compared))?)
}

fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    std::fs::write(path, text)
        .map_err(|source| CommandError::File { path: path.display().to_string(), source })
}

/// Every formula under the same conditions; `exact` in both variants.
fn compare(request: &Request) -> Vec<Compared> {
    let row = |formula: Formula, reverse_frame: bool| {
        let given = Given { reverse_frame, ..request.given };
        let need = match formula.lacks(&given) {
            Some(what) => Err(format!("needs {what}")),
            None => formula.need(&given).map_err(|finding| finding.to_string()),
        };
        Compared { formula, reverse_frame, need }
    };
    let both = |formula: Formula| match formula {
        Formula::Exact => vec![row(formula, false), row(formula, true)],
        _ => vec![row(formula, false)],
    };
    Formula::ALL.into_iter().flat_map(both).collect()
}
