//! `holdfast doctor`: has the dataplane look at the machine, and shows what it found. The probing
//! is the dataplane's (`holdfast-dataplane --doctor`): it knows what bring-up will do.

use crate::cli::Target;
use crate::layout::prose_table;
use crate::run::{file, program};
use crate::{print, CommandError};
use holdfast_api::doctor::{Condition, DoctorReport, Health};
use std::process::{Command, Stdio};

/// Shows the findings; with `--json` as the dataplane wrote them.
pub(crate) fn doctor(target: &Target, switch: Option<&str>, all: bool) -> Result<(), CommandError> {
    let program = program();
    let mut command = Command::new(&program);
    command.arg("--doctor").args(switch.map(file)).stderr(Stdio::inherit());
    let name = program.display().to_string();
    let output = command
        .output()
        .map_err(|source| CommandError::NoDataplane { program: name.clone(), source })?;
    let report: DoctorReport = serde_json::from_slice(&output.stdout).map_err(|error| {
        let status = output.status;
        CommandError::NoReport { program: name, why: format!("{error}; it ended with {status}") }
    })?;
    let text = match target.json {
        true => String::from_utf8_lossy(&output.stdout).into_owned(),
        false => text(&report, all),
    };
    print(&text)?;
    if report.can_run {
        return Ok(());
    }
    let missing = report.conditions.iter().filter(|found| found.state == Health::Missing);
    let missing: Vec<&str> = missing.map(|found| found.id.as_str()).collect();
    Err(CommandError::Found(format!("a switch can't run here: missing {}", missing.join(", "))))
}

fn text(report: &DoctorReport, all: bool) -> String {
    let mut out = prose_table(["state", "subject", "what was found"], 3..3);
    for found in &report.conditions {
        out.add_row([found.state.name(), &found.id, &found.what]);
    }
    let mut text = format!("{out}\n");
    for found in report.conditions.iter().filter(|found| all || found.state != Health::Ok) {
        text.push('\n');
        text.push_str(&detail(found));
    }
    let count = |state| report.conditions.iter().filter(|found| found.state == state).count();
    let (degraded, missing) = (count(Health::Degraded), count(Health::Missing));
    let can = if report.can_run { "A switch can run here" } else { "A switch can't run here" };
    text + &format!("\n{can}: {degraded} degraded, {missing} missing.\n")
}

fn detail(found: &Condition) -> String {
    let Condition { id, state, what, why, fix } = found;
    let fix = fix.as_ref().map_or_else(String::new, |fix| format!("  do:   {fix}\n"));
    format!("{id} ({}): {what}\n  why:  {why}\n{fix}", state.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_well_comes_with_why_and_what_to_do() {
        let report = DoctorReport::new(
            "1",
            vec![
                Condition::new("kernel", Health::Ok, "Linux 6.18", "AF_XDP"),
                Condition::new("btf", Health::Degraded, "no BTF", "tools").fix("another kernel"),
            ],
        );
        let shown = text(&report, false);
        assert!(shown.contains("btf (degraded): no BTF\n  why:  tools\n  do:   another kernel\n"));
        assert!(!shown.contains("kernel (ok)"), "{shown}");
        assert!(text(&report, true).contains("kernel (ok): Linux 6.18\n  why:  AF_XDP\n"));
        assert!(shown.ends_with("A switch can run here: 1 degraded, 0 missing.\n"), "{shown}");
    }
}
