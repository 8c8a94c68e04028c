use super::*;
use crate::cli::assert::Lossless;
use holdfast_api::message::{BufferReply, EcnReply, PgReply, PortsReply, QueueReply, Response};
use holdfast_api::message::{Outcome, Request};
use holdfast_core::drop::DropReason;
use serde::de::DeserializeOwned;

/// The reply of the documentation's example of a call.
fn example<T: DeserializeOwned>(call: &str) -> T {
    let text = include_str!("../../../api/README.md");
    let mut lines = text.lines().filter(|line| line.starts_with("{\""));
    while let (Some(request), Some(response)) = (lines.next(), lines.next()) {
        if Request::parse(request.as_bytes()).unwrap().call.name() == call {
            let response: Response = serde_json::from_str(response).unwrap();
            let Outcome::Ok(value) = response.outcome else { panic!("{call}") };
            return serde_json::from_value(value).unwrap();
        }
    }
    panic!("no example of {call}")
}

/// Two ports, h1 with PG 3 lossless that was paused, h2 with one that wasn't; nothing held or lost.
fn sight() -> Sight {
    let mut ports: PortsReply = example("show_ports");
    let mut pgs: PgReply = example("show_pg");
    let mut queues: QueueReply = example("show_queue");
    let ecn: EcnReply = example("show_ecn");
    let mut buffer: BufferReply = example("show_buffer");
    let pg = &mut pgs.pgs[0];
    pg.occupancy = Default::default();
    pg.watermark.user.headroom = 12;
    (pg.thresholds.headroom, pg.xoff_edges, pg.xon_edges) = (100, 5, 4);
    let mut other = (ports.ports[0].clone(), pg.clone());
    other.0.port = "h2".to_owned();
    other.1.port = "h2".to_owned();
    other.1.watermark = Default::default();
    (other.1.xoff_edges, other.1.xon_edges) = (0, 0);
    ports.ports.push(other.0);
    pgs.pgs.push(other.1);
    queues.queues.iter_mut().for_each(|queue| queue.occupancy = 0);
    buffer.pools.iter_mut().for_each(|pool| pool.lent = 0);
    (buffer.egress.lent, buffer.flood_copies) = (0, 0);
    Sight {
        ports: ports.ports,
        pgs: pgs.pgs,
        queues: queues.queues,
        ecn: ecn.queues,
        buffer,
        profile: ("lab".to_owned(), "0123456789abcdef".repeat(4)),
    }
}

fn none() -> AssertArguments {
    AssertArguments::default()
}

fn holds(sight: &Sight, wanted: &AssertArguments) -> bool {
    let verdict = judge(sight, wanted);
    assert!(!verdict.checks.is_empty());
    assert_eq!(verdict.passed, verdict.failed().is_empty());
    verdict.passed
}

/// Each limit holds at its value and fails one beside it, of the sum and of a port alone.
#[test]
fn limits_hold_at_their_value_and_fail_beside_it() {
    let mut sight = sight();
    (sight.ports[0].lossless_violations, sight.ports[1].lossless_violations) = (2, 3);
    (sight.ports[0].receive_overrun, sight.ports[1].receive_overrun) = (2, 3);
    for (number, frames) in [(0, 2), (1, 3)] {
        sight.ports[number].drops.insert("wred".to_owned(), frames);
    }
    sight.pgs[1].xoff_edges = 0;
    let wred = |max| vec![Drops { reason: DropReason::Wred, max }];
    let most = [
        |max| AssertArguments { violations: Some(max), ..none() },
        |max| AssertArguments { overrun: Some(max), ..none() },
    ];
    for wanted in most {
        assert!(holds(&sight, &wanted(5)) && !holds(&sight, &wanted(4)));
        let at = |port: &str, max| AssertArguments { port: vec![port.to_owned()], ..wanted(max) };
        assert!(holds(&sight, &at("h2", 3)) && !holds(&sight, &at("h2", 2)));
        assert!(holds(&sight, &at("h1", 2)) && !holds(&sight, &at("h1", 1)));
        let both = AssertArguments { port: vec!["h1".into(), "h2".into()], ..wanted(2) };
        assert_eq!(judge(&sight, &both).failed().len(), 1, "only h2 has more");
    }
    assert!(holds(&sight, &AssertArguments { drops: wred(5), ..none() }));
    assert!(!holds(&sight, &AssertArguments { drops: wred(4), ..none() }));
    for (wanted, more) in [
        (AssertArguments { xoff: Some(5), ..none() }, AssertArguments { xoff: Some(6), ..none() }),
        (
            AssertArguments { marked: Some(900), ..none() },
            AssertArguments { marked: Some(901), ..none() },
        ),
    ] {
        assert!(holds(&sight, &wanted) && !holds(&sight, &more));
    }
}

#[test]
fn headroom_is_a_share_of_its_size() {
    let mut sight = sight();
    let at = |percent| AssertArguments { headroom_max: Some(percent), ..none() };
    assert!(holds(&sight, &at(12)) && !holds(&sight, &at(11)));
    sight.pgs[0].thresholds.headroom = 1_000;
    sight.pgs[0].watermark.user.headroom = 801;
    assert!(!holds(&sight, &at(80)), "a tenth of a percent too much is too much");
    let found = judge(&sight, &at(80)).checks.remove(0).found;
    assert_eq!(found, "80.1 % at h1:3: 801 of 1000 cells");
    sight.pgs[0].thresholds.headroom = 0;
    assert!(!holds(&sight, &at(100)), "cells in a Headroom that was made 0");
    sight.pgs[0].watermark.user.headroom = 0;
    assert!(holds(&sight, &at(0)));
    sight.pgs.iter_mut().for_each(|pg| pg.lossless = false);
    assert!(!holds(&sight, &at(100)), "nothing was looked at");
}

#[test]
fn lossless_wants_no_loss_and_evidence_of_each_kind() {
    let pg = |port: &str| vec![Lossless::Pg { port: port.to_owned(), pg: 3 }];
    let h1 = AssertArguments { lossless: pg("h1"), ..none() };
    assert!(holds(&sight(), &h1));
    let lacks = |change: fn(&mut PgStatus), lack: &str| {
        let mut sight = sight();
        change(&mut sight.pgs[0]);
        let verdict = judge(&sight, &h1);
        assert_eq!(verdict.failed(), ["evidence h1:3"]);
        let found = &verdict.checks[1].found;
        assert!(found.starts_with(&format!("{lack}: ")), "{found}");
        let without = AssertArguments { lossless: pg("h1"), no_evidence: true, ..none() };
        assert!(holds(&sight, &without));
    };
    lacks(|pg| pg.xoff_edges = 0, "never in XOFF");
    lacks(|pg| pg.xon_edges = 0, "no XON");
    lacks(|pg| pg.watermark.user.headroom = 0, "Headroom never used");
    lacks(|pg| (pg.xoff_edges, pg.xon_edges) = (0, 0), "never in XOFF, no XON");
    let loses = |change: fn(&mut Sight)| {
        let mut sight = sight();
        change(&mut sight);
        assert_eq!(judge(&sight, &h1).failed(), ["lossless h1:3"]);
    };
    loses(|sight| sight.pgs[0].lossless_violations = 1);
    loses(|sight| sight.ports[0].receive_overrun = 1);
    loses(|sight| {
        sight.pgs[0].drops.insert("lossy_ingress".to_owned(), 1);
    });
    let mut lossy = sight();
    lossy.pgs[0].lossless = false;
    assert!(!holds(&lossy, &h1), "a lossy PG is not lossless by luck");
    assert!(!holds(&sight(), &AssertArguments { lossless: pg("h9"), ..none() }));
}

#[test]
fn all_wants_no_loss_of_each_and_evidence_of_one() {
    let all = AssertArguments { lossless: vec![Lossless::All], ..none() };
    assert!(holds(&sight(), &all), "h2 was never paused, h1 was");
    let mut lost = sight();
    lost.ports[1].receive_overrun = 1;
    assert_eq!(judge(&lost, &all).failed(), ["lossless h2:3"]);
    let mut quiet = sight();
    quiet.pgs[0].xon_edges = 0;
    let verdict = judge(&quiet, &all);
    assert_eq!(verdict.failed(), ["evidence all"]);
    assert!(verdict.checks[2].found.contains("nearest is h1:3: no XON"), "{verdict:?}");
    let mut lossy = sight();
    lossy.pgs.iter_mut().for_each(|pg| pg.lossless = false);
    let no_evidence =
        AssertArguments { lossless: vec![Lossless::All], no_evidence: true, ..none() };
    assert!(!holds(&lossy, &no_evidence), "nothing was looked at");
}

#[test]
fn idle_is_no_cell_anywhere() {
    let wanted = AssertArguments { idle: true, ..none() };
    assert!(holds(&sight(), &wanted));
    let changes: [fn(&mut Sight); 7] = [
        |sight| sight.pgs[1].occupancy.guaranteed = 1,
        |sight| sight.pgs[1].occupancy.service = 1,
        |sight| sight.pgs[1].occupancy.headroom = 1,
        |sight| sight.queues[0].occupancy = 1,
        |sight| sight.buffer.pools[0].lent = 1,
        |sight| sight.buffer.egress.lent = 1,
        |sight| sight.buffer.flood_copies = 1,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut busy = sight();
        change(&mut busy);
        assert!(!holds(&busy, &wanted), "{number}");
        // The first three are h2's, the queue isn't h1's either, the rest belongs to no port.
        let at_h1 = AssertArguments { idle: true, port: vec!["h1".to_owned()], ..none() };
        let h1s = busy.queues[0].port == "h1" && number == 3;
        assert_eq!(holds(&busy, &at_h1), !h1s, "{number}");
    }
}

#[test]
fn a_profile_is_named_or_known_by_its_digits() {
    let named = |text: &str| AssertArguments { profile: Some(text.to_owned()), ..none() };
    let full = "0123456789abcdef".repeat(4);
    for right in ["lab", "01234567", "0123456789ABCDEF", full.as_str()] {
        assert!(holds(&sight(), &named(right)), "{right}");
    }
    for wrong in ["la", "", "0123456", "12345678", &format!("{full}0")] {
        assert!(!holds(&sight(), &named(wrong)), "{wrong}");
    }
}

/// A misspelt port must not pass for one without losses.
#[test]
fn a_port_that_does_not_exist_fails_every_check() {
    let nowhere = || AssertArguments { port: vec!["h9".to_owned()], ..none() };
    for wanted in [
        AssertArguments { violations: Some(9), ..nowhere() },
        AssertArguments { overrun: Some(9), ..nowhere() },
        AssertArguments { drops: vec![Drops { reason: DropReason::Wred, max: 9 }], ..nowhere() },
        AssertArguments { xoff: Some(0), ..nowhere() },
        AssertArguments { marked: Some(0), ..nowhere() },
        AssertArguments { headroom_max: Some(100), ..nowhere() },
        AssertArguments { idle: true, ..nowhere() },
    ] {
        let verdict = judge(&sight(), &wanted);
        assert!(!verdict.passed && verdict.checks[0].found.contains("there are h1, h2"));
    }
}
