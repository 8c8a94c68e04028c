//! Learning, flooding, copies, wires, bad frames, on a whole switch in memory (SPEC 2, 3.5, 7).
#![cfg(not(loom))]
#![allow(clippy::expect_used)]

mod lab;

use holdfast_core::drop::DropReason;
use holdfast_core::units::*;
use lab::*;

const STEP: Nanos = Nanos(1_000);

fn deliver(lab: &mut Lab, from: u8, bytes: &[u8]) {
    lab.arrive(from, bytes);
    lab.steps(6, Nanos(20_000));
}

#[test]
fn unknown_destinations_flood_and_are_learned() {
    for workers in [1, 2] {
        let mut lab = Lab::new(workers, 4, port_spec());
        deliver(&mut lab, 0, &ipv4(0, 1, 0, 0, 100));
        let copies: Vec<usize> = (0..4).map(|n| lab.sent(n).len()).collect();
        assert_eq!(copies, [0, 1, 1, 1], "{workers} workers");
        deliver(&mut lab, 1, &ipv4(1, 0, 0, 0, 100));
        let copies: Vec<usize> = (0..4).map(|n| lab.sent(n).len()).collect();
        assert_eq!(copies, [1, 0, 0, 0], "the reply goes to where station 0 was seen");
        assert_eq!(lab.port(0).counters().flooded, 1);
        lab.assert_idle();
    }
}

#[test]
fn a_mac_that_moves_is_found_at_its_new_port_at_once() {
    let mut lab = Lab::new(1, 3, port_spec());
    lab.teach();
    deliver(&mut lab, 2, &ipv4(1, 0, 0, 0, 64));
    deliver(&mut lab, 0, &ipv4(0, 1, 0, 0, 64));
    assert_eq!((lab.sent(1).len(), lab.sent(2).len()), (0, 1));
}

#[test]
fn copies_are_charged_once_and_obey_the_budget() {
    for workers in [1, 2] {
        let mut spec = profile_spec(vec![port_spec(); 4]);
        spec.flood_limit = 5;
        let mut lab = Lab::with_profile(workers, spec);
        for n in 1..4 {
            lab.hold(n, true);
        }
        for _ in 0..2 {
            lab.arrive(0, &ipv4(0, 9, 26, 2, 300));
        }
        lab.steps(4, STEP);
        let held = lab.pg(0, LOSSLESS);
        assert_eq!(held.guaranteed.0 + held.service.0, 4, "two frames of two cells, once each");
        let counters = lab.port(0).counters();
        assert_eq!(counters.dropped.get(DropReason::FloodLimit), 1, "the sixth copy");
        assert_eq!(counters.lossless_violations, 0);
        for n in 1..4 {
            lab.hold(n, false);
        }
        lab.steps(20, Nanos(20_000));
        assert_eq!((1..4).map(|n| lab.sent(n).len()).sum::<usize>(), 5);
        lab.assert_idle();
    }
}

#[test]
fn mac_control_and_reserved_groups_end_at_the_port() {
    let mut lab = Lab::new(1, 3, port_spec());
    let vectors = include_str!("../../../tests/fixtures/cases/15_reserved_group_addresses.hex");
    let mut frames = 0;
    for line in vectors.lines().filter(|line| !line.starts_with('#')) {
        let hex = line.rsplit(':').next().expect("name : hex").trim();
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).expect("hex"))
            .collect();
        deliver(&mut lab, 0, &bytes);
        frames += 1;
    }
    assert_eq!(frames, 16);
    assert!((0..3).all(|n| lab.sent(n).is_empty()));
    assert_eq!(lab.port(0).counters().dropped.get(DropReason::ReservedGroup), 15);
    assert!(lab.workers[0].shared().fdb.is_empty(), "nothing was learned");
    lab.assert_idle();
}

#[test]
fn mac_control_to_a_unicast_address_is_not_forwarded_either() {
    let mut lab = Lab::new(1, 3, port_spec());
    lab.teach();
    let mut frame = ipv4(0, 1, 0, 0, 64);
    frame[12..18].copy_from_slice(&[0x88, 0x08, 0x01, 0x01, 0, 8]);
    deliver(&mut lab, 0, &frame);
    assert!((0..3).all(|n| lab.sent(n).is_empty()));
    let counters = lab.port(0).counters();
    assert_eq!(counters.received.frames, 0);
    assert!(counters.dropped.iter().all(|(_, n)| n == 0), "neither data nor a drop");
}

#[test]
fn frames_of_every_short_length_and_random_bytes_are_survived() {
    let mut lab = Lab::new(1, 2, port_spec());
    let template = ipv4(0, 1, 26, 2, 80);
    let mut random = 1u64;
    for len in 0..=60 {
        deliver(&mut lab, 0, &template[..len]);
        for _ in 0..20 {
            let bytes: Vec<u8> = (0..len)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (random >> 56) as u8
                })
                .collect();
            deliver(&mut lab, 0, &bytes);
        }
    }
    assert_eq!(lab.port(0).counters().dropped.get(DropReason::Parse), 14 * 21);
    lab.assert_idle();
}

#[test]
fn a_frame_longer_than_the_mtu_allows_is_dropped_by_name() {
    let mut spec = port_spec();
    spec.mtu = 1500;
    let mut lab = Lab::new(1, 2, spec);
    lab.teach();
    deliver(&mut lab, 0, &ipv4(0, 1, 0, 0, 1526));
    deliver(&mut lab, 0, &ipv4(0, 1, 0, 0, 1527));
    assert_eq!(lab.sent(1).len(), 1);
    assert_eq!(lab.port(0).counters().dropped.get(DropReason::TooLong), 1);
}

#[test]
fn frames_between_workers_are_handed_over_and_none_is_lost() {
    let mut lab = Lab::new(2, 2, port_spec());
    lab.teach();
    for n in 0..500 {
        lab.arrive(0, &ipv4(0, 1, if n % 2 == 0 { 26 } else { 0 }, 2, 64 + n));
        lab.arrive(1, &ipv4(1, 0, 26, 2, 64 + n));
        lab.steps(2, Nanos(20_000));
    }
    lab.steps(50, Nanos(20_000));
    assert_eq!((lab.sent(0).len(), lab.sent(1).len()), (500, 500));
    assert_eq!(lab.port(0).counters().handed_over, 500);
    lab.assert_idle();
}

#[test]
fn a_port_that_goes_down_gives_everything_back() {
    for workers in [1, 2] {
        let mut lab = Lab::new(workers, 2, port_spec());
        lab.teach();
        lab.hold(1, true);
        for _ in 0..200 {
            lab.arrive(0, &ipv4(0, 1, 26, 2, 1500));
            lab.steps(1, STEP);
        }
        lab.wires[1].borrow_mut().set_up(false);
        lab.steps(4, STEP);
        assert_eq!(lab.port(1).counters().dropped.get(DropReason::PortDown), 200);
        assert_eq!(lab.port(0).counters().lossless_violations, 0);
        lab.assert_idle();
    }
}
