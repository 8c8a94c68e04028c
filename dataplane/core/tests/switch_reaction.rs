//! How soon a port stops after an XOFF (fault S19): within the time that a peer may take, at every
//! speed, in virtual time. What was handed to the TX ring before is bounded, and leaves.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lab;

use holdfast_core::units::*;
use holdfast_wire::mac_control::encode_pfc;
use lab::*;

/// Gb/s, and the quanta that a receiver of a pause may take to obey it.
const ALLOWED: [(u64, u16); 7] =
    [(10, 67), (25, 80), (40, 118), (50, 147), (100, 394), (200, 453), (400, 905)];
/// From one step to the next.
const STEP: Nanos = Nanos(100);
const DSCP: u8 = 26;

/// A switch whose port 1 sends lossless frames of `len` bytes at its rate, and has more to send.
fn busy(gigabits: u64, workers: usize, len: usize) -> Lab {
    let mut spec = port_spec();
    spec.speed = BitRate::gigabits(gigabits);
    let mut lab = Lab::new(workers, 2, spec);
    lab.teach();
    lab.hold(1, true);
    for _ in 0..500 {
        lab.arrive(0, &ipv4(0, 1, DSCP, 2, len));
        lab.steps(1, STEP);
    }
    lab.hold(1, false);
    // Until it sends.
    while lab.sent(1).is_empty() {
        lab.steps(1, STEP);
    }
    lab
}

#[test]
fn xoff_stops_a_port_within_the_allowed_time_at_every_speed() {
    for (gigabits, quanta) in ALLOWED {
        let allowed = Quanta(quanta).at(BitRate::gigabits(gigabits));
        for (workers, len) in [(1, 64), (2, 64), (1, 1_024), (2, 1_500)] {
            let mut lab = busy(gigabits, workers, len);
            let mut bytes = [0; 60];
            encode_pfc(&mut bytes, station(1), 1 << 3, &[u16::MAX; 8]);
            lab.arrive(1, &bytes);
            let heard = lab.now;
            let mut last = heard;
            for _ in 0..200 {
                lab.steps(1, STEP);
                if !lab.sent(1).is_empty() {
                    last = lab.now;
                }
            }
            let late = last.since(heard);
            assert!(late <= allowed, "{gigabits}G, {len} bytes: {late:?} of {allowed:?}");
            let waiting = lab.port(1).queue(queue(3)).frames();
            assert!(waiting > 0, "there was more to send");
        }
    }
}

/// XON lets it go on as soon.
#[test]
fn xon_lets_a_port_go_within_the_allowed_time_at_every_speed() {
    for (gigabits, quanta) in ALLOWED {
        let allowed = Quanta(quanta).at(BitRate::gigabits(gigabits));
        let mut lab = busy(gigabits, 1, 1_024);
        let mut bytes = [0; 60];
        encode_pfc(&mut bytes, station(1), 1 << 3, &[u16::MAX; 8]);
        lab.arrive(1, &bytes);
        lab.steps(50, STEP);
        lab.sent(1);
        encode_pfc(&mut bytes, station(1), 1 << 3, &[0; 8]);
        lab.arrive(1, &bytes);
        let heard = lab.now;
        while lab.sent(1).is_empty() {
            lab.steps(1, STEP);
            assert!(lab.now.since(heard) <= allowed, "{gigabits}G");
        }
    }
}
