//! `holdfast lint --live` (SPEC 10): what others do to the netdevs of a running switch is found
//! when it is asked for, and what its own profile lacks on a CPU.

use holdfast_api::amount::CellAmount;
use holdfast_api::message::{Call, SetPg, SetReply};
use holdfast_e2e::netns::{Netns, HOST_IFNAME};
use holdfast_e2e::process::run;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, PortPlan, ProfilePlan, SwitchPlan, TestResult};
use serde_json::Value;

/// The exit code and the only report.
fn lint(lab: &mut Lab) -> Result<(Option<i32>, Value), LabError> {
    let output = lab.switch("sw")?.cli(&["lint", "--live", "--json"])?;
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(said["files"].as_array().map(Vec::len), Some(1), "{output:?}");
    Ok((output.status.code(), said["files"][0].clone()))
}

/// The findings of a check: severity and place.
fn found<'a>(report: &'a Value, id: &str) -> Vec<(&'a str, &'a str)> {
    let all = report["findings"].as_array().map_or(&[][..], Vec::as_slice);
    let its = all.iter().filter(|finding| finding["id"] == id);
    its.filter_map(|finding| {
        Some((finding["severity"].as_str()?, finding["where"]["key"].as_str()?))
    })
    .collect()
}

fn ethtool(netns: &Netns, arguments: &[&str]) -> Result<(), LabError> {
    run(netns.command("ethtool").args(arguments)).map(|_| ())
}

/// Somebody switches on again what bring-up had switched off, and off again: [`in_lab`] checks
/// that all settings come back.
#[test]
fn offloads_that_came_back_are_found() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let (_, fresh) = lint(lab)?;
        assert_eq!(
            (&fresh["file"], &fresh["profile"]),
            (&"switch sw".into(), &"veth-lab-1g".into())
        );
        assert_eq!(fresh["unread"], serde_json::json!([]));
        for id in ["H01", "H02", "H03", "H04", "H06", "H08", "P10"] {
            assert_eq!(found(&fresh, id), [], "a fresh switch: {fresh}");
        }
        let sw = lab.switch_netns("sw")?;
        ethtool(sw, &["-K", "h1", "rxvlan", "on", "txvlan", "on"])?;
        let h2 = lab.host("h2")?;
        ethtool(h2, &["-K", HOST_IFNAME, "tx", "on"])?;
        let (code, report) = lint(lab)?;
        assert_eq!(code, Some(1), "{report}");
        assert_eq!(found(&report, "H01"), [("error", "port.h1.offloads")], "{report}");
        assert_eq!(found(&report, "H02"), [("error", "port.h2.peer.offloads")], "{report}");
        ethtool(lab.switch_netns("sw")?, &["-K", "h1", "rxvlan", "off", "txvlan", "off"])?;
        ethtool(lab.host("h2")?, &["-K", HOST_IFNAME, "txvlan", "on"])?;
        let (_, report) = lint(lab)?;
        assert_eq!(found(&report, "H01"), [("error", "port.h2.peer.offloads")], "{report}");
        ethtool(lab.host("h2")?, &["-K", HOST_IFNAME, "tx", "off", "txvlan", "off"])?;
        let (_, report) = lint(lab)?;
        let back = [found(&report, "H01"), found(&report, "H02")];
        assert_eq!(back, [[], []], "{report}");
        Ok(())
    })
}

/// A worker that shares the machine's cores is told; one that gets a core of its own is not.
#[test]
fn a_worker_without_a_core_of_its_own_is_found() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (_, report) = lint(lab)?;
        let shared = if cores > 1 { vec![("warning", "worker.0")] } else { Vec::new() };
        assert_eq!(found(&report, "H05"), shared, "{report}");
        let all = lab.switch("sw")?.process().pid().to_string();
        run(std::process::Command::new("taskset").args(["-a", "-c", "-p", "0", &all]))?;
        let (_, report) = lint(lab)?;
        assert_eq!(found(&report, "H05"), [], "{report}");
        let shown = lab.switch("sw")?.cli(&["show", "host"])?;
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("veth") && shown.contains("1 of 1 bound"), "{shown}");
        Ok(())
    })
}

/// Generic XDP is what the switch file asks for; Headroom is made too small by `set`: both are
/// judged as they are in force and not as a file says.
#[test]
fn generic_xdp_and_headroom_below_what_a_cpu_needs_are_found() -> TestResult {
    let profile = || ProfilePlan::shipped("veth-lab-1g").without_formula();
    let generic = || PortPlan::host(2).with("xdp = \"generic\"");
    let switch = SwitchPlan::new("sw").port(PortPlan::host(1)).port(generic()).profile(profile());
    in_lab(&LabPlan::of(vec![switch]), |lab| {
        let (_, report) = lint(lab)?;
        assert_eq!(found(&report, "H04"), [("warning", "port.h2.xdp")], "{report}");
        let small = CellAmount::Cells(512);
        let port = Some("h1".to_owned());
        let set = SetPg { port, pg: 3, headroom: Some(small), ..SetPg::default() };
        let _: SetReply = lab.switch("sw")?.call(Call::SetPg(set))?;
        let (code, report) = lint(lab)?;
        assert_eq!(code, Some(1), "{report}");
        let errors: Vec<_> = found(&report, "H07")
            .into_iter()
            .filter(|(severity, _)| *severity == "error")
            .collect();
        assert!(errors.contains(&("error", "port.h1.pg.3.headroom")), "{report}");
        Ok(())
    })
}

/// Channels that nobody bound are found when they are added to a veth that has them.
#[test]
fn channels_without_a_socket_are_found() -> TestResult {
    in_lab(&LabPlan::star(1), |lab| {
        // The lab's own veth pairs have one queue: this one has two, and begins with one.
        let sw = lab.switch_netns("sw")?;
        let two = ["numrxqueues", "2", "numtxqueues", "2"];
        run(sw
            .ip()
            .args(["link", "add", "name", "wide"])
            .args(two)
            .args(["type", "veth", "peer", "name", "wide1"])
            .args(two))?;
        ethtool(lab.switch_netns("sw")?, &["-L", "wide", "rx", "1", "tx", "1"])?;
        for end in ["wide", "wide1"] {
            run(lab.switch_netns("sw")?.ip().args(["link", "set", "dev", end, "up"]))?;
        }
        let file = lab.switch("sw")?.config().to_path_buf();
        let netns = lab.switch_netns("sw")?.name().to_owned();
        let port = format!(
            "[[port]]\nname = \"wide\"\nnetns = {netns:?}\nifname = \"wide\"\nspeed = \"1G\"\n"
        );
        let text = std::fs::read_to_string(&file)?;
        std::fs::write(&file, text + &port)?;
        lab.switch("sw")?.restart()?;
        let (_, report) = lint(lab)?;
        assert_eq!(found(&report, "H03"), [], "{report}");
        ethtool(lab.switch_netns("sw")?, &["-L", "wide", "rx", "2"])?;
        let (code, report) = lint(lab)?;
        assert_eq!(found(&report, "H03"), [("error", "port.wide.channels")], "{report}");
        assert_eq!(code, Some(1), "{report}");
        // A netdev that is gone can't be judged, and that is said.
        run(lab.switch_netns("sw")?.ip().args(["link", "del", "dev", "wide"]))?;
        let (_, report) = lint(lab)?;
        let unread = report["unread"][0].as_str().unwrap_or_default();
        assert!(unread.starts_with("port wide: ") && unread.contains("no such netdev"), "{report}");
        Ok(())
    })
}
