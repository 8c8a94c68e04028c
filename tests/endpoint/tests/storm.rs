//! `holdfast-endpoint storm` over a plain veth pair, seen from the other end (needs root).
#![allow(clippy::unwrap_used, clippy::expect_used)] // In the functions that tests share.

mod namespace;

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use namespace::{End, Pair, Running, MAC_A, MAC_B};
use serde_json::{json, Value};
use tempfile::TempDir;

/// Nobody waits longer than this for an endpoint that should end by itself.
const BOUND: &str = "60";
/// 65535 quanta at 1 Gb/s in nanoseconds.
const LONGEST_PAUSE: u64 = 33_553_920;
/// A PFC frame up to its vector, but for the sender's address.
const TO_MAC_CONTROL: &str = "0180c2000001";

/// What captures the MAC control frames that arrive at one end.
struct Capture {
    running: Running,
    folder: TempDir,
}

impl Capture {
    fn start(pair: &Pair, end: End) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("frames.json");
        let arguments = ["capture", "--interface", "veth0", "--seconds", BOUND, "--ethertype"];
        let arguments = [&arguments[..], &["0x8808", "--json", file.to_str().unwrap()]].concat();
        Self { running: pair.start(end, &arguments), folder }
    }

    /// Every frame until now: (arrival in nanoseconds, bytes in hexadecimal).
    fn frames(self) -> Vec<(u64, String)> {
        sleep(Duration::from_millis(200));
        self.running.terminate();
        assert_eq!(self.running.report()["socket_drops"], json!(0));
        let text = fs::read_to_string(self.folder.path().join("frames.json")).unwrap();
        let frames = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        frames
            .map(|frame| {
                (frame["t_ns"].as_u64().unwrap(), frame["hex"].as_str().unwrap().to_owned())
            })
            .collect()
    }
}

/// Starts a storm that lasts `seconds` at most.
fn storm(pair: &Pair, seconds: &str, more: &[&str]) -> Running {
    pair.start(End::A, &[&["storm", "--interface", "veth0", "--seconds", seconds], more].concat())
}

/// The 60 bytes from the end A with these fields behind the EtherType, spaces left out.
fn frame(fields: &str) -> String {
    let start = format!("{TO_MAC_CONTROL}{}8808", MAC_A.replace(':', ""));
    format!("{:0<120}", start + &fields.replace(' ', ""))
}

/// The longest time between two frames that follow each other.
fn longest_gap(frames: &[(u64, String)]) -> u64 {
    frames.windows(2).map(|pair| pair[1].0 - pair[0].0).max().expect("two frames")
}

#[test]
fn a_storm_arrives_whole_and_without_a_gap() {
    let pair = Pair::new();
    let capture = Capture::start(&pair, End::B);
    let arguments = ["--priorities", "3,4", "--gap-must-hold", "--xon"];
    let report = storm(&pair, "0.3", &arguments).report();
    let mut frames = capture.frames();
    assert_eq!(frames.pop().expect("frames").1, frame("0101 0018"), "the resume is the last");
    let pause = frame("0101 0018 0000 0000 0000 ffff ffff");
    assert!(frames.iter().all(|(_, bytes)| *bytes == pause), "{frames:?}");
    assert!(longest_gap(&frames) <= LONGEST_PAUSE, "{} ns: {report}", longest_gap(&frames));
    // One at the start and one after each half of 33.6 ms; more than none missed gives a gap.
    assert!((10..=18).contains(&frames.len()), "{} pauses: {report}", frames.len());
    assert_eq!(report["sent"], json!(frames.len()));
    assert_eq!((&report["xons_sent"], &report["bursts"]), (&json!(1), &json!(1)));
    assert_eq!((&report["frame"], &report["priorities"]), (&json!("pfc"), &json!([3, 4])));
    assert_eq!((&report["ended_by"], &report["mac"]), (&json!("seconds"), &json!(MAC_A)));
    assert_eq!(report["pause_ns"], json!(LONGEST_PAUSE));
    assert_eq!(report["gaps_longer_than_pause"], json!(0));
    let time = |which: &str, clock: &str| report[which][clock].as_u64().unwrap();
    let span = |clock| time("last_pause", clock) - time("first_pause", clock);
    // The clocks of sender and capture are one; a reading right before the call is never later.
    assert!(time("first_pause", "monotonic_ns") <= frames[0].0 + 1_000_000);
    assert!((100_000_000..300_000_000).contains(&span("monotonic_ns")), "{report}");
    assert!(span("realtime_ns").abs_diff(span("monotonic_ns")) < 50_000_000, "{report}");
}

#[test]
fn bursts_are_apart_and_each_ends_by_its_resume() {
    let pair = Pair::new();
    let capture = Capture::start(&pair, End::B);
    let bursts = ["--pause", "--bursts", "3", "--on", "50ms", "--off", "50ms", "--xon"];
    let report = storm(&pair, BOUND, &bursts).report();
    let frames = capture.frames();
    let (pause, resume) = (frame("0001 ffff"), frame("0001"));
    assert!(frames.iter().all(|(_, bytes)| [&pause, &resume].contains(&bytes)), "{frames:?}");
    let groups: Vec<_> = frames.split_inclusive(|(_, bytes)| *bytes == resume).collect();
    assert_eq!(groups.len(), 3, "{report}");
    for group in &groups {
        // At 0, 16.8 and 33.6 ms, the resume after 50 ms.
        assert!((3..=4).contains(&group.len()), "{} frames: {report}", group.len());
        assert!(longest_gap(group) <= LONGEST_PAUSE, "{group:?}");
        assert_eq!(group.last().map(|(_, bytes)| bytes), Some(&resume));
    }
    for pair in groups.windows(2) {
        let quiet = pair[1][0].0 - pair[0][pair[0].len() - 1].0;
        assert!(quiet > LONGEST_PAUSE, "quiet for {quiet} ns: {report}");
    }
    assert_eq!((&report["bursts"], &report["xons_sent"]), (&json!(3), &json!(3)));
    assert_eq!((&report["frame"], &report["ended_by"]), (&json!("pause"), &json!("count")));
    assert_eq!(report["sent"], json!(frames.len() - 3));
}

#[test]
fn a_storm_is_ended_by_a_signal_and_resumes() {
    let pair = Pair::new();
    let capture = Capture::start(&pair, End::B);
    let running = storm(&pair, BOUND, &["--priorities", "all", "--quanta", "20000", "--xon"]);
    sleep(Duration::from_millis(100));
    running.terminate();
    let report = running.report();
    let frames = capture.frames();
    assert_eq!((&report["ended_by"], &report["xons_sent"]), (&json!("signal"), &json!(1)));
    assert_eq!(frames.last().map(|(_, bytes)| bytes), Some(&frame("0101 00ff")));
    assert_eq!(frames[0].1, frame(&format!("0101 00ff {}", "4e20".repeat(8))));
    assert_eq!(report["sent"], json!(frames.len() - 1));
}

#[test]
fn a_gap_is_reported_and_fails_where_it_must_hold() {
    let pair = Pair::new();
    // 512 bits at 100 Gb/s last 6 ns: no call sends a frame in that time.
    let short = ["--priorities", "0", "--quanta", "1", "--speed", "100G", "--count", "50"];
    let report = storm(&pair, BOUND, &short).report();
    assert_eq!((&report["sent"], &report["pause_ns"]), (&json!(50), &json!(6)));
    assert_eq!(report["gaps_longer_than_pause"], json!(49), "it only says so");
    assert!(report["longest_gap_ns"].as_u64().unwrap() > 6, "{report}");
    assert!(report["most_late_ns"].as_u64().unwrap() > 3, "{report}");
    let must = [&["storm", "--interface", "veth0", "--gap-must-hold"][..], &short].concat();
    let (code, message) = pair.fail(End::A, &must);
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("49 gaps were longer than the pause of 6 ns"), "{message}");
}

#[test]
fn a_storm_that_can_not_be_is_refused_as_usage() {
    let pair = Pair::new();
    for wrong in [
        &[][..],
        &["--priorities", "3", "--pause"],
        &["--priorities", "none"],
        &["--priorities", "8"],
        &["--pause", "--quanta", "0"],
        &["--pause", "--quanta", "65536"],
        &["--pause", "--count", "0"],
        &["--pause", "--bursts", "3", "--on", "1ms"],
        &["--pause", "--bursts", "3", "--on", "0ms", "--off", "1ms"],
        &["--pause", "--bursts", "3", "--on", "5", "--off", "1ms"],
        &["--pause", "--on", "1ms"],
    ] {
        let arguments = [&["storm", "--interface", "veth0"], wrong].concat();
        let (code, message) = pair.fail(End::A, &arguments);
        assert_eq!(code, Some(2), "{wrong:?}: {message}");
        assert!(message.starts_with("error: "), "{message}");
    }
    for wrong in [
        &["--delay-pause", "200"][..],
        &["--delay-pause", "2s"],
        &["--lose-xon", "1.5"],
        &["--ignore-pause", "--lose-xon", "0.5"],
    ] {
        let arguments = [&["receive", "--interface", "veth0"], wrong].concat();
        let (code, message) = pair.fail(End::B, &arguments);
        assert_eq!(code, Some(2), "{wrong:?} at {MAC_B}: {message}");
    }
}
