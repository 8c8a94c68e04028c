//! Several classes stormed at once (fault 16): one storm each, held until it ends, whatever becomes
//! of the others. A slice of 5 s, or the minute of the report with `HOLDFAST_LONG=1`.

use holdfast_api::message::{Call, Event, EventKind, QueueFilter, Trace, TraceReply};
use holdfast_api::message::{WatchdogReply, WatchdogStatus};
use holdfast_e2e::endpoint::Endpoint;
use holdfast_e2e::long::slice_or;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, ProfilePlan, TestResult};
use std::time::Duration;

const MS: u64 = 1_000_000;
const SOON: Duration = Duration::from_secs(90);
const DETECTION: u64 = 200 * MS;
const RESTORATION: u64 = 200 * MS;

/// These classes are lossless and watched as in the reported timeline.
fn plan(classes: &[u8]) -> LabPlan {
    let keys = "[watchdog]\ndetection_time = \"200ms\"\nrestoration_time = \"200ms\"\n\
                action = \"drop\"\nback_off = true\n";
    LabPlan::star(2).each(|switch| switch.profile(ProfilePlan::classes(classes).with(keys)))
}

/// h1 sends every class to h2 until it is stopped.
fn send(lab: &mut Lab, classes: &[u8]) -> Result<Endpoint, LabError> {
    let flow = |class: &u8| {
        let dscp = 8 * class;
        format!("dscp={dscp},priority={class},qp={class},size=1024,rate=10M")
    };
    let flows: Vec<_> = classes.iter().map(flow).collect();
    let flows: Vec<_> = flows.iter().map(String::as_str).collect();
    lab.send("h1", "h2", &flows, &["--seconds", "300", "--speed", "1G"])
}

fn storm(lab: &mut Lab, priorities: &str, seconds: &str) -> Result<Endpoint, LabError> {
    lab.endpoint(
        "h2",
        &["storm", "--priorities", priorities, "--speed", "1G", "--seconds", seconds],
    )
}

/// The monotonic times of a storm's first and last pause. It must have had no gap.
fn times(storm: Endpoint) -> Result<(u64, u64), LabError> {
    let report = storm.report(SOON)?;
    assert_eq!(report["gaps_longer_than_pause"], 0, "it was no storm: {report}");
    let time = |which: &str| report[which]["monotonic_ns"].as_u64().unwrap_or_default();
    Ok((time("first_pause"), time("last_pause")))
}

/// Detections and restorations of each queue, in order: when, which queue, and which of the two.
fn changes(lab: &mut Lab) -> Result<Vec<(u64, u8, bool)>, LabError> {
    let kinds = Some(vec![EventKind::Storm]);
    let trace = Trace { kinds, port: Some("h2".to_owned()), ..Trace::default() };
    let reply: TraceReply = lab.switch("sw")?.call(Call::Trace(trace))?;
    let storms = reply.events.into_iter().filter_map(|event| match event {
        Event::Storm { time_ns, queues, begins, .. } => Some((time_ns, queues, begins)),
        _ => None,
    });
    let each = |(time, queues, begins): (u64, Vec<u8>, bool)| {
        queues.into_iter().map(move |queue| (time, queue, begins)).collect::<Vec<_>>()
    };
    Ok(storms.flat_map(each).collect())
}

fn watched(lab: &mut Lab, queue: u8) -> Result<WatchdogStatus, LabError> {
    let filter = QueueFilter { port: Some("h2".to_owned()), queue: Some(queue) };
    let mut reply: WatchdogReply = lab.switch("sw")?.call(Call::ShowWatchdog(filter))?;
    reply.queues.pop().ok_or(LabError::Unknown { kind: "watchdog", name: format!("q{queue}") })
}

fn wait_for_end(lab: &mut Lab, queue: u8) -> TestResult {
    wait_for(&format!("queue {queue} isn't restored"), SOON, || {
        Ok((watched(lab, queue)?.restored > 0).then_some(()))
    })?;
    Ok(())
}

/// Of each queue exactly one detection, not too early, and exactly one end, not before the storm's
/// own, and within ten times the restoration time after it.
fn assert_one_each(lab: &mut Lab, classes: &[u8], (first, last): (u64, u64)) -> TestResult {
    let changes = changes(lab)?;
    for class in classes {
        let of = |wanted: bool| {
            let ours =
                changes.iter().filter(|(_, queue, begins)| queue == class && *begins == wanted);
            ours.map(|(time, ..)| *time).collect::<Vec<_>>()
        };
        let (begun, ended) = (of(true), of(false));
        assert_eq!((begun.len(), ended.len()), (1, 1), "queue {class}: {changes:?}");
        assert!(begun[0] >= first + DETECTION, "queue {class} early: {changes:?}");
        assert!(ended[0] >= last + RESTORATION, "queue {class} restored in the storm: {changes:?}");
        assert!(ended[0] < last + 10 * RESTORATION, "queue {class} late: {changes:?}");
        let status = watched(lab, *class)?;
        assert_eq!((status.detected, status.restored, status.stormed), (1, 1, false));
        assert!(status.dropped_frames > 0, "the queue had frames: {status:?}");
    }
    Ok(())
}

fn stormed_together(classes: &[u8], priorities: &str) -> TestResult {
    in_lab(&plan(classes), |lab| {
        let sender = send(lab, classes)?;
        let storm = storm(lab, priorities, slice_or("5", "60"))?;
        let times = times(storm)?;
        for class in classes {
            // The last pause is still in force: the state was held for all of the storm.
            let status = watched(lab, *class)?;
            assert_eq!((status.detected, status.restored), (1, 0), "queue {class}: {status:?}");
        }
        for class in classes {
            wait_for_end(lab, *class)?;
        }
        assert_one_each(lab, classes, times)?;
        sender.stop()?;
        Ok(())
    })
}

/// The report: classes 3 and 4 together.
#[test]
fn classes_3_and_4_are_one_storm_each_until_it_ends() -> TestResult {
    stormed_together(&[3, 4], "3,4")
}

#[test]
fn all_eight_classes_are_one_storm_each_until_it_ends() -> TestResult {
    stormed_together(&[0, 1, 2, 3, 4, 5, 6, 7], "all")
}

/// One class alone, whichever it is.
#[test]
fn one_class_alone_is_one_storm_until_it_ends() -> TestResult {
    for class in slice_or(3..4, 0..8) {
        stormed_together(&[class], &class.to_string())?;
    }
    Ok(())
}

/// The one ends while the other goes on: each has its own end, and neither a second beginning.
fn one_ends_while_another_goes_on(ending: u8, lasting: u8) -> TestResult {
    let classes = [ending, lasting];
    in_lab(&plan(&classes), |lab| {
        let sender = send(lab, &classes)?;
        let long = storm(lab, &lasting.to_string(), slice_or("5", "60"))?;
        let short = storm(lab, &ending.to_string(), "2")?;
        let short = times(short)?;
        wait_for_end(lab, ending)?;
        assert_one_each(lab, &[ending], short)?;
        let status = watched(lab, lasting)?;
        assert_eq!((status.detected, status.restored, status.stormed), (1, 0, true));
        // What came back sends again, beside the stormed queue.
        let sent = lab.switch("sw")?.queue("h2", ending)?.tx_frames;
        wait_for("the restored queue doesn't send", SOON, || {
            Ok((lab.switch("sw")?.queue("h2", ending)?.tx_frames > sent + 100).then_some(()))
        })?;
        let long = times(long)?;
        assert_eq!(watched(lab, lasting)?.restored, 0);
        wait_for_end(lab, lasting)?;
        assert_one_each(lab, &[lasting], long)?;
        assert_eq!(watched(lab, ending)?.detected, 1, "no second storm");
        sender.stop()?;
        Ok(())
    })
}

#[test]
fn class_4_ends_while_class_3_goes_on() -> TestResult {
    one_ends_while_another_goes_on(4, 3)
}

#[test]
fn class_3_ends_while_class_4_goes_on() -> TestResult {
    one_ends_while_another_goes_on(3, 4)
}
