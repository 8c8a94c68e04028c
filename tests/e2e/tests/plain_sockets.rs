//! Two ordinary hosts with what Linux sets up by itself (fault 22): TCP and UDP of their kernels
//! pass, with good checksums on the wire. [`in_lab`] checks that what bring-up changed is put back.

use holdfast_e2e::frames::host_mac;
use holdfast_e2e::long::slice_or;
use holdfast_e2e::netns::HOST_IFNAME;
use holdfast_e2e::process::{run, Niceness, Process};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, tshark, Lab, LabError, LabPlan, TestResult};
use serde_json::Value;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// Both hosts know each other: nothing but the traffic is on the wire.
fn address(lab: &Lab) -> TestResult {
    for (n, other) in [(1, 2), (2, 1)] {
        let host = lab.host(&format!("h{n}"))?;
        let on = "echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6";
        run(host.command("sh").args(["-c", on]))?;
        let mac = host_mac(other).to_string();
        for (net, length) in [("10.0.0.", "/24"), ("fd00::", "/64")] {
            let own = format!("{net}{n}{length}");
            run(host.ip().args(["addr", "add", &own, "dev", HOST_IFNAME, "nodad"]))?;
            let neighbour = format!("{net}{other}");
            let neighbour = ["neigh", "add", &neighbour, "lladdr", &mac, "dev", HOST_IFNAME];
            run(host.ip().args(neighbour))?;
        }
    }
    Ok(())
}

/// The checksum offload that a Linux host has by default, and that bring-up takes away meanwhile.
fn offload(lab: &Lab, host: &str) -> Result<bool, LabError> {
    let settings = lab.settings(host, HOST_IFNAME)?;
    let line = settings.lines().find(|line| line.contains("tx-checksum-ip-generic"));
    Ok(line.is_some_and(|line| line.contains(": on")))
}

/// iperf3 from h1 to h2; what both ends say.
fn iperf(lab: &Lab, to: &str, more: &[&str]) -> Result<Value, LabError> {
    let mut server = lab.host("h2")?.command("iperf3");
    server.args(["--server", "--one-off", "--bind", to]);
    let mut server = Process::start("iperf3-server", Niceness::Host, &server, lab.folder())?;
    let answers = "ss --numeric --listening --tcp | grep -q :5201";
    wait_for("iperf3 doesn't listen", SOON, || {
        let listening = run(lab.host("h2")?.command("sh").args(["-c", answers]));
        Ok(listening.is_ok().then_some(()))
    })?;
    let mut client = lab.host("h1")?.command("iperf3");
    client.args(["--client", to, "--json", "--connect-timeout", "5000"]).args(more);
    let text = run(&mut client)?;
    server.wait(SOON)?;
    serde_json::from_str(&text)
        .map_err(|error| LabError::Content { path: "iperf3".into(), why: error.to_string() })
}

fn both_protocols_pass(workers: u32) -> TestResult {
    in_lab(&LabPlan::star(2).each(|switch| switch.workers(workers)), |lab| {
        address(lab)?;
        assert!(!offload(lab, "h1")?, "bring-up has switched it off");
        let notes = lab.switch("sw")?.port("h1")?.notes;
        assert!(notes.iter().any(|note| note.contains("checksum")), "and says so: {notes:?}");
        let seconds = slice_or("1", "60");
        for to in ["10.0.0.2", "fd00::2"] {
            // As much as goes, both ways: frames of the kernel's own making, as large as it likes.
            for more in [&["--time", seconds][..], &["--time", seconds, "--reverse"]] {
                let report = iperf(lab, to, more)?;
                let end = &report["end"];
                let bytes = |side: &str| end[side]["bytes"].as_u64().unwrap_or_default();
                let (sent, received) = (bytes("sum_sent"), bytes("sum_received"));
                assert!(received > 1_000_000, "{to} {more:?}: {received} of {sent} bytes");
            }
            let udp = ["--udp", "--bitrate", "20M", "--length", "1200", "--time", seconds];
            let report = iperf(lab, to, &udp)?;
            let sum = &report["end"]["sum"];
            let packets = sum["packets"].as_u64().unwrap_or_default();
            let lost = sum["lost_packets"].as_u64();
            assert!(packets > 1_000 && lost == Some(0), "{to}: {sum}");
        }
        Ok(())
    })
}

#[test]
fn tcp_and_udp_of_default_hosts_pass_one_worker() -> TestResult {
    both_protocols_pass(1)
}

#[test]
fn tcp_and_udp_of_default_hosts_pass_two_workers() -> TestResult {
    both_protocols_pass(2)
}

/// Each segment and datagram that arrives has a good checksum, of data and of acknowledgements.
#[test]
fn every_checksum_on_the_wire_is_good() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        address(lab)?;
        let captures = [lab.capture("h1", &[])?, lab.capture("h2", &[])?];
        for to in ["10.0.0.2", "fd00::2"] {
            iperf(lab, to, &["--bytes", "1M", "--bitrate", "20M"])?;
            let udp = ["--udp", "--bytes", "500K", "--bitrate", "10M", "--length", "1200"];
            iperf(lab, to, &udp)?;
        }
        for capture in captures {
            let frames = capture.stop()?;
            let fields = ["tcp.checksum.status", "udp.checksum.status", "tcp.len", "ipv6.version"];
            let rows = tshark::decode(&frames, &fields, lab.folder())?;
            let count = |place: usize, status: &str| {
                rows.iter().filter(|row| row.get(place).is_some_and(|s| s == status)).count()
            };
            assert!(count(0, "1") > 100, "TCP: {} good of {}", count(0, "1"), rows.len());
            assert_eq!((count(0, "0"), count(1, "0")), (0, 0), "bad checksums");
            assert!(count(3, "6") > 100, "IPv6 too");
        }
        Ok(())
    })
}
