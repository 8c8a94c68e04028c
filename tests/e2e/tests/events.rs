//! The journal of a running switch, as `holdfast events` shows it (SPEC 11).

use holdfast_e2e::process::run;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, Switch, TestResult};
use serde_json::Value;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

/// The journal by the command line, oldest first.
fn journal(switch: &Switch, severity: &str) -> Result<Vec<Value>, LabError> {
    let output = switch.cli(&["events", "--json", "--severity", severity])?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Waits for an entry of this kind; returns the last one.
fn entry(lab: &mut Lab, kind: &str) -> Result<Value, LabError> {
    let switch = lab.switch("sw")?;
    wait_for(&format!("no entry {kind}"), SOON, || {
        let entries = journal(switch, "info")?;
        Ok(entries.into_iter().rev().find(|entry| entry["what"]["kind"] == kind))
    })
}

#[test]
fn a_link_that_goes_down_and_up_is_an_entry_each() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let start = entry(lab, "started")?;
        assert_eq!((&start["seq"], &start["what"]["ports"]), (&1.into(), &2.into()));
        for (way, kind) in [("down", "port_down"), ("up", "port_up")] {
            run(lab.host("h1")?.ip().args(["link", "set", "dev", "eth0", way]))?;
            let entry = entry(lab, kind)?;
            assert_eq!(
                (&entry["subject"], &entry["what"]["port"]),
                (&"port h1".into(), &"h1".into())
            );
            let time = entry["time_ns"].as_u64();
            assert!(time > start["time_ns"].as_u64(), "{entry}");
        }
        let entries = journal(lab.switch("sw")?, "info")?;
        let kinds: Vec<_> =
            entries.iter().filter_map(|entry| entry["what"]["kind"].as_str()).collect();
        assert_eq!(
            kinds,
            ["started", "port_down", "port_up"],
            "nothing else, and h2 never noticed"
        );
        let warned = journal(lab.switch("sw")?, "warn")?;
        assert_eq!(warned.len(), 1, "the link that went down: {warned:?}");
        assert_eq!(warned[0]["what"]["reason"], "link_down");
        Ok(())
    })
}

#[test]
fn a_refused_apply_is_an_entry_with_who_asked() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let wrong = lab.folder().join("wrong.toml");
        std::fs::write(&wrong, "name = 3\n")?;
        let wrong = wrong.to_string_lossy().into_owned();
        let refused = lab.switch("sw")?.cli(&["apply", &wrong])?;
        assert_eq!(refused.status.code(), Some(1));
        let entry = entry(lab, "profile_refused")?;
        assert_eq!((&entry["severity"], &entry["what"]["file"]), (&"warn".into(), &wrong.into()));
        assert_eq!(entry["what"]["by"]["uid"], nix::unistd::getuid().as_raw());
        assert!(
            entry["what"]["error"].as_str().is_some_and(|text| text.contains("name")),
            "{entry}"
        );
        Ok(())
    })
}
