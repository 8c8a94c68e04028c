//! A peer that pauses without end, on real frames (SPEC 8): when that is a storm, what becomes of
//! the frames, and who never notices. Times are those of the frames and of the switch's own record,
//! both by `CLOCK_MONOTONIC`.

use holdfast_api::message::{
    Call, Event, EventKind, Events, EventsReply, QueueFilter, Trace, TraceReply, WatchdogReply,
    WatchdogStatus,
};
use holdfast_e2e::endpoint::Endpoint;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, ProfilePlan, TestResult};
use serde_json::Value;
use std::time::Duration;

const MS: u64 = 1_000_000;
const SOON: Duration = Duration::from_secs(30);
const DETECTION: u64 = 200 * MS;
const RESTORATION: u64 = 200 * MS;
/// What a storm may be detected later by, and restored.
const LATE: u64 = 10 * MS;
const ROUNDS: usize = 20;

/// h1..h4 with a watchdog that does `action`.
fn plan(action: &str, back_off: bool) -> LabPlan {
    let keys = format!(
        "[watchdog]\ndetection_time = \"200ms\"\nrestoration_time = \"200ms\"\n\
         action = \"{action}\"\nback_off = {back_off}\n"
    );
    LabPlan::star(4).each(|mut switch| {
        switch.profile = ProfilePlan::shipped("veth-lab-1g").with(&keys);
        switch
    })
}

/// Frames for the stormed queue, for another queue of the same port, and for another port.
struct Traffic {
    lossless: Endpoint,
    others: Vec<Endpoint>,
    receivers: Vec<Endpoint>,
}

impl Traffic {
    fn start(lab: &mut Lab) -> Result<Self, LabError> {
        let receivers = vec![lab.endpoint("h2", &["receive"])?, lab.endpoint("h4", &["receive"])?];
        let more = ["--seconds", "120", "--speed", "1G"];
        let lossless = lab.send("h1", "h2", &["dscp=26,qp=0x11,size=1024,rate=20M"], &more)?;
        let lossy = lab.send("h3", "h2", &["dscp=0,qp=0x12,size=1024,rate=20M"], &more)?;
        let elsewhere = lab.send("h3", "h4", &["dscp=26,qp=0x13,size=1024,rate=20M"], &more)?;
        Ok(Self { lossless, others: vec![lossy, elsewhere], receivers })
    }

    /// Ends it: the other queue and the other port have lost nothing.
    fn assert_others_whole(self, lab: &mut Lab) -> TestResult {
        let stormed = self.lossless.stop()?;
        let mut sent = Vec::new();
        for sender in self.others {
            sent.push(sender.stop()?["sent"].as_u64().unwrap_or_default());
        }
        std::thread::sleep(Duration::from_millis(300));
        let mut received = Vec::new();
        for receiver in self.receivers {
            received.push(receiver.stop()?);
        }
        let of = |report: &Value, qp: u64| {
            let flows = report["flows_received"].as_array().cloned().unwrap_or_default();
            let flow = flows.into_iter().find(|flow| flow["qp"] == qp).unwrap_or_default();
            (flow["received"].as_u64().unwrap_or_default(), flow["lost"].clone())
        };
        assert_eq!(of(&received[0], 0x12), (sent[0], 0.into()), "{}", received[0]);
        assert_eq!(of(&received[1], 0x13), (sent[1], 0.into()), "{}", received[1]);
        assert!(sent[0] > 1_000 && stormed["sent"].as_u64() > Some(0), "{sent:?}");
        for port in ["h1", "h2", "h3", "h4"] {
            assert_eq!(lab.switch("sw")?.port(port)?.lossless_violations, 0, "{port}");
        }
        Ok(())
    }
}

/// A storm from h2: the times of its first and its last pause.
fn storm(lab: &mut Lab, more: &[&str]) -> Result<(u64, u64), LabError> {
    let arguments = [&["storm", "--speed", "1G"][..], more].concat();
    let report = lab.endpoint("h2", &arguments)?.report(SOON + Duration::from_secs(70))?;
    let time = |which: &str| report[which]["monotonic_ns"].as_u64().unwrap_or_default();
    assert!(time("first_pause") > 0, "{report}");
    Ok((time("first_pause"), time("last_pause")))
}

/// Storms of h2 that began or ended after `since`: when, of which queues, and which of the two.
fn storms(lab: &mut Lab, since: u64) -> Result<Vec<(u64, Vec<u8>, bool)>, LabError> {
    let kinds = Some(vec![EventKind::Storm]);
    let trace = Trace { kinds, port: Some("h2".to_owned()), ..Trace::default() };
    let reply: TraceReply = lab.switch("sw")?.call(Call::Trace(trace))?;
    let storm = |event| match event {
        Event::Storm { time_ns, queues, begins, .. } => Some((time_ns, queues, begins)),
        _ => None,
    };
    Ok(reply.events.into_iter().filter_map(storm).filter(|storm| storm.0 > since).collect())
}

fn watched(lab: &mut Lab) -> Result<WatchdogStatus, LabError> {
    let filter = QueueFilter { port: Some("h2".to_owned()), queue: Some(3) };
    let mut reply: WatchdogReply = lab.switch("sw")?.call(Call::ShowWatchdog(filter))?;
    let unknown = LabError::Unknown { kind: "watchdog", name: "h2".to_owned() };
    reply.queues.pop().ok_or(unknown)
}

/// The storm after `since` from its detection to its end.
fn whole_storm(lab: &mut Lab, since: u64) -> Result<(u64, u64), LabError> {
    wait_for("a storm isn't restored", SOON, || {
        let found = storms(lab, since)?;
        Ok(match found.as_slice() {
            [(begin, queues, true), (end, _, false)] if *queues == [3] => Some((*begin, *end)),
            _ => None,
        })
    })
}

/// Twenty storms: none detected early, and all within 10 ms but for times at which the machine gave
/// the switch no core.
#[test]
fn pfcwd_storm_is_detected_and_restored_in_time() -> TestResult {
    in_lab(&plan("drop", false), |lab| {
        let traffic = Traffic::start(lab)?;
        let (mut detected, mut restored) = (Vec::new(), Vec::new());
        let mut since = 0;
        for _ in 0..ROUNDS {
            let (first, last) = storm(lab, &["--priorities", "3", "--seconds", "0.3"])?;
            let (begin, end) = whole_storm(lab, since)?;
            assert!(begin >= first + DETECTION, "{} ns early", first + DETECTION - begin);
            assert!(end >= last + RESTORATION, "restored {} ns early", last + RESTORATION - end);
            detected.push(begin - first - DETECTION);
            restored.push(end - last - RESTORATION);
            since = end;
        }
        println!("detected later by {detected:?} ns");
        println!("restored later by {restored:?} ns");
        for times in [&mut detected, &mut restored] {
            times.sort_unstable();
            assert!(times[ROUNDS * 9 / 10 - 1] < LATE, "{times:?}");
        }
        let status = watched(lab)?;
        assert_eq!((status.detected, status.restored), (ROUNDS as u64, ROUNDS as u64));
        assert!(status.dropped_frames > 0, "{status:?}");
        traffic.assert_others_whole(lab)
    })
}

#[test]
fn half_the_time_is_no_storm_and_neither_are_fifteen_bursts_of_it() -> TestResult {
    in_lab(&plan("drop", true), |lab| {
        let traffic = Traffic::start(lab)?;
        storm(lab, &["--priorities", "3", "--seconds", "0.1", "--xon"])?;
        let bursts = ["--priorities", "3", "--bursts", "15", "--on", "100ms", "--off", "100ms"];
        storm(lab, &[&bursts[..], &["--xon"]].concat())?;
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(storms(lab, 0)?, []);
        assert!(lab.switch("sw")?.pfc("h2")?.priorities[3].received.xoff >= 15);
        traffic.assert_others_whole(lab)
    })
}

/// A slice of the minute that SPEC 8 speaks of: one detection and no end until the storm is over.
#[test]
fn all_eight_priorities_are_one_storm() -> TestResult {
    in_lab(&plan("drop", true), |lab| {
        let traffic = Traffic::start(lab)?;
        let (first, last) = storm(lab, &["--priorities", "all", "--seconds", "5"])?;
        let (begin, end) = whole_storm(lab, 0)?;
        assert!(begin >= first + DETECTION && end >= last + RESTORATION);
        assert_eq!(storms(lab, 0)?.len(), 2);
        traffic.assert_others_whole(lab)
    })
}

/// Storms that repeat within a minute take twice the time to be restored, each time.
#[test]
fn storms_that_repeat_back_off() -> TestResult {
    in_lab(&plan("drop", true), |lab| {
        let traffic = Traffic::start(lab)?;
        let mut since = 0;
        for factor in [1, 2, 4] {
            let (_, last) = storm(lab, &["--priorities", "3", "--seconds", "0.3"])?;
            let (_, end) = whole_storm(lab, since)?;
            let quiet = end - last;
            assert!(quiet >= factor * RESTORATION, "{quiet} ns at factor {factor}");
            assert!(quiet < 2 * factor * RESTORATION, "{quiet} ns at factor {factor}");
            since = end;
        }
        traffic.assert_others_whole(lab)
    })
}

/// `forward` lets frames go through the storm; the journal, the metrics and `show watchdog` tell.
#[test]
fn forward_goes_on_and_everybody_is_told() -> TestResult {
    in_lab(&plan("forward", false), |lab| {
        let daemon = lab.daemon("sw", &[])?;
        let traffic = Traffic::start(lab)?;
        let stormer = lab.endpoint("h2", &["storm", "--priorities", "3", "--seconds", "20"])?;
        let series = |name: &str| format!("holdfast_watchdog_{name}{{port=\"h2\",queue=\"3\"}}");
        wait_for("the storm isn't shown", SOON, || {
            Ok((daemon.metrics()?[&series("stormed")] == 1.0).then_some(()))
        })?;
        let status = watched(lab)?;
        assert!(status.stormed && status.stormed_ns > 0, "{status:?}");
        let before = lab.switch("sw")?.queue("h2", 3)?.tx_frames;
        wait_for("nothing goes on", SOON, || {
            Ok((lab.switch("sw")?.queue("h2", 3)?.tx_frames > before + 100).then_some(()))
        })?;
        stormer.stop()?;
        wait_for("the storm doesn't end", SOON, || {
            Ok((daemon.metrics()?[&series("storms_restored_total")] == 1.0).then_some(()))
        })?;
        let kinds = wait_for("the journal doesn't tell", SOON, || {
            let reply: EventsReply = lab.switch("sw")?.call(Call::Events(Events::default()))?;
            let entries = reply.entries.iter().map(|entry| serde_json::to_value(&entry.what));
            let kinds: Result<Vec<Value>, _> = entries.collect();
            let kinds: Vec<Value> =
                kinds.unwrap_or_default().iter().map(|what| what["kind"].clone()).collect();
            Ok(kinds.contains(&"storm_ended".into()).then_some(kinds))
        })?;
        assert!(kinds.contains(&"storm_began".into()), "{kinds:?}");
        assert_eq!(watched(lab)?.dropped_frames, 0);
        traffic.assert_others_whole(lab)
    })
}
