//! What a kernel leaves to the hardware of a veth, which has none: VLAN tags and checksums.

use holdfast_e2e::frames::host_mac;
use holdfast_e2e::netns::{Netns, HOST_IFNAME};
use holdfast_e2e::process::run;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, tshark, LabError, LabPlan, TestResult};
use nix::sys::signal::Signal;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

/// The kernel of `host` sends a UDP datagram by an ordinary socket.
fn send_datagram(host: &Netns, peer: &str) -> Result<(), LabError> {
    let script = format!("printf 'a datagram of the kernel' > /dev/udp/{peer}/9");
    run(host.command("bash").args(["-c", &script])).map(|_| ())
}

/// Fault S8: a tag that a NIC takes out of the frame, or leaves to the other end to put in, is one
/// that XDP never sees. [`in_lab`] checks that the settings come back.
#[test]
fn vlan_offloads_are_off_while_the_switch_runs() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let off = |settings: &str, offload: &str| {
            let line = settings.lines().find(|line| line.trim_start().starts_with(offload));
            assert!(line.is_some_and(|line| line.contains(": off")), "{offload}: {line:?}");
        };
        for host in ["h1", "h2"] {
            let port = lab.settings("sw", host)?;
            off(&port, "rx-vlan-offload");
            off(&port, "tx-vlan-offload");
            off(&lab.settings(host, HOST_IFNAME)?, "tx-vlan-offload");
            let notes = lab.switch("sw")?.port(host)?.notes;
            assert!(notes.iter().any(|note| note.contains("vlan")), "it says so: {notes:?}");
        }
        Ok(())
    })
}

/// Fault 22: checksums that the kernel leaves blank for a NIC to fill in arrive filled in.
#[test]
fn checksums_of_plain_sockets_are_complete() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let h1 = lab.host("h1")?;
        let to_mac = host_mac(2).to_string();
        run(h1.ip().args(["addr", "add", "10.0.0.1/24", "dev", HOST_IFNAME]))?;
        run(h1.ip().args(["neigh", "add", "10.0.0.2", "lladdr", &to_mac, "dev", HOST_IFNAME]))?;
        let capture = lab.capture("h2", &[])?;
        send_datagram(lab.host("h1")?, "10.0.0.2")?;
        let switch = lab.switch("sw")?;
        wait_for("the datagram isn't sent", SOON, || {
            Ok((switch.port("h2")?.tx_frames > 0).then_some(()))
        })?;
        let frames = capture.stop()?;
        let rows = tshark::decode(&frames, &["udp.dstport", "udp.checksum.status"], lab.folder())?;
        assert!(rows.contains(&vec!["9".to_owned(), "1".to_owned()]), "1 is good: {rows:?}");
        let notes = lab.switch("sw")?.port("h1")?.notes;
        assert!(notes.iter().any(|note| note.contains("checksum")), "bring-up says so: {notes:?}");
        Ok(())
    })
}

/// A terminal that is closed ends the switch as an operator does; [`in_lab`] checks the settings.
#[test]
fn a_hangup_puts_the_settings_back() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let switch = lab.switch("sw")?.process();
        switch.signal(Signal::SIGHUP);
        Ok(switch.wait_for_success(SOON)?)
    })
}
