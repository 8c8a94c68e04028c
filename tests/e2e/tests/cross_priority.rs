//! A pause of one class holds that class alone (fault 6): what comes in for the others goes on, and
//! nobody upstream is told to pause them.

use holdfast_e2e::frames::{Ip, Roce};
use holdfast_e2e::long::slice_or;
use holdfast_e2e::lossless::{assert_exercised, assert_same_psn, evidence};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabPlan, PortPlan, ProfilePlan, SwitchPlan, TestResult};
use holdfast_wire::Ecn;
use serde_json::{json, Value};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
/// A lossy class beside those that are looked at.
const REFERENCE: u8 = 0;
const MAC_CONTROL: [&str; 2] = ["--ethertype", "0x8808"];

/// A worker that is late pauses all lossless classes (SPEC 4.3), and that is not what is looked at:
/// it may be late by most of its RX ring.
const LATE_WORKER: &str = "[port.h1.pfc]\nrx_backlog_mark = 1536\n\n\
                           [port.h2.pfc]\nrx_backlog_mark = 1536\n";

fn flow(class: u8, qp: u16, rate: &str) -> String {
    format!("dscp={},priority={class},qp={qp},size=1024,rate={rate}", 8 * class)
}

/// Frames of the blocked class that come after its pause all the same: they use Headroom.
fn under_way_of(from: u8, class: u8) -> Vec<Vec<u8>> {
    let (ip, dscp, ecn) = (Ip::V4, 8 * class, Ecn::Ect0);
    let frame = |psn| Roce { from, to: 3, ip, dscp, ecn, tags: &[], len: 1024, psn }.bytes();
    (0..20).map(frame).collect()
}

/// A and B send the blocked class and others to C, which pauses the blocked one without end.
fn only_the_blocked_class_is_paused(blocked: u8, free: &[u8], workers: u32) -> TestResult {
    let lossless = [&[blocked], free].concat();
    let profile = ProfilePlan::classes(&lossless).with(LATE_WORKER);
    let plan = LabPlan::star(3).each(|switch| switch.profile(profile.clone()).workers(workers));
    let seconds = slice_or("3", "10");
    // Of the reported plan where there are its two classes.
    let rate = if free.len() == 1 { "40M" } else { "10M" };
    in_lab(&plan, |lab| {
        let captures = [lab.capture("h1", &MAC_CONTROL)?, lab.capture("h2", &MAC_CONTROL)?];
        let receiver = lab.endpoint("h3", &["receive"])?;
        let priorities = blocked.to_string();
        let storm = ["storm", "--priorities", &priorities, "--speed", "1G", "--seconds", seconds];
        let storm = lab.endpoint("h3", &[&storm[..], &["--xon"]].concat())?;
        let mut senders = Vec::new();
        for (number, host) in ["h1", "h2"].into_iter().enumerate() {
            let qp = |class: u8| 0x100 * (number as u16 + 1) + u16::from(class);
            let classes = lossless.iter().chain([&REFERENCE]);
            let flows: Vec<_> = classes.map(|class| flow(*class, qp(*class), rate)).collect();
            let flows: Vec<_> = flows.iter().map(String::as_str).collect();
            senders.push(lab.send(host, "h3", &flows, &["--seconds", "120", "--speed", "1G"])?);
        }
        let switch = lab.switch("sw")?;
        for port in ["h1", "h2"] {
            wait_for("the blocked class isn't paused upstream", SOON, || {
                Ok(switch.pg(port, blocked)?.xoff.then_some(()))
            })?;
        }
        for (host, n) in [("h1", 1), ("h2", 2)] {
            lab.inject(host, &under_way_of(n, blocked))?;
        }
        storm.report(SOON)?;
        // The pause is over: what waits for it leaves, and both are let go.
        wait_for("the senders aren't let go", SOON, || {
            let switch = lab.switch("sw")?;
            Ok((!switch.pg("h1", blocked)?.xoff && !switch.pg("h2", blocked)?.xoff).then_some(()))
        })?;
        let mut reports = Vec::new();
        for sender in senders {
            reports.push(sender.stop()?);
        }
        std::thread::sleep(Duration::from_millis(300));
        let received = receiver.stop()?;
        for (report, port) in reports.iter().zip(["h1", "h2"]) {
            assert_same_psn(report, &received)?;
            assert_held_alone(lab, port, (blocked, free), report)?;
        }
        for capture in captures {
            let frames = capture.stop()?;
            assert!(!frames.is_empty(), "the blocked class is paused upstream");
            for frame in frames {
                assert_eq!(frame.bytes[16..18], [0, 1 << blocked], "class-enable vector");
            }
        }
        Ok(())
    })
}

/// The blocked class was paused and lost nothing; the others were never paused, and each sent as
/// much as the reference, within 1 %.
fn assert_held_alone(
    lab: &mut Lab,
    port: &str,
    (blocked, free): (u8, &[u8]),
    report: &Value,
) -> TestResult {
    let flows = report["flows_sent"].as_array().ok_or("no flows")?;
    let sent = |class: u8| {
        let of = |flow: &&Value| flow["qp"].as_u64().map(|qp| qp & 0xff);
        let flow = flows.iter().find(|flow| of(flow) == Some(class.into()));
        flow.and_then(|flow| flow["sent"].as_u64()).unwrap_or_default()
    };
    // A class that nothing can pause, with the same rate: what the machine lets the sender send.
    let due = sent(REFERENCE);
    for class in free {
        let sent = sent(*class);
        assert!(sent.abs_diff(due) * 100 <= due, "class {class}: {sent} frames, due {due}");
        let found = evidence(lab, port, *class)?;
        assert_eq!((found.xoff, found.violations), (0, 0), "{port} class {class}");
        let class = usize::from(*class);
        assert_eq!((&report["xoff"][class], &report["pause_ns"][class]), (&0.into(), &0.into()));
    }
    assert!(sent(blocked) < due, "the blocked class was held: {report}");
    Ok(assert_exercised(lab, port, blocked)?)
}

#[test]
fn class_3_blocked_and_class_4_free_one_worker() -> TestResult {
    only_the_blocked_class_is_paused(3, &[4], 1)
}

#[test]
fn class_4_blocked_and_class_3_free_two_workers() -> TestResult {
    only_the_blocked_class_is_paused(4, &[3], 2)
}

/// Any class of seven against the six others: a slice of one, all of them in full length.
#[test]
fn any_class_of_seven_blocked_and_six_free() -> TestResult {
    for blocked in slice_or(1..2, 1..8) {
        let free: Vec<u8> = (1..8).filter(|class| *class != blocked).collect();
        only_the_blocked_class_is_paused(blocked, &free, 2)?;
    }
    Ok(())
}

/// Fault S5: a minimum rate for one class takes nothing of the other while there is room for both:
/// neither is paused, whichever of them has it.
#[test]
fn a_minimum_rate_pauses_no_class_that_has_room() -> TestResult {
    for served in [3, 4] {
        let minimum = format!("[port.h3.queue.{served}]\nmin_rate = \"400M\"\n");
        let profile = ProfilePlan::classes(&[3, 4]).with(&minimum);
        let plan = LabPlan::star(3).each(|switch| switch.profile(profile.clone()));
        in_lab(&plan, |lab| {
            let receiver = lab.endpoint("h3", &["receive"])?;
            let flows = [flow(3, 0x13, "40M"), flow(4, 0x14, "40M")];
            let flows: Vec<_> = flows.iter().map(String::as_str).collect();
            let more = ["--seconds", "2", "--speed", "1G"];
            let senders = [
                lab.send("h1", "h3", &flows[..1], &more)?,
                lab.send("h2", "h3", &flows[1..], &more)?,
            ];
            for sender in senders {
                let report = sender.report(SOON)?;
                assert_eq!(report["pause_ns"], json!([0, 0, 0, 0, 0, 0, 0, 0]));
                assert!(report["sent"].as_u64() > Some(1_000), "{report}");
            }
            receiver.stop()?;
            for (port, class) in [("h1", 3), ("h2", 4)] {
                assert_eq!(evidence(lab, port, class)?, Default::default());
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The same under an overload: both are paused, both lose nothing.
#[test]
fn a_minimum_rate_loses_nothing_of_either_class_under_overload() -> TestResult {
    let profile = ProfilePlan::classes(&[3, 4]).with("[port.h3.queue.3]\nmin_rate = \"200M\"\n");
    let plan = LabPlan::of(vec![SwitchPlan::new("sw")
        .port(PortPlan::host(1))
        .port(PortPlan::host(2))
        .port(PortPlan::host(3).speed("300M"))
        .profile(profile)]);
    in_lab(&plan, |lab| {
        let receiver = lab.endpoint("h3", &["receive"])?;
        let more = ["--seconds", "3", "--speed", "1G"];
        let flow = |class: u8| {
            let dscp = 8 * class;
            format!("dscp={dscp},priority={class},qp={class},size=1024,rate=400M")
        };
        let senders =
            [lab.send("h1", "h3", &[&flow(3)], &more)?, lab.send("h2", "h3", &[&flow(4)], &more)?];
        let mut reports = Vec::new();
        for sender in senders {
            reports.push(sender.report(SOON)?);
        }
        wait_for("not all arrives", SOON, || {
            Ok((lab.switch("sw")?.queue("h3", 4)?.occupancy == 0).then_some(()))
        })?;
        std::thread::sleep(Duration::from_millis(300));
        let received = receiver.stop()?;
        for (report, (port, class)) in reports.iter().zip([("h1", 3), ("h2", 4)]) {
            assert_same_psn(report, &received)?;
            assert_exercised(lab, port, class)?;
        }
        Ok(())
    })
}
