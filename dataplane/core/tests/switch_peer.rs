//! Whether a peer obeys PFC, as its port's owner sees it (SPEC 4.3).
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

mod lab;

use holdfast_core::pfc::peer::{GRACE, WINDOW};
use holdfast_core::pfc::Peer;
use holdfast_core::profile::{PortSpec, Resume};
use holdfast_core::units::{BitRate, Nanos, Quanta, Time};
use lab::*;

const STEP: Nanos = Nanos(100_000);
/// 14 of them in a step are 10 Gbit/s.
const LEN: usize = 9000;
const LINE_RATE: usize = 14;

/// A sender of lossless frames behind port 0, to port 1.
struct Sender {
    lab: Lab,
    obeys: bool,
    /// How long it takes until it does what it is told.
    response: Nanos,
    /// Frames a step while it isn't paused.
    rate: usize,
    len: usize,
    speed: BitRate,
    /// What it was told last: paused until then, from the response on.
    told: Vec<(Time, Time)>,
    sent: u64,
    /// Everything that was known on the way.
    seen: Vec<Peer>,
}

impl Sender {
    fn new(workers: usize, spec: PortSpec) -> Self {
        let speed = spec.speed;
        // The way out is slower: what is held and let go drains in time.
        let mut lab =
            Lab::with_profile(workers, profile_spec(vec![spec.clone(), slow(spec), port_spec()]));
        lab.teach();
        Self {
            lab,
            obeys: true,
            response: Nanos(0),
            rate: LINE_RATE,
            len: LEN,
            speed,
            told: Vec::new(),
            sent: 0,
            seen: Vec::new(),
        }
    }

    fn is_paused(&self, now: Time) -> bool {
        let told = self.told.iter().rev().find(|(at, _)| *at <= now);
        self.obeys && told.is_some_and(|(_, until)| now < *until)
    }

    fn hear(&mut self) {
        let now = self.lab.now;
        for frame in self.lab.control(0) {
            assert_eq!(frame[17], 8, "priority 3 only");
            let quanta = Quanta(u16::from_be_bytes([frame[24], frame[25]]));
            let until = now.after(self.response).after(quanta.at(self.speed));
            self.told.push((now.after(self.response), until));
        }
    }

    /// What it sends in `span` in which the switch does nothing.
    fn send(&mut self, span: Nanos) {
        for _ in 0..span.0 / STEP.0 {
            for frame in 0..self.rate {
                let at = self.lab.now.after(Nanos(STEP.0 * frame as u64 / self.rate as u64));
                if !self.is_paused(at) {
                    self.lab.arrive(0, &ipv4(0, 1, 26, 2, self.len));
                    self.sent += 1;
                }
            }
            self.lab.now = self.lab.now.after(STEP);
        }
    }

    /// The worker and the sender go on for so long.
    fn go(&mut self, span: Nanos) -> Peer {
        let end = self.lab.now.after(span);
        while self.lab.now < end {
            self.send(STEP);
            self.lab.steps(1, Nanos(0));
            self.hear();
            let known = self.lab.port(0).peer();
            if self.seen.last() != Some(&known) {
                self.seen.push(known);
            }
        }
        self.lab.port(0).peer()
    }

    /// The worker stands still for so long.
    fn stall(&mut self, span: Nanos) {
        self.send(span);
    }

    fn told_xoff(&self) -> bool {
        self.lab.port(0).pause_sender().paused().iter().next().is_some()
    }
}

/// The same at 40 % of the speed.
fn slow(mut spec: PortSpec) -> PortSpec {
    spec.speed = BitRate::new(spec.speed.bits_per_second() / 5 * 2).unwrap();
    spec
}

fn held(workers: usize) -> Sender {
    let mut sender = Sender::new(workers, port_spec());
    sender.lab.hold(1, true);
    sender
}

#[test]
fn a_sender_that_obeys_is_seen_to() {
    for workers in [1, 2] {
        let mut sender = held(workers);
        assert_eq!(sender.go(Nanos::millis(2)), Peer::Unknown, "no evidence yet");
        assert!(sender.told_xoff());
        assert_eq!(sender.go(Nanos(GRACE.0 + WINDOW.0)), Peer::Obeys);
        // Several refreshes later.
        assert_eq!(sender.go(Nanos::millis(50)), Peer::Obeys);
        assert_eq!(sender.seen, [Peer::Unknown, Peer::Obeys]);
    }
}

#[test]
fn a_sender_that_goes_on_is_deaf_until_it_obeys() {
    for workers in [1, 2] {
        let mut sender = held(workers);
        sender.obeys = false;
        sender.go(Nanos(GRACE.0 + 2 * WINDOW.0));
        assert_eq!(sender.lab.port(0).peer(), Peer::Unknown, "two windows aren't over");
        assert_eq!(sender.go(Nanos::millis(5)), Peer::Deaf);
        assert_eq!(sender.go(Nanos::millis(30)), Peer::Deaf);
        let violations = sender.lab.port(0).counters().lossless_violations;
        assert!(violations > 0, "most of it was dropped, and counts all the same");
        sender.obeys = true;
        assert_eq!(sender.go(Nanos(2 * WINDOW.0 + STEP.0)), Peer::Obeys);
        assert_eq!(sender.seen, [Peer::Unknown, Peer::Deaf, Peer::Obeys]);
        // The other port's peer was never paused.
        assert_eq!(sender.lab.port(1).peer(), Peer::Unknown);
    }
}

/// A third of the line's rate is no obedience either.
#[test]
fn a_slower_sender_is_deaf_too() {
    let mut sender = held(1);
    (sender.obeys, sender.rate) = (false, LINE_RATE / 3);
    assert_eq!(sender.go(Nanos::millis(40)), Peer::Deaf);
}

/// Frames on their way: as many as Headroom and a full RX ring hold come after the XOFF.
#[test]
fn what_was_under_way_is_not_held_against_the_peer() {
    let mut sender = held(1);
    let bytes = 512 * u64::from(port_spec().largest_frame()) + 512 * 256;
    sender.response = Nanos(bytes / (LINE_RATE * LEN) as u64 * STEP.0);
    assert!(sender.response > Nanos::millis(3));
    assert_eq!(sender.go(Nanos::millis(40)), Peer::Obeys);
    // So slow that it takes two windows, but not more in all.
    let mut sender = held(1);
    (sender.response, sender.rate) = (Nanos(2 * WINDOW.0 + 2 * GRACE.0), 2);
    assert_eq!(sender.go(Nanos::millis(60)), Peer::Obeys);
    assert!(!sender.seen.contains(&Peer::Deaf), "{:?}", sender.seen);
}

/// The pause runs out while the worker has no core, and the peer is right to send then.
#[test]
fn a_worker_that_stands_still_is_no_deaf_peer() {
    for stall in [4, 9, 15, 50].map(Nanos::millis) {
        let mut sender = held(1);
        for _ in 0..20 {
            sender.go(Nanos(3 * WINDOW.0 / 10));
            sender.stall(stall);
        }
        assert!(sender.sent > 20 * 14, "it sent in the stalls: {}", sender.sent);
        assert!(!sender.seen.contains(&Peer::Deaf), "{stall:?}: {:?}", sender.seen);
    }
}

/// Nor does a deaf peer obey because the worker didn't look.
#[test]
fn a_deaf_peer_is_not_excused_by_a_stall() {
    let mut sender = held(1);
    sender.obeys = false;
    for _ in 0..20 {
        sender.go(Nanos::millis(1));
        sender.stall(Nanos::millis(50));
    }
    assert!(!sender.seen.contains(&Peer::Obeys), "{:?}", sender.seen);
    // While what waits for room fills the whole ring nothing is seen of what comes.
    sender.lab.hold(1, false);
    assert_eq!(sender.go(Nanos::millis(40)), Peer::Deaf);
    sender.stall(Nanos::millis(50));
    assert_eq!(sender.go(Nanos::millis(1)), Peer::Deaf);
}

/// Nothing is concluded from a window that the worker didn't end in time, nor from what it has not
/// looked at yet.
#[test]
fn a_window_that_was_slept_through_is_not_judged() {
    let mut spec = port_spec();
    // A pause lasts 33 ms.
    spec.speed = BitRate::gigabits(1);
    let paused = || {
        let mut sender = Sender::new(1, spec.clone());
        sender.lab.hold(1, true);
        while !sender.told_xoff() {
            sender.go(STEP);
        }
        assert_eq!(sender.go(Nanos(GRACE.0 + 2 * STEP.0)), Peer::Unknown);
        sender
    };
    let mut sender = paused();
    sender.stall(Nanos(2 * WINDOW.0 + STEP.0));
    assert_eq!(sender.go(STEP), Peer::Unknown);
    assert_eq!(sender.go(WINDOW), Peer::Obeys);
    let mut sender = paused();
    (sender.obeys, sender.len) = (false, 128);
    for _ in 0..20 {
        sender.stall(Nanos(3 * WINDOW.0 / 2));
        sender.go(STEP);
    }
    assert_eq!(sender.seen, [Peer::Unknown], "a ring full of small frames is no silence");
}

#[test]
fn xoff_and_xon_in_turn_make_nobody_deaf() {
    for span in [1, 3, 12].map(Nanos::millis) {
        let mut sender = held(1);
        sender.response = Nanos(300_000);
        for round in 0..60 {
            sender.lab.hold(1, round % 2 == 0);
            sender.go(span);
        }
        let edges = sender
            .lab
            .port(0)
            .pause_sender()
            .transitions(holdfast_core::ids::Priority::new(3).unwrap());
        assert!(edges > 20, "{edges}");
        assert!(!sender.seen.contains(&Peer::Deaf), "{span:?}: {:?}", sender.seen);
    }
}

/// Pauses that end by themselves, and pauses so short that each refresh comes too late.
#[test]
fn the_end_of_a_pause_is_the_peers_to_use() {
    let mut spec = port_spec();
    spec.pfc.resume = Resume::Expire;
    let mut sender = Sender::new(1, spec);
    for round in 0..60 {
        sender.lab.hold(1, round % 2 == 0);
        sender.go(Nanos::millis(5));
    }
    assert!(!sender.seen.contains(&Peer::Deaf), "{:?}", sender.seen);
    // 1000 quanta are 52 us, half a step: as much comes as leaves.
    let mut spec = port_spec();
    spec.pfc.quanta = Quanta(1000);
    let mut sender = Sender::new(1, spec);
    sender.go(Nanos::millis(100));
    assert!(sender.told_xoff() && sender.sent > 5_000, "it was right to send: {}", sender.sent);
    assert!(!sender.seen.contains(&Peer::Deaf), "{:?}", sender.seen);
}

/// What a deaf peer has left behind, and what still waits, says nothing of the one that obeys now.
#[test]
fn frames_that_wait_for_room_hide_no_obedience() {
    let mut sender = held(1);
    sender.obeys = false;
    // So late that the rest of a burst waits; the ring has room for more.
    sender.go(Nanos::millis(2));
    sender.rate = 3;
    sender.stall(Nanos::millis(10));
    sender.obeys = true;
    assert_eq!(sender.go(Nanos::millis(30)), Peer::Obeys);
    assert!(sender.lab.port(0).late_frames() > 0, "nothing waits");
}

#[test]
fn a_link_that_went_down_may_bring_another_peer() {
    let mut sender = held(1);
    sender.obeys = false;
    assert_eq!(sender.go(Nanos::millis(30)), Peer::Deaf);
    sender.lab.wires[0].borrow_mut().set_up(false);
    assert_eq!(sender.go(STEP), Peer::Unknown);
    sender.lab.wires[0].borrow_mut().set_up(true);
    sender.obeys = true;
    assert_eq!(sender.go(Nanos::millis(15)), Peer::Obeys);
}
