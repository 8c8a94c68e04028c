//! A storm that is detected while the ingress PG is paused (fault 18): what is queued for it is
//! flushed, the sender is let go at once and not paused again, only that queue of that port drops,
//! and after the end nothing does.

use holdfast_api::message::{Call, Event, EventKind, Trace, TraceReply};
use holdfast_e2e::frames::{Ip, Roce};
use holdfast_e2e::long::slice_or;
use holdfast_e2e::lossless::{assert_exercised, assert_same_psn};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Captured, Lab, LabError, LabPlan, ProfilePlan, TestResult};
use holdfast_wire::Ecn;
use std::collections::BTreeMap;
use std::time::Duration;

const MS: u64 = 1_000_000;
const SOON: Duration = Duration::from_secs(60);
/// Between the detection and the XON on the wire: ten times the second of a machine that does much
/// else would still be a fault; both times are the machine's own.
const AT_ONCE: u64 = 100 * MS;

fn plan(workers: u32, classes: &[u8]) -> LabPlan {
    let keys = "[watchdog]\ndetection_time = \"200ms\"\nrestoration_time = \"200ms\"\n\
                action = \"drop\"\n";
    let profile = ProfilePlan::classes(classes).with(keys);
    LabPlan::star(4).each(|switch| switch.profile(profile.clone()).workers(workers))
}

/// Frames that come after a pause all the same.
fn under_way_of(class: u8) -> Vec<Vec<u8>> {
    let (ip, dscp, ecn) = (Ip::V4, 8 * class, Ecn::Ect0);
    let frame = |psn| Roce { from: 1, to: 4, ip, dscp, ecn, tags: &[], len: 1024, psn }.bytes();
    (0..20).map(frame).collect()
}

/// When the only storm was detected and when it ended, of the switch's clock.
fn storm_of(lab: &mut Lab, queue: u8) -> Result<(u64, Option<u64>), LabError> {
    wait_for("the storm isn't detected", SOON, || {
        let kinds = Some(vec![EventKind::Storm]);
        let trace = Trace { kinds, port: Some("h2".to_owned()), ..Trace::default() };
        let reply: TraceReply = lab.switch("sw")?.call(Call::Trace(trace))?;
        let mut found = (None, None);
        for event in reply.events {
            match event {
                Event::Storm { time_ns, queues, begins, .. } if queues == [queue] => {
                    let place = if begins { &mut found.0 } else { &mut found.1 };
                    assert!(place.replace(time_ns).is_none(), "more than one storm");
                }
                _ => {}
            }
        }
        Ok(found.0.map(|begun| (begun, found.1)))
    })
}

/// Frames dropped at each port, by reason.
fn drops(lab: &mut Lab) -> Result<BTreeMap<String, u64>, LabError> {
    let mut drops = BTreeMap::new();
    for status in lab.switch("sw")?.ports()?.ports {
        for (reason, frames) in status.drops.iter().filter(|(_, frames)| **frames > 0) {
            drops.insert(format!("{} {reason}", status.port), *frames);
        }
    }
    Ok(drops)
}

/// Pauses and resumes of a class with their times: (ns, quanta).
fn pauses(frames: &[Captured], class: u8) -> Vec<(u64, u16)> {
    let class = usize::from(class);
    let of = |frame: &&Captured| frame.bytes[17] >> class & 1 == 1;
    let at = 18 + 2 * class;
    let quanta = |frame: &Captured| u16::from_be_bytes([frame.bytes[at], frame.bytes[at + 1]]);
    frames.iter().filter(of).map(|frame| (frame.time_ns, quanta(frame))).collect()
}

/// From the detection on: one XON at once, and no pause as long as the storm lasts.
fn assert_let_go(pauses: &[(u64, u16)], begun: u64, last: u64) {
    let (before, after): (Vec<_>, Vec<_>) = pauses.iter().partition(|(time, _)| *time < begun);
    assert!(before.last().is_some_and(|(_, quanta)| *quanta > 0), "PG was paused: {before:?}");
    let in_storm: Vec<_> = after.into_iter().filter(|(time, _)| *time < last).collect();
    assert_eq!(in_storm.len(), 1, "only the XON: {in_storm:?}");
    let (time, quanta) = in_storm[0];
    assert_eq!(quanta, 0);
    assert!(time - begun < AT_ONCE, "XON {} ns after the detection", time - begun);
}

fn detected_with_the_pg_paused(class: u8, workers: u32) -> TestResult {
    in_lab(&plan(workers, &[3, 4]), |lab| {
        let capture = lab.capture("h1", &["--ethertype", "0x8808"])?;
        let receiver = lab.endpoint("h4", &["receive"])?;
        let flow = |qp: u16, rate: &str| {
            let dscp = 8 * class;
            format!("dscp={dscp},priority={class},qp={qp},size=1024,rate={rate}")
        };
        // The same class of the same ingress port, to the stormed port and to another one: the PG
        // fills within 50 ms, long before the detection.
        let more = ["--seconds", "300", "--speed", "1G"];
        let stormed = lab.send("h1", "h2", &[&flow(0x21, "200M")], &more)?;
        let spared = lab.send("h1", "h4", &[&flow(0x22, "20M")], &more)?;
        let elsewhere = lab.send("h3", "h4", &[&flow(0x23, "20M")], &more)?;
        let priorities = class.to_string();
        let storm = ["storm", "--priorities", &priorities, "--speed", "1G", "--seconds"];
        let storm = lab.endpoint("h2", &[&storm[..], &[slice_or("3", "60")]].concat())?;
        wait_for("the PG isn't paused", SOON, || {
            Ok(lab.switch("sw")?.pg("h1", class)?.xoff.then_some(()))
        })?;
        lab.inject("h1", &under_way_of(class))?;
        let (begun, _) = storm_of(lab, class)?;
        let report = storm.report(SOON + Duration::from_secs(60))?;
        // All three clocks are monotonic: the storm's, the switch's, and the capture's.
        let last = report["last_pause"]["monotonic_ns"].as_u64().unwrap_or_default();
        wait_for("the storm doesn't end", SOON, || {
            Ok(storm_of(lab, class)?.1.is_some().then_some(()))
        })?;
        let after_storm = drops(lab)?;
        assert_eq!(after_storm.keys().collect::<Vec<_>>(), ["h2 watchdog"], "{after_storm:?}");
        // All goes on as if nothing had been.
        let sent = lab.switch("sw")?.queue("h2", class)?.tx_frames;
        wait_for("the restored queue doesn't send", SOON, || {
            let queue = lab.switch("sw")?.queue("h2", class)?;
            Ok((queue.tx_frames > sent + slice_or(10_000, 100_000)).then_some(()))
        })?;
        let reports = [spared.stop()?, elsewhere.stop()?];
        stormed.stop()?;
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(drops(lab)?, after_storm, "nothing is dropped after the end");
        let received = receiver.stop()?;
        for report in &reports {
            assert_same_psn(report, &received)?;
        }
        let frames = capture.stop()?;
        let pauses = pauses(&frames, class);
        assert_let_go(&pauses, begun, last);
        Ok(assert_exercised(lab, "h1", class)?)
    })
}

#[test]
fn class_3_is_flushed_and_the_sender_let_go_one_worker() -> TestResult {
    detected_with_the_pg_paused(3, 1)
}

#[test]
fn class_3_is_flushed_and_the_sender_let_go_two_workers() -> TestResult {
    detected_with_the_pg_paused(3, 2)
}

#[test]
fn class_4_is_flushed_and_the_sender_let_go() -> TestResult {
    detected_with_the_pg_paused(4, 2)
}
