//! What was taken for a storm and is none, on real frames (fault 30): a slice of the timelines that
//! `dataplane/core/tests/watchdog_timelines.rs` runs a hundred times each.

use holdfast_api::message::{Call, QueueFilter, WatchdogReply, WatchdogStatus};
use holdfast_e2e::endpoint::Endpoint;
use holdfast_e2e::frames::pfc;
use holdfast_e2e::long::slice_or;
use holdfast_e2e::process::run;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, ProfilePlan, TestResult};
use nix::sys::signal::Signal;
use std::thread::sleep;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(60);
/// Times of the reported timelines.
const DETECTION: Duration = Duration::from_millis(200);
const SLOW_POLL: Duration = Duration::from_millis(350);

fn plan() -> LabPlan {
    let keys = "[watchdog]\ndetection_time = \"200ms\"\nrestoration_time = \"200ms\"\n\
                action = \"drop\"\n";
    let profile = ProfilePlan::shipped("veth-lab-1g").with(keys);
    LabPlan::star(2).each(|switch| switch.profile(profile.clone()))
}

fn watched(lab: &mut Lab) -> Result<WatchdogStatus, LabError> {
    let filter = QueueFilter { port: Some("h2".to_owned()), queue: Some(3) };
    let mut reply: WatchdogReply = lab.switch("sw")?.call(Call::ShowWatchdog(filter))?;
    reply.queues.pop().ok_or(LabError::Unknown { kind: "watchdog", name: "h2".to_owned() })
}

fn send(lab: &mut Lab, rate: &str) -> Result<Endpoint, LabError> {
    let flow = format!("dscp=26,priority=3,qp=0x11,size=1024,rate={rate}");
    lab.send("h1", "h2", &[&flow], &["--seconds", "300", "--speed", "1G"])
}

/// No storm by now; and one that is one is still found.
fn assert_only_a_true_storm_is_found(lab: &mut Lab) -> TestResult {
    let status = watched(lab)?;
    assert_eq!((status.detected, status.dropped_frames), (0, 0), "{status:?}");
    let sender = send(lab, "20M")?;
    let storm = ["storm", "--priorities", "3", "--speed", "1G", "--seconds", "20"];
    let storm = lab.endpoint("h2", &storm)?;
    wait_for("the true storm isn't detected", SOON, || {
        Ok((watched(lab)?.detected == 1).then_some(()))
    })?;
    storm.stop()?;
    sender.stop()?;
    Ok(())
}

/// A pause of 10 quanta, and the longest there is, into an empty queue and into one that sends.
#[test]
fn a_single_pause_is_no_storm() -> TestResult {
    in_lab(&plan(), |lab| {
        for sends in [false, true] {
            let sender = if sends { Some(send(lab, "20M")?) } else { None };
            for round in 0..slice_or(6, 100) {
                let quanta = if round % 2 == 0 { 10 } else { u16::MAX };
                lab.inject("h2", &[pfc(2, 1 << 3, &[quanta; 8])])?;
                sleep(DETECTION);
            }
            sender.map(Endpoint::stop).transpose()?;
        }
        assert_only_a_true_storm_is_found(lab)
    })
}

/// Pauses that cover 60 % of the time, and a switch that stands still for 350 ms now and then.
#[test]
fn a_switch_that_stands_still_sees_no_storm() -> TestResult {
    in_lab(&plan(), |lab| {
        let sender = send(lab, "20M")?;
        let bursts = ["--bursts", slice_or("15", "300"), "--on", "120ms", "--off", "80ms", "--xon"];
        let storm = ["storm", "--priorities", "3", "--speed", "1G"];
        let mut storm = lab.endpoint("h2", &[&storm[..], &bursts].concat())?;
        let begin = Instant::now();
        while !storm.has_ended()? && begin.elapsed() < SOON + SOON {
            lab.switch("sw")?.process().signal(Signal::SIGSTOP);
            sleep(SLOW_POLL);
            lab.switch("sw")?.process().signal(Signal::SIGCONT);
            sleep(DETECTION / 2);
        }
        storm.report(SOON)?;
        sender.stop()?;
        assert!(lab.switch("sw")?.pfc("h2")?.priorities[3].received.xoff > 5);
        assert_only_a_true_storm_is_found(lab)
    })
}

/// The link goes down and comes up in the midst of pauses, sooner than a storm takes.
#[test]
fn a_link_that_flaps_in_a_pause_has_no_storm() -> TestResult {
    in_lab(&plan(), |lab| {
        let sender = send(lab, "20M")?;
        for _ in 0..slice_or(5, 50) {
            lab.inject("h2", &[pfc(2, 1 << 3, &[u16::MAX; 8])])?;
            let host = lab.host("h2")?;
            run(host.ip().args(["link", "set", "dev", "eth0", "down"]))?;
            sleep(SLOW_POLL);
            let host = lab.host("h2")?;
            run(host.ip().args(["link", "set", "dev", "eth0", "up"]))?;
            wait_for("the port doesn't come up", SOON, || {
                let up = holdfast_api::message::PortState::Up;
                Ok((lab.switch("sw")?.port("h2")?.state == up).then_some(()))
            })?;
        }
        sender.stop()?;
        assert_only_a_true_storm_is_found(lab)
    })
}
