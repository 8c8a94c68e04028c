//! `holdfast doctor` on a lab: it finds what the boot did or will do, and changes nothing.

use holdfast_e2e::netns::HOST_IFNAME;
use holdfast_e2e::{in_lab, LabError, LabPlan, Switch, TestResult};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

fn report(switch: &Switch) -> Result<(Option<i32>, Value), LabError> {
    let file = switch.config().to_string_lossy().into_owned();
    let output = switch.cli(&["doctor", "--switch", &file, "--json"])?;
    Ok((output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default()))
}

fn condition<'a>(report: &'a Value, id: &str) -> &'a Value {
    let all = report["conditions"].as_array();
    all.and_then(|all| all.iter().find(|found| found["id"] == id)).unwrap_or(&Value::Null)
}

#[test]
fn a_lab_is_looked_at_and_left_as_it_is() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        // While it runs, the boot's work is done: nothing is left to switch off.
        let (code, running) = report(lab.switch("sw")?)?;
        assert_eq!(code, Some(0), "{running}");
        let driver = condition(&running, "port h1 driver");
        assert_eq!(driver["what"], "veth: native XDP, frames are copied");
        let peer = condition(&running, "port h1 peer");
        assert_eq!(peer["what"], "nothing to switch off at the veth's other end");
        lab.switch("sw")?.process().signal(Signal::SIGTERM);
        lab.switch("sw")?.process().wait_for_success(SOON)?;
        let before = [lab.settings("sw", "h1")?, lab.settings("h1", HOST_IFNAME)?];
        let (code, stopped) = report(lab.switch("sw")?)?;
        assert_eq!(code, Some(0), "{stopped}");
        let peer = condition(&stopped, "port h1 peer");
        assert!(peer["what"].as_str().is_some_and(|text| text.contains("tx-checksum")), "{peer}");
        let after = [lab.settings("sw", "h1")?, lab.settings("h1", HOST_IFNAME)?];
        assert_eq!(before, after, "looking changes nothing");
        // A netdev that isn't there is missing by name.
        let file = lab.switch("sw")?.config().to_path_buf();
        let text = std::fs::read_to_string(&file)?;
        std::fs::write(&file, text.replace("ifname = \"h2\"", "ifname = \"h9\""))?;
        let (code, wrong) = report(lab.switch("sw")?)?;
        assert_eq!(code, Some(1), "{wrong}");
        assert_eq!(condition(&wrong, "port h2 netdev")["state"], "missing");
        assert_eq!(condition(&wrong, "port h1 netdev")["state"], "ok");
        Ok(())
    })
}
