//! `holdfast deadlock` against switches that answer with the documented example, or with a change
//! to it: there PG 3 of port `in` of switch s1 waits for a queue that a port of nobody here pauses.

use super::{examples, text, ExampleSwitch};
use holdfast_api::message::{Call, ErrorBody, ErrorCode, Outcome};
use serde_json::{json, Value};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

const IN: &str = "02:00:00:00:01:01";

fn example() -> Value {
    let Some(Outcome::Ok(reply)) = examples().remove("show_waits") else { panic!("example") };
    reply
}

/// The switch s1 whose queue is paused by the port with this address.
fn paused_by(mac: &str) -> Value {
    let mut reply = example();
    reply["queues"][0]["paused_by"] = mac.into();
    reply
}

fn socket(switch: &ExampleSwitch) -> String {
    switch.folder.path().join("s.sock").display().to_string()
}

fn said(output: &std::process::Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_chain_is_shown_with_its_end_and_is_no_finding() {
    let switch = ExampleSwitch::start();
    let output = switch.run(&["deadlock"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let chain =
        "  s1 port in pg 3 -> queue 3 of port out, paused by 02:00:00:00:02:01: a host, or \
                 a switch that wasn't asked\n1 switch asked: s1; no deadlock.\n";
    assert!(text(&output).ends_with(chain), "{}", text(&output));
}

#[test]
fn a_cycle_over_two_switches_is_found_if_both_still_stand() {
    let s1 = ExampleSwitch::start();
    let mut reply = paused_by(IN);
    reply["switch"] = "s2".into();
    reply["ports"] = json!([{"port": "in", "mac": "02:00:00:00:02:01"}]);
    let s2 = ExampleSwitch::answering("show_waits", reply.clone());
    let output = s1.run(&["deadlock", &socket(&s1), &socket(&s2), &socket(&s1), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let cycle = "s1 port in pg 3 -> s2 port in pg 3 -> s1 port in pg 3";
    assert!(said(&output).contains(&format!("deadlock: {cycle}\n")), "{}", said(&output));
    let report: Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!(
        (&report["deadlocks"][0]["text"], &report["switches"]),
        (&cycle.into(), &json!(["s1", "s2"]))
    );
    // Each was asked twice, also the one that was named twice.
    for switch in [&s1, &s2] {
        assert_eq!(switch.asked.try_iter().count(), 2);
    }
    // The second time it is another suspicion: something has moved.
    let times = AtomicU32::new(0);
    let moving = ExampleSwitch::with(move || {
        let mut answers = examples();
        let mut now = reply.clone();
        now["pgs"][0]["suspected_at_ns"] = times.fetch_add(1, Ordering::Relaxed).into();
        answers.insert("show_waits", Outcome::Ok(now));
        answers
    });
    let output = s1.run(&["deadlock", &socket(&s1), &socket(&moving)]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).starts_with("Cycle of pauses that still moves, no deadlock: s1 port in"));
}

#[test]
fn a_switch_that_does_not_answer_is_named_and_a_deadlock_counts_more() {
    let chain = ExampleSwitch::start();
    let output = chain.run(&["deadlock", &socket(&chain), "/nowhere/s2.sock"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(said(&output).contains("no switch answers at /nowhere/s2.sock"), "{}", said(&output));
    assert!(text(&output).contains("Not asked: no switch answers at /nowhere/s2.sock"));
    assert!(text(&output).contains("s1 port in pg 3 -> queue 3"), "{}", text(&output));
    let output = chain.run(&["deadlock", "no-such-switch"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(said(&output).contains("/run/holdfast/no-such-switch.sock"), "{}", said(&output));
    let own = ExampleSwitch::answering("show_waits", paused_by(IN));
    let output = own.run(&["deadlock", &socket(&own), "/nowhere/s2.sock"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).starts_with("Deadlock: s1 port in pg 3 -> s1 port in pg 3\n"));
}

/// An answer that is longer than a line is asked for in parts.
#[test]
fn a_switch_with_too_much_to_tell_is_asked_port_by_port() {
    let times = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&times);
    let switch = ExampleSwitch::with(move || {
        let mut answers = examples();
        if counted.fetch_add(1, Ordering::Relaxed) == 0 {
            let body = ErrorBody::new(ErrorCode::TooLong, "the answer would be longer than a line");
            answers.insert("show_waits", Outcome::Error(body));
        }
        answers
    });
    let output = switch.run(&["deadlock"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(text(&output).contains("s1 port in pg 3 -> queue 3 of port out"));
    let asked: Vec<Call> = switch.asked.try_iter().collect();
    let [Call::ShowWaits(all), Call::ShowPorts(_), Call::ShowWaits(one)] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!((all.port.as_deref(), one.port.as_deref()), (None, Some("h1")));
}
