//! SPEC 14, rows of faults that no other file has: a wrong profile, a late worker, a full disk, a
//! netdev or netns that vanishes, SIGTERM. `tests/INDEX.md` has the table of all rows.

use holdfast_api::message::{Call, PortState, ProfileReply, ShowProfile};
use holdfast_e2e::endpoint::Endpoint;
use holdfast_e2e::long::slice_or;
use holdfast_e2e::lossless::{assert_exercised, assert_same_psn};
use holdfast_e2e::netns::{Netns, HOST_IFNAME};
use holdfast_e2e::process::run;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::waits::Waits;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, PortPlan, SwitchPlan, TestResult};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(60);

fn in_force(lab: &mut Lab) -> Result<String, LabError> {
    let reply: ProfileReply = lab.switch("sw")?.call(Call::ShowProfile(ShowProfile {}))?;
    Ok(reply.sha256)
}

/// Lossless frames of h1 and h2 to h3, of links of 1G.
fn load(lab: &mut Lab, rate: &str) -> Result<(Endpoint, Vec<Endpoint>), LabError> {
    load_of(lab, "1G", rate)
}

/// The same, of links of this speed: by it hosts know how long a pause lasts.
fn load_of(lab: &mut Lab, speed: &str, rate: &str) -> Result<(Endpoint, Vec<Endpoint>), LabError> {
    let receiver = lab.endpoint("h3", &["receive", "--until-idle", "3000"])?;
    let mut senders = Vec::new();
    for (host, qp) in [("h1", 0x21), ("h2", 0x22)] {
        let flow = format!("dscp=26,priority=3,qp={qp},size=1024,rate={rate}");
        senders.push(lab.send(host, "h3", &[&flow], &["--seconds", "300", "--speed", speed])?);
    }
    Ok((receiver, senders))
}

/// Ends it when all has left; what the senders say, and the receiver.
fn end(
    lab: &mut Lab,
    (receiver, senders): (Endpoint, Vec<Endpoint>),
) -> Result<(Vec<Value>, Value), LabError> {
    let sent = senders.into_iter().map(Endpoint::stop).collect::<Result<_, _>>()?;
    wait_for("not all leaves", SOON, || {
        let (queue, h1) = (lab.switch("sw")?.queue("h3", 3)?, lab.switch("sw")?.port("h1")?);
        Ok((queue.occupancy == 0 && h1.rx_backlog == 0).then_some(()))
    })?;
    Ok((sent, receiver.report(SOON)?))
}

/// Whatever is wrong: exit 1, the place named, the old profile in force, and nothing lost by it.
#[test]
fn a_wrong_profile_is_refused_as_a_whole() -> TestResult {
    in_lab(&LabPlan::star(3), |lab| {
        let hash = in_force(lab)?;
        let good = fs::read_to_string(lab.switch("sw")?.profile_file())?;
        let with = |from: &str, to: &str| {
            assert!(good.contains(from), "{from}");
            good.replacen(from, to, 1).into_bytes()
        };
        let wrong: [(Vec<u8>, &str); 9] = [
            (with("xoff = 4096", "xof = 4096"), "xof"),
            (with("xoff = 4096", "xoff = \"4096 parsecs\""), "xoff"),
            (with("xoff = 4096", "xoff = 999999"), "xoff"),
            (with("headroom = 3072", "headroom = 1"), "headroom"),
            (with("pmax = 0.2", "pmax = 2.5"), "pmax"),
            (with("[pg.3]", "[pg.9]"), "pg"),
            (with("size = 16384", "size = -1"), "size"),
            (with("[queue.3.wred]", "[queue.3.wred"), ":"),
            (vec![0xff, 0, 0xfe, b'='], "profile"),
        ];
        let load = load(lab, "50M")?;
        for (number, (text, place)) in wrong.into_iter().enumerate() {
            let file = lab.folder().join(format!("wrong-profile-{number}.toml"));
            fs::write(&file, text)?;
            let path = file.to_string_lossy().into_owned();
            let output = lab.switch("sw")?.cli(&["apply", &path])?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{number}: {said}");
            assert!(said.contains(place), "{number} doesn't name {place}: {said}");
            assert_eq!(in_force(lab)?, hash, "{number}");
        }
        let (sent, received) = end(lab, load)?;
        sent.iter().try_for_each(|report| assert_same_psn(report, &received))?;
        Ok(())
    })
}

/// The whole switch stands still, again and again, for a part of the stall that `show ports` has;
/// hosts that obey lose nothing. A machine that stalls it for longer shows nothing, and is tried
/// again.
#[test]
fn a_late_worker_loses_nothing_within_the_stated_stall() -> TestResult {
    for workers in [1, 2] {
        let port = |n| PortPlan::host(n).speed("100M");
        let switch = SwitchPlan::new("sw").port(port(1)).port(port(2));
        let switch = switch.port(PortPlan::host(3).speed("50M")).workers(workers);
        let plan = LabPlan::of(vec![switch]);
        let mut shown = false;
        for _ in 0..3 {
            in_lab(&plan, |lab| {
                shown = stalled(lab)?;
                Ok(())
            })?;
            if shown {
                break;
            }
        }
        if !shown {
            println!("{workers} workers: the machine stalled them for longer than is promised");
        }
    }
    Ok(())
}

fn stalled(lab: &mut Lab) -> Result<bool, Box<dyn std::error::Error>> {
    let survived = Duration::from_nanos(lab.switch("sw")?.port("h1")?.stall_survived_ns);
    let load = load_of(lab, "100M", "100M")?;
    wait_for("h1 isn't paused", SOON, || {
        Ok((lab.switch("sw")?.pg("h1", 3)?.xoff_edges > 0).then_some(()))
    })?;
    let waits = Waits::watch(lab)?;
    let mut longest = Duration::ZERO;
    for _ in 0..slice_or(20, 300) {
        let begin = Instant::now();
        lab.switch("sw")?.process().signal(Signal::SIGSTOP);
        sleep(survived / 4);
        lab.switch("sw")?.process().signal(Signal::SIGCONT);
        longest = longest.max(begin.elapsed());
        sleep(survived / 4);
    }
    let (sent, received) = end(lab, load)?;
    let longest = longest + waits.longest();
    println!("stood still for {longest:?} at most, {survived:?} survived");
    if longest > survived {
        return Ok(false);
    }
    sent.iter().try_for_each(|report| assert_same_psn(report, &received))?;
    for port in ["h1", "h2"] {
        assert_exercised(lab, port, 3)?;
    }
    Ok(true)
}

/// Beyond it what is lost is counted as overrun and as violations, and the switch goes on.
#[test]
fn beyond_the_stall_each_loss_is_counted() -> TestResult {
    in_lab(&LabPlan::star(3), |lab| {
        let load = load(lab, "max")?;
        wait_for("nothing goes", SOON, || {
            Ok((lab.switch("sw")?.port("h3")?.tx_frames > 1_000).then_some(()))
        })?;
        let stopped = lab.switch("sw")?.process();
        stopped.signal(Signal::SIGSTOP);
        sleep(Duration::from_secs(1));
        stopped.signal(Signal::SIGCONT);
        let (sent, received) = end(lab, load)?;
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let all: u64 = sent.iter().map(|report| number(&report["sent"])).sum();
        let (mut overrun, mut told) = (0, 0);
        for port in ["h1", "h2"] {
            let port = lab.switch("sw")?.port(port)?;
            (overrun, told) = (overrun + port.receive_overrun, told + port.lossless_violations);
        }
        assert_eq!(received["socket_drops"], 0);
        let lost = all - number(&received["received"]);
        assert!(lost > 0 && lost <= overrun && overrun <= told, "{lost}, {overrun}, {told}");
        Ok(())
    })
}

/// A file system of its own on a folder, and full; it goes with this value.
struct FullDisk(PathBuf);

impl FullDisk {
    fn over(folder: PathBuf) -> Result<Self, LabError> {
        let options = ["-t", "tmpfs", "-o", "size=4k", "tmpfs"];
        run(Command::new("mount").args(options).arg(&folder))?;
        let disk = Self(folder);
        // As much as there is; that it ends by an error is what is wanted.
        let _ = fs::write(disk.0.join("filler"), vec![0; 1 << 20]);
        Ok(disk)
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        // The folder goes with the lab; a mount that is gone already needs nothing.
        let _ = run(Command::new("umount").arg("--lazy").arg(&self.0));
    }
}

/// Profiles are applied, said not to be kept, and no frame is lost.
#[test]
fn a_full_disk_costs_no_frame() -> TestResult {
    in_lab(&LabPlan::star(3), |lab| {
        let state = lab.switch("sw")?.socket().with_extension("state");
        let good = fs::read_to_string(lab.switch("sw")?.profile_file())?;
        let load = load(lab, "100M")?;
        let disk = FullDisk::over(state)?;
        for round in 0..slice_or(20, 100) {
            let text = good.replacen("pmax = 0.2", ["pmax = 0.3", "pmax = 0.2"][round % 2], 1);
            let file = lab.folder().join("other-profile.toml");
            fs::write(&file, text)?;
            let before = in_force(lab)?;
            let path = file.to_string_lossy().into_owned();
            let output = lab.switch("sw")?.cli(&["apply", &path])?;
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success() && said.contains("not kept"), "{said}");
            assert_ne!(in_force(lab)?, before, "it is in force all the same");
        }
        let (sent, received) = end(lab, load)?;
        sent.iter().try_for_each(|report| assert_same_psn(report, &received))?;
        drop(disk);
        Ok(())
    })
}

/// A host's namespace, or its netdev, is deleted while the port is bound: the port is down and says
/// so, and the others lose nothing.
fn vanishes(delete: fn(&Lab) -> Result<(), LabError>) -> TestResult {
    // Not by `in_lab`, which looks at every netdev afterwards.
    let mut lab = Lab::start(&LabPlan::star(4).each(|switch| switch.workers(2)))?;
    let load = load(&mut lab, "50M")?;
    let doomed =
        lab.send("h4", "h3", &["dscp=0,qp=0x44,size=512,rate=50M"], &["--seconds", "60"])?;
    wait_for("h4 doesn't send", SOON, || {
        Ok((lab.switch("sw")?.port("h4")?.rx_frames > 100).then_some(()))
    })?;
    drop(doomed);
    delete(&lab)?;
    wait_for("the port isn't down", SOON, || {
        let port = lab.switch("sw")?.port("h4")?;
        Ok((port.state == PortState::Down && port.down_reason.is_some()).then_some(()))
    })?;
    // What is sent to it meanwhile is dropped, and counted as that.
    let lost = lab.send("h1", "h4", &["dscp=0,qp=0x45,size=512,rate=10M,count=100"], &[])?;
    lost.report(SOON)?;
    wait_for("what is sent there isn't counted", SOON, || {
        let ports = lab.switch("sw")?.ports()?.ports;
        let down = ports.iter().filter_map(|port| port.drops.get("port_down")).sum::<u64>();
        let flooded = ports.iter().map(|port| port.flooded).sum::<u64>();
        Ok((down + flooded >= 100).then_some(()))
    })?;
    let (sent, received) = end(&mut lab, load)?;
    sent.iter().try_for_each(|report| assert_same_psn(report, &received))?;
    let process = lab.switch("sw")?.process();
    process.signal(Signal::SIGTERM);
    Ok(process.wait_for_success(SOON)?)
}

#[test]
fn a_netns_that_vanishes_takes_only_its_port_down() -> TestResult {
    vanishes(|lab| Netns::remove(lab.host("h4")?.name()))
}

#[test]
fn a_netdev_that_vanishes_takes_only_its_port_down() -> TestResult {
    vanishes(|lab| run(lab.host("h4")?.ip().args(["link", "del", "dev", HOST_IFNAME])).map(|_| ()))
}

/// XON for what is paused, what is queued leaves for up to a second, exit 0; [`in_lab`] checks that
/// the settings come back.
#[test]
fn sigterm_resumes_what_is_paused_and_drains() -> TestResult {
    for workers in [1, 2] {
        let switch = SwitchPlan::new("sw").port(PortPlan::host(1)).port(PortPlan::host(2));
        let switch = switch.port(PortPlan::host(3).speed("100M")).workers(workers);
        in_lab(&LabPlan::of(vec![switch]), |lab| {
            let captures = [
                lab.capture("h1", &["--ethertype", "0x8808"])?,
                lab.capture("h2", &["--ethertype", "0x8808"])?,
            ];
            let received = lab.endpoint("h3", &["receive"])?;
            lab.switch("sw")?.hold("h3")?;
            let (receiver, senders) = load(lab, "200M")?;
            drop(receiver);
            for port in ["h1", "h2"] {
                wait_for("it isn't paused", SOON, || {
                    Ok(lab.switch("sw")?.pg(port, 3)?.xoff.then_some(()))
                })?;
            }
            drop(senders);
            lab.switch("sw")?.release("h3")?;
            let process = lab.switch("sw")?.process();
            process.signal(Signal::SIGTERM);
            process.wait_for_success(SOON)?;
            for capture in captures {
                let frames = capture.stop()?;
                let last = frames.last().ok_or("no pause came")?;
                // The vector and the time of priority 3.
                assert_eq!((last.bytes[17], &last.bytes[24..26]), (1 << 3, &[0, 0][..]), "XON");
            }
            let received = received.stop()?;
            assert!(received["received"].as_u64() > Some(100), "it drained: {received}");
            Ok(())
        })?;
    }
    Ok(())
}
