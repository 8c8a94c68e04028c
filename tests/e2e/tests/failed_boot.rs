//! A boot that fails leaves the machine as it was: no frame is forwarded, no setting stays changed.

use holdfast_e2e::frames::{Ip, Roce};
use holdfast_e2e::netns::HOST_IFNAME;
use holdfast_e2e::process::{Niceness, Process};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{binaries, in_lab, Lab, LabError, LabPlan, TestResult};
use holdfast_wire::Ecn;
use nix::sys::signal::Signal;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

/// Ends the switch of the lab as an operator would; returns its file and its socket.
fn end_switch(lab: &mut Lab) -> Result<(PathBuf, PathBuf), LabError> {
    let switch = lab.switch("sw")?;
    switch.process().signal(Signal::SIGTERM);
    switch.process().wait_for_success(SOON)?;
    Ok((switch.config().to_path_buf(), switch.socket().to_path_buf()))
}

/// What a switch may change, at its ports and at the hosts behind them.
fn settings(lab: &Lab) -> Result<Vec<String>, LabError> {
    let netdevs = ["h1", "h2"].into_iter().flat_map(|host| [("sw", host), (host, HOST_IFNAME)]);
    netdevs.map(|(owner, ifname)| lab.settings(owner, ifname)).collect()
}

/// What is not as it was `before`.
fn changed(lab: &Lab, before: &[String]) -> Result<Vec<String>, LabError> {
    let after = settings(lab)?;
    let lines = before.iter().zip(&after).flat_map(|(old, new)| old.lines().zip(new.lines()));
    let differ = lines.filter(|(old, new)| old != new);
    Ok(differ.map(|(old, new)| format!("{old} -> {new}")).collect())
}

/// A second switch on ports of its own whose socket is another's must not begin at all.
#[test]
fn a_switch_whose_socket_is_in_use_touches_nothing() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let (config, socket) = end_switch(lab)?;
        let before = settings(lab)?;
        let _other = UnixListener::bind(&socket)?;
        let capture = lab.capture("h2", &[])?;
        let ecn = Ecn::NotEct;
        let frame = Roce { from: 1, to: 2, ip: Ip::V4, dscp: 26, ecn, tags: &[], len: 100, psn: 1 };
        let hex = lab.folder().join("frames.hex");
        std::fs::write(&hex, format!("f : {}\n", holdfast_e2e::frames::to_hex(&frame.bytes())))?;
        let hex = hex.to_string_lossy().into_owned();
        let load = ["replay", "--hex", &hex, "--gap", "500", "--repeat", "1000000"];
        let load = lab.endpoint("h1", &load)?;
        for _ in 0..5 {
            let boot = Command::new(binaries::find(binaries::DATAPLANE)?).arg(&config).output()?;
            let said = String::from_utf8_lossy(&boot.stderr);
            assert_eq!(boot.status.code(), Some(1), "{said}");
            assert!(said.contains("in use by a running switch"), "{said}");
        }
        load.stop()?;
        assert_eq!(capture.stop()?, [], "frames that a refused switch forwarded");
        assert_eq!(changed(lab, &before)?, [""; 0]);
        assert!(socket.exists(), "the other's socket stays");
        Ok(())
    })
}

/// Whatever step of the boot the descriptors run out at: exit code 1, a word why, no trace.
#[test]
fn a_boot_that_runs_out_of_descriptors_ends_in_order() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let (config, socket) = end_switch(lab)?;
        let before = settings(lab)?;
        let mut late = 0;
        for limit in 8.. {
            let mut command = Command::new("prlimit");
            command.arg(format!("--nofile={limit}")).arg(binaries::find(binaries::DATAPLANE)?);
            command.arg(&config);
            let name = format!("boot-{limit}");
            let mut boot = Process::start(&name, Niceness::Switch, &command, lab.folder())?;
            let status = wait_for(&format!("{name} neither is up nor ends"), SOON, || {
                // Up, even if there is no descriptor left for a client.
                let up = boot.log_tail().contains("] forwarding");
                Ok(boot.status()?.map(Some).or(up.then_some(None)))
            })?;
            let Some(status) = status else {
                boot.signal(Signal::SIGTERM);
                boot.wait_for_success(SOON)?;
                break;
            };
            assert_eq!(status.code(), Some(1), "{limit}: {}", boot.log_tail());
            assert_eq!(changed(lab, &before)?, [""; 0], "{limit}: {}", boot.log_tail());
            assert!(!socket.exists(), "{limit}: {}", boot.log_tail());
            let log = boot.log_tail();
            assert!(log.contains("holdfast-dataplane: "), "{limit}: {log}");
            late += u32::from(log.contains("port h2: "));
        }
        assert!(late > 0, "some boot must have failed behind its last port");
        assert_eq!(changed(lab, &before)?, [""; 0]);
        Ok(())
    })
}

/// What only a look at the netdevs can tell is said with the line of the switch file, before memory
/// is reserved for it: 64 rings of the longest kind would be 8 GiB.
#[test]
fn a_netdev_that_does_not_fit_is_named_by_file_line_and_port() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let (config, _) = end_switch(lab)?;
        let before = settings(lab)?;
        let text = std::fs::read_to_string(&config)?;
        let ifname = "ifname = \"h2\"\n";
        let line = text.lines().position(|line| line == ifname.trim_end()).unwrap_or_default() + 1;
        let queues = format!("{ifname}queues = 64\n");
        let rings = "[rings]\nrx = 32768\n";
        let cases = [
            (text.replace(ifname, "ifname = \"nosuch\"\n"), line, "ifname: ", "no such netdev"),
            // Not a line of its own: its section's.
            (text.replace(ifname, "ifname = \"lo\"\n"), line - 3, "mtu: ", "(value 65536, limit "),
            (text.replace(ifname, &queues) + rings, line + 1, "queues: ", "(value 64, limit 1)"),
        ];
        for (text, line, key, what) in cases {
            std::fs::write(&config, text)?;
            let boot = Command::new(binaries::find(binaries::DATAPLANE)?).arg(&config).output()?;
            let said = String::from_utf8_lossy(&boot.stderr);
            assert_eq!(boot.status.code(), Some(1), "{said}");
            let place = format!("{}:{line}: port.h2.{key}", config.display());
            assert!(said.contains(&place) && said.contains(what), "{place} in {said}");
            assert_eq!(changed(lab, &before)?, [""; 0]);
        }
        Ok(())
    })
}
