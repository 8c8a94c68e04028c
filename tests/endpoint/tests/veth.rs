//! The endpoint's binary over a plain veth pair (needs root).
#![allow(clippy::unwrap_used, clippy::expect_used)] // In the functions that tests share.

mod namespace;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use namespace::{End, Pair, Running, MAC_A, MAC_B};
use serde_json::{json, Value};

const TO_B: [&str; 6] = ["--to-mac", MAC_B, "--from-ip", "10.0.0.1", "--to-ip", "10.0.0.2"];
const XOFF_START: &str = "0180c200000102000000000288080101";
/// Nobody waits longer than this for an endpoint that should end by itself.
const BOUND: &str = "60";

fn with<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec![command, "--interface", "veth0", "--seconds", BOUND];
    all.extend(more);
    all
}

fn send(pair: &Pair, more: &[&str]) -> Running {
    pair.start(End::A, &with("send", &[&TO_B, more].concat()))
}

/// PFC for priority 3, sent by the far end.
fn pfc3(pair: &Pair, quanta: u16) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pfc.hex");
    let padding = "00".repeat(34);
    let frame = format!("pfc : {XOFF_START} 0008 000000000000 {quanta:04x} {padding}");
    fs::write(&file, frame).unwrap();
    let report = pair.start(End::B, &with("replay", &["--hex", file.to_str().unwrap()])).report();
    assert_eq!((&report["sent"], &report["ended_by"]), (&json!(1), &json!("count")));
}

#[test]
fn every_frame_sent_is_received_in_order() {
    let pair = Pair::new();
    let arrival = ["--expect", "6000", "--until-idle", "5000"];
    let receiver = pair.start(End::B, &with("receive", &arrival));
    let flows = [
        "--flow",
        "qp=0x11,size=64/1024/1500/9014,count=4000,dscp=26",
        "--flow",
        "qp=0x12,size=256,count=1000,dscp=0,op=write,vlan=5.3,ecn=ce,rate=500M",
        "--flow",
        "qp=0x13,size=700,count=1000,dscp=46,op=ud,vlan=100.1+200.5",
        "--speed",
        "10G",
    ];
    let sent = send(&pair, &flows).report();
    let received = receiver.report();
    assert_eq!((&sent["sent"], &received["received"]), (&json!(6000), &json!(6000)));
    assert_eq!((&sent["ended_by"], &received["ended_by"]), (&json!("count"), &json!("count")));
    for zero in ["lost", "reordered", "duplicates", "icrc_errors", "socket_drops", "stale"] {
        assert_eq!(received[zero], json!(0), "{zero}: {received}");
    }
    assert_eq!(received["ce"], json!(1000));
    assert_eq!(received["received_bytes"], sent["sent_bytes"]);
    assert_eq!(received["latency_ns"]["samples"], json!(6000));
    for (sent, received) in
        [0, 1, 2].map(|n| (&sent["flows_sent"][n], &received["flows_received"][n]))
    {
        assert_eq!(received["src_mac"], json!(MAC_A));
        for same in ["qp", "dscp", "next_psn", "bytes"] {
            assert_eq!(sent[same], received[same], "{same}");
        }
        assert_eq!(sent["sent"], received["received"]);
    }
}

#[test]
fn two_hosts_send_and_receive_at_once_over_ipv6() {
    let pair = Pair::new();
    let host = |end, mac, from, to| {
        let flow = "qp=0x21,size=1024,count=2000,psn=0xffff00,rate=500M";
        let addresses = ["--to-mac", mac, "--from-ip", from, "--to-ip", to, "--flow", flow];
        // The delay lets the other one open its sockets.
        let rest = ["--expect", "2000", "--first-psn", "0xffff00", "--delay", "1000"];
        pair.start(end, &with("run", &[&addresses[..], &rest].concat()))
    };
    let hosts =
        [host(End::A, MAC_B, "fd00::1", "fd00::2"), host(End::B, MAC_A, "fd00::2", "fd00::1")];
    for report in hosts.map(Running::report) {
        assert_eq!((&report["sent"], &report["received"]), (&json!(2000), &json!(2000)));
        assert_eq!((&report["lost"], &report["icrc_errors"]), (&json!(0), &json!(0)));
        let next = json!((0x00ff_ff00 + 2000) & 0x00ff_ffff);
        assert_eq!(report["flows_sent"][0]["next_psn"], next, "the PSN has wrapped");
        assert_eq!(report["flows_received"][0]["next_psn"], next);
    }
}

/// Arrival times in milliseconds of a flow's frames, by its queue pair.
fn arrivals(captured: &str, qp: u8) -> Vec<f64> {
    let frames = captured.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_flow = frames
        .filter(|frame| frame["hex"].as_str().unwrap()[94..].starts_with(&format!("{qp:06x}")));
    of_flow.map(|frame| frame["t_ns"].as_u64().unwrap() as f64 / 1e6).collect()
}

/// The longest silence: (from, to).
fn longest_gap(times: &[f64]) -> (f64, f64) {
    let gaps = times.windows(2).map(|pair| (pair[0], pair[1]));
    gaps.max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0))).expect("two frames")
}

/// Two slow flows, priorities 3 and 4, of which `disturb` pauses one; the sender's report, and
/// the arrival times of both at the far end.
fn paused_run(more: &[&str], disturb: impl Fn(&Pair)) -> (Value, [Vec<f64>; 2]) {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("frames.json");
    let to_file = ["--json", file.to_str().unwrap(), "--ethertype", "0x0800", "--snap", "64"];
    let capture = pair.start(End::B, &with("capture", &to_file));
    let flows = [
        "--flow",
        "qp=0x31,dscp=26,rate=5M,count=1200",
        "--flow",
        "qp=0x32,dscp=32,rate=5M,count=1200",
        "--speed",
        "10M",
    ];
    let sender = send(&pair, &[&flows, more].concat());
    sleep(Duration::from_millis(300));
    disturb(&pair);
    let report = sender.report();
    assert_eq!(report["sent"], json!(2400));
    sleep(Duration::from_millis(200));
    capture.terminate();
    assert_eq!(capture.report()["socket_drops"], json!(0));
    let captured = fs::read_to_string(&file).unwrap();
    let times = [arrivals(&captured, 0x31), arrivals(&captured, 0x32)];
    assert_eq!(times.each_ref().map(Vec::len), [1200, 1200], "a pause loses nothing");
    (report, times)
}

fn pause_ms(report: &Value, priority: usize) -> f64 {
    report["pause_ns"][priority].as_u64().unwrap() as f64 / 1e6
}

#[test]
fn xoff_stops_its_priority_until_xon() {
    let (report, [paused, free]) = paused_run(&[], |pair| {
        // 65535 quanta at 10 Mb/s would last 3.4 seconds.
        pfc3(pair, 0xffff);
        sleep(Duration::from_millis(400));
        pfc3(pair, 0);
    });
    assert_eq!((&report["xoff"][3], &report["xon"][3]), (&json!(1), &json!(1)));
    let pause = pause_ms(&report, 3);
    assert!((400.0..3000.0).contains(&pause), "paused {pause} ms");
    assert_eq!(pause_ms(&report, 4), 0.0);
    let (from, to) = longest_gap(&paused);
    assert!(to - from > pause * 0.9, "silent {from}..{to} of {pause} ms");
    let between = free.iter().filter(|&&time| from < time && time < to).count();
    assert!(between > 20, "priority 4 went on: {between} frames");
}

#[test]
fn a_pause_without_xon_ends_by_its_timer() {
    // 6000 quanta of 512 bits at 10 Mb/s.
    let (report, [paused, _]) = paused_run(&[], |pair| pfc3(pair, 6000));
    assert_eq!((&report["xoff"][3], &report["xon"][3]), (&json!(1), &json!(0)));
    assert_eq!(report["pause_ns"][3], json!(307_200_000));
    let (from, to) = longest_gap(&paused);
    assert!(to - from > 270.0, "silent {from}..{to}");
}

#[test]
fn a_priority_without_pfc_does_not_stop() {
    let (report, _) = paused_run(&["--pfc", "4"], |pair| pfc3(pair, 0xffff));
    assert_eq!((&report["pfc_frames"], &report["xoff"][3]), (&json!(1), &json!(0)));
    assert_eq!(pause_ms(&report, 3), 0.0);
}

/// Runs a storm of the far end to its end: 6000 quanta at 10 Mb/s are 307.2 ms.
fn storm3(pair: &Pair, more: &[&str]) -> Value {
    let storm = ["--priorities", "3", "--quanta", "6000", "--speed", "10M"];
    pair.start(End::B, &with("storm", &[&storm, more].concat())).report()
}

#[test]
fn a_host_that_ignores_pauses_sends_on_and_counts_them() {
    let sent = Cell::new(Value::Null);
    let (report, _) = paused_run(&["--ignore-pause"], |pair| {
        sent.set(storm3(pair, &["--count", "3", "--xon"])["sent"].clone());
    });
    assert_eq!((sent.take(), &report["pfc_frames"]), (json!(3), &json!(4)));
    assert_eq!((&report["xoff"][3], &report["pause_ns"][3]), (&json!(0), &json!(0)));
    assert_eq!(report["impairments"]["xoff_ignored"], json!([0, 0, 0, 3, 0, 0, 0, 0]));
    assert_eq!(report["impairments"]["xon_lost"][3], json!(1));
}

#[test]
fn a_slow_host_begins_and_ends_its_pause_late() {
    let sent = Cell::new(Value::Null);
    let (report, [paused, _]) = paused_run(&["--delay-pause", "150ms"], |pair| {
        sent.set(storm3(pair, &["--count", "1"]));
    });
    assert_eq!((&report["xoff"][3], &report["xon"][3]), (&json!(1), &json!(0)));
    assert_eq!(report["pause_ns"][3], json!(307_200_000), "as long as without the delay");
    let impairments = &report["impairments"];
    assert_eq!(
        (&impairments["frames_delayed"], &impairments["frames_held"]),
        (&json!(1), &json!(0))
    );
    let sent = sent.take()["first_pause"]["monotonic_ns"].as_u64().unwrap() as f64 / 1e6;
    let (from, to) = longest_gap(&paused);
    assert!(to - from > 270.0, "sent at {sent}, silent {from}..{to}");
    // Without the delay the silence would begin within 2 ms and end after 307 ms.
    assert!(from > sent + 15.0, "sent at {sent}, silent {from}..{to}");
    assert!(to - sent > 150.0 + 307.0, "sent at {sent}, silent {from}..{to}");
}

#[test]
fn a_lost_xon_leaves_the_pause_to_its_timer() {
    let (report, [paused, _]) = paused_run(&["--lose-xon", "1"], |pair| {
        let storm = storm3(pair, &["--count", "1", "--xon"]);
        assert_eq!((&storm["sent"], &storm["xons_sent"]), (&json!(1), &json!(1)));
    });
    assert_eq!((&report["pfc_frames"], &report["xon"][3]), (&json!(2), &json!(0)));
    assert_eq!(report["impairments"]["xon_lost"], json!([0, 0, 0, 1, 0, 0, 0, 0]));
    assert_eq!(report["pause_ns"][3], json!(307_200_000));
    let (from, to) = longest_gap(&paused);
    assert!(to - from > 270.0, "silent {from}..{to}");
}

#[test]
fn replayed_frames_are_captured_byte_by_byte() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/cases/");
    for file in
        ["09_vlan_qinq_ecn", "11_pfc_cev0", "15_reserved_group_addresses", "32_ipv6_traffic_class"]
    {
        let pair = Pair::new();
        let source = format!("{cases}{file}.hex");
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("frames.hex");
        let to_file = ["--hex", target.to_str().unwrap()];
        let capture = pair.start(End::B, &with("capture", &to_file));
        let report = pair.start(End::A, &with("replay", &["--hex", &source])).report();
        sleep(Duration::from_millis(300));
        capture.terminate();
        capture.report();
        let frames = |path: &str| -> Vec<String> {
            let text = fs::read_to_string(path).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            lines.map(|line| line.rsplit_once(" : ").unwrap().1.to_owned()).collect()
        };
        let (sent, captured) = (frames(&source), frames(target.to_str().unwrap()));
        assert_eq!(report["sent"], json!(sent.len()));
        assert_eq!(sent, captured, "{file}");
    }
}

#[test]
fn replay_repeats_selects_and_reads_captures() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let pcap = folder.path().join("two.pcap");
    let mut file = Vec::new();
    let words: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1];
    words.iter().for_each(|word| file.extend(word.to_le_bytes()));
    for fill in [0x11, 0x22] {
        [0u32, 0, 60, 60].iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend([fill; 60]);
    }
    fs::write(&pcap, file).unwrap();
    let from_pcap = ["--pcap", pcap.to_str().unwrap(), "--repeat", "500", "--gap", "10"];
    let receiver = pair.start(End::B, &with("receive", &[]));
    let report = pair.start(End::A, &with("replay", &from_pcap)).report();
    assert_eq!((&report["frames"], &report["sent"]), (&json!(2), &json!(1000)));
    let hex = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/cases/11_pfc_cev0.hex");
    let only = ["--hex", hex, "--only", "cev", "--repeat", "3"];
    let report = pair.start(End::A, &with("replay", &only)).report();
    assert_eq!((&report["frames"], &report["sent"]), (&json!(3), &json!(9)));
    sleep(Duration::from_millis(300));
    receiver.terminate();
    let report = receiver.report();
    assert_eq!((&report["ended_by"], &report["other_frames"]), (&json!("signal"), &json!(1000)));
    // Two of the three frames named "cev" enable no priority, the third one pauses.
    assert_eq!(report["invalid_mac_control"]["empty_vector"], json!(6));
    assert_eq!((&report["pfc_frames"], &report["xoff"][3]), (&json!(3), &json!(3)));
}

#[test]
fn a_receiver_makes_itself_known_unless_it_is_silent() {
    for (more, frames) in [(&[][..], 1), (&["--silent"], 0)] {
        let pair = Pair::new();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("frames.hex");
        let to_file = ["--hex", file.to_str().unwrap(), "--ethertype", "0x8035"];
        let capture = pair.start(End::A, &with("capture", &to_file));
        let receiver = pair.start(End::B, &with("receive", more));
        sleep(Duration::from_millis(200));
        receiver.terminate();
        assert_eq!(receiver.report()["sent"], json!(0), "it counts data");
        capture.terminate();
        capture.report();
        let captured = fs::read_to_string(&file).unwrap();
        assert_eq!(captured.lines().count(), frames, "{captured}");
        let from_b = format!("ffffffffffff{}8035", MAC_B.replace(':', ""));
        assert!(captured.lines().all(|line| line.contains(&from_b)), "{captured}");
    }
}

#[test]
fn what_can_not_work_is_said_and_exits_1() {
    let pair = Pair::new();
    let flow = ["--flow", "qp=1,count=1"];
    let distinct: BTreeSet<String> = [
        vec!["receive", "--interface", "eth9"],
        [&["send", "--interface", "veth0"][..], &flow].concat(),
        [&["send", "--interface", "veth0", "--to-mac", MAC_B][..], &flow].concat(),
        [&["send", "--interface", "veth0", "--flow", "size=57"][..], &TO_B].concat(),
        vec!["replay", "--interface", "veth0", "--hex", "/nonexistent"],
    ]
    .iter()
    .map(|arguments| {
        let (code, message) = pair.fail(End::A, arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {message}");
        assert!(message.starts_with("holdfast-endpoint: ") && !message.contains("panicked"));
        message
    })
    .collect();
    assert_eq!(distinct.len(), 5, "{distinct:?}");
    let (code, _) = pair.fail(End::A, &["replay", "--interface", "veth0"]);
    assert_eq!(code, Some(2), "usage");
}
