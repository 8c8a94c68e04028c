//! Suspected deadlocks in one switch in memory (SPEC 8): when a PG none of whose frames can move is
//! told, and when not.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lab;

use holdfast_core::profile::*;
use holdfast_core::topology::PortSet;
use holdfast_core::trace::EventKind;
use holdfast_core::units::*;
use holdfast_wire::mac_control::encode_pfc;
use lab::*;

const DETECTION: Nanos = Nanos::millis(200);
const MS: Nanos = Nanos::millis(1);
const LOSSLESS_DSCP: u8 = 26;
/// Frames of four cells that put the PG into XOFF: Guaranteed 36, XOFF 1000.
const ENOUGH: usize = 280;

fn lab_of(workers: usize, watchdog: Option<WatchdogSpec>) -> Lab {
    let mut spec = port_spec();
    spec.watchdog = watchdog;
    // A pause lasts 33.5 ms.
    spec.speed = BitRate::gigabits(1);
    let mut lab = Lab::new(workers, 4, spec);
    lab.teach();
    lab
}

/// Port `n` receives a pause of priority 3; 0 quanta let it go.
fn pause(lab: &mut Lab, n: u8, quanta: u16) {
    let mut bytes = [0; 60];
    encode_pfc(&mut bytes, station(n), 1 << 3, &[0, 0, 0, quanta, 0, 0, 0, 0]);
    lab.arrive(n, &bytes);
}

/// So many lossless frames from port 0 to port `to`, at one instant.
fn send(lab: &mut Lab, to: u8, frames: usize) {
    for _ in 0..frames {
        lab.arrive(0, &ipv4(0, to, LOSSLESS_DSCP, 2, 1000));
        lab.steps(1, Nanos(0));
    }
    settle(lab);
}

/// What workers tell each other at this instant.
fn settle(lab: &mut Lab) {
    lab.steps(3, Nanos(0));
}

/// Lets time pass up to `end`, with pauses at these ports every 10 ms.
fn until(lab: &mut Lab, end: Time, paused: &[u8]) {
    while lab.now < end {
        paused.iter().for_each(|n| pause(lab, *n, u16::MAX));
        let span = Nanos(end.since(lab.now).0.min(10 * MS.0));
        lab.steps(1, span);
        settle(lab);
    }
}

/// Suspicions of port 0: when, for which ports, and whether they began.
fn told(lab: &Lab) -> Vec<(Time, u64, bool)> {
    let events = lab.events().into_iter().filter(|event| event.port == port(0));
    let told = events.filter_map(|event| match event.kind {
        EventKind::Deadlock { pg: of, ports, begins } => {
            assert_eq!(of, pg(LOSSLESS));
            Some((event.time, ports.0, begins))
        }
        _ => None,
    });
    told.collect()
}

const fn bits(ports: &[u8]) -> u64 {
    let (mut bits, mut n) = (0, 0);
    while n < ports.len() {
        bits |= 1 << ports[n];
        n += 1;
    }
    bits
}

/// Port 1 is paused and port 0's PG waits for it; since when.
fn stand(lab: &mut Lab) -> Time {
    pause(lab, 1, u16::MAX);
    settle(lab);
    lab.steps(1, MS);
    let since = lab.now;
    send(lab, 1, ENOUGH);
    assert!(lab.pg(0, LOSSLESS).xoff);
    since
}

#[test]
fn a_pg_whose_frames_all_stand_is_told_at_the_detection_time_and_not_before() {
    for workers in [1, 2, 3] {
        let mut lab = lab_of(workers, None);
        let since = stand(&mut lab);
        until(&mut lab, Time(since.after(DETECTION).0 - 1), &[1]);
        assert_eq!(told(&lab), [], "{workers} workers");
        assert_eq!(lab.port(1).stands_since(queue(3)), Some(since));
        lab.steps(1, Nanos(1));
        settle(&mut lab);
        let begun = (since.after(DETECTION), bits(&[1]), true);
        assert_eq!(told(&lab), [begun], "{workers} workers");
        let suspicion = *lab.port(0).suspicion(pg(LOSSLESS));
        assert_eq!(suspicion.since(), Some(begun.0));
        assert_eq!((suspicion.suspected(), suspicion.resolved()), (1, 0));
        assert_eq!(suspicion.waits_for(), PortSet::only(port(1)));
        // It stays so while nothing moves, and is over when the peer lets the queue go.
        until(&mut lab, since.after(Nanos(3 * DETECTION.0)), &[1]);
        assert_eq!(told(&lab).len(), 1);
        pause(&mut lab, 1, 0);
        settle(&mut lab);
        assert_eq!(told(&lab), [begun, (lab.now, bits(&[1]), false)], "{workers} workers");
        assert_eq!(lab.port(0).suspicion(pg(LOSSLESS)).resolved(), 1);
        assert!(lab.workers[0].shared().stuck.is_empty());
        lab.steps(20_000, Nanos(10_000));
        lab.assert_idle();
    }
}

#[test]
fn the_worker_wakes_at_the_detection_time() {
    let mut lab = lab_of(1, None);
    let since = stand(&mut lab);
    pause(&mut lab, 1, u16::MAX);
    settle(&mut lab);
    // Nothing else is due: the PG left XOFF out of account, and its refresh.
    let due = since.after(DETECTION);
    until(&mut lab, Time(due.0 - 100), &[1]);
    let step = lab.workers[0].step(lab.now);
    assert_eq!((step.work, step.next_deadline), (0, due));
}

#[test]
fn a_queue_that_moved_begins_anew() {
    for workers in [1, 2] {
        let mut lab = lab_of(workers, None);
        let since = stand(&mut lab);
        until(&mut lab, since.after(Nanos::millis(150)), &[1]);
        pause(&mut lab, 1, 0);
        let before = lab.port(1).counters().queues[queue(3)].transmitted.frames;
        settle(&mut lab);
        pause(&mut lab, 1, u16::MAX);
        settle(&mut lab);
        let moved = lab.port(1).counters().queues[queue(3)].transmitted.frames - before;
        assert!((1..10).contains(&moved), "{moved} frames");
        assert!(lab.pg(0, LOSSLESS).xoff);
        let again = lab.now;
        until(&mut lab, Time(again.after(DETECTION).0 - 1), &[1]);
        assert_eq!(told(&lab), [], "{workers} workers: it has moved at 150 ms");
        lab.steps(1, Nanos(1));
        settle(&mut lab);
        assert_eq!(told(&lab), [(again.after(DETECTION), bits(&[1]), true)]);
    }
}

#[test]
fn frames_in_a_queue_that_is_not_paused_are_no_deadlock() {
    for workers in [1, 2, 4] {
        let mut lab = lab_of(workers, None);
        // Port 2 is held by the operator: it stands, and nobody pauses it.
        lab.hold(2, true);
        send(&mut lab, 2, 3);
        let since = stand(&mut lab);
        until(&mut lab, since.after(Nanos(3 * DETECTION.0)), &[1]);
        assert_eq!(told(&lab), [], "{workers} workers");
        // Now both are paused, and it is the later one that counts.
        let both = lab.now;
        pause(&mut lab, 2, u16::MAX);
        settle(&mut lab);
        until(&mut lab, Time(both.after(DETECTION).0 - 1), &[1, 2]);
        assert_eq!(told(&lab), [], "{workers} workers");
        lab.steps(1, Nanos(1));
        settle(&mut lab);
        let begun = (both.after(DETECTION), bits(&[1, 2]), true);
        assert_eq!(told(&lab), [begun], "{workers} workers");
        // One of the two is enough to end it.
        lab.hold(2, false);
        pause(&mut lab, 2, 0);
        settle(&mut lab);
        assert_eq!(told(&lab)[1..], [(lab.now, bits(&[1, 2]), false)], "{workers} workers");
    }
}

#[test]
fn no_xoff_no_deadlock_and_an_xoff_later_is_told_at_once() {
    let mut lab = lab_of(1, None);
    pause(&mut lab, 1, u16::MAX);
    settle(&mut lab);
    let since = lab.now;
    send(&mut lab, 1, 20);
    until(&mut lab, since.after(Nanos(2 * DETECTION.0)), &[1]);
    assert_eq!(told(&lab), []);
    send(&mut lab, 1, ENOUGH);
    assert_eq!(told(&lab), [(lab.now, bits(&[1]), true)]);
    // More frames of a peer that doesn't obey change nothing.
    let later = lab.now.after(MS);
    until(&mut lab, later, &[1]);
    send(&mut lab, 1, 10);
    assert!(lab.pg(0, LOSSLESS).headroom > Cells(0));
    assert_eq!(told(&lab).len(), 1);
    // Nor do frames that pass through elsewhere: they free nothing of what stands.
    send(&mut lab, 2, 3);
    assert_eq!(told(&lab).len(), 1);
}

/// The pause comes after the step began whose time the switch knows.
#[test]
fn a_queue_stands_from_the_arrival_of_the_pause_on() {
    let mut lab = lab_of(1, None);
    lab.hold(1, true);
    send(&mut lab, 1, ENOUGH);
    assert_eq!(lab.port(1).stands_since(queue(3)), None, "held, and not paused");
    pause(&mut lab, 1, u16::MAX);
    let heard = lab.now.after(Nanos(500));
    lab.wires[1].borrow_mut().clock = heard;
    lab.workers[0].step(lab.now);
    assert_eq!(lab.port(1).stands_since(queue(3)), Some(heard));
}

#[test]
fn the_owner_of_the_pg_is_woken_when_its_frames_stand_and_when_they_move() {
    let mut lab = lab_of(2, None);
    let since = stand(&mut lab);
    until(&mut lab, Time(since.after(DETECTION).0 - 1), &[1]);
    let owner = lab.workers[0].id();
    let due = lab.now.after(Nanos(1));
    assert!(lab.workers[1].step(due).bells.contains(owner));
    assert!(!lab.workers[1].step(due).bells.contains(owner), "once is enough");
    lab.now = due;
    settle(&mut lab);
    assert_eq!(told(&lab).len(), 1);
    // The link goes down: what stood is dropped.
    lab.wires[1].borrow_mut().set_up(false);
    assert!(lab.workers[1].step(due).bells.contains(owner));
    settle(&mut lab);
    assert_eq!(told(&lab).len(), 2);
}

#[test]
fn a_queue_whose_pause_the_watchdog_ignores_does_not_stand() {
    let mut lab = lab_of(
        1,
        Some(WatchdogSpec {
            detection_time: Nanos::millis(90),
            restoration_time: Nanos::millis(1_000),
            action: WatchdogAction::Forward,
            back_off: false,
        }),
    );
    let since = stand(&mut lab);
    until(&mut lab, since.after(Nanos::millis(400)), &[1]);
    let found: Vec<bool> = told(&lab).into_iter().map(|(_, _, begins)| begins).collect();
    assert_eq!(found, [true, false]);
    assert_eq!(lab.port(1).stands_since(queue(3)), None);
}

#[test]
fn the_watchdogs_time_counts_where_there_is_one_and_its_flush_ends_the_suspicion() {
    let mut lab = lab_of(
        1,
        Some(WatchdogSpec {
            detection_time: Nanos::millis(90),
            restoration_time: DETECTION,
            action: WatchdogAction::Drop,
            back_off: false,
        }),
    );
    let since = stand(&mut lab);
    until(&mut lab, since.after(Nanos::millis(120)), &[1]);
    let at = since.after(Nanos::millis(90));
    let found = told(&lab);
    assert_eq!(found[0], (at, bits(&[1]), true), "{found:?}");
    assert!(!found[1].2, "{found:?}");
    assert!(!lab.pg(0, LOSSLESS).xoff);
    assert!(lab.workers[0].shared().stuck.is_empty());
}

#[test]
fn copies_of_one_frame_stand_together() {
    for workers in [1, 2, 4] {
        let mut lab = lab_of(workers, None);
        let since = stand(&mut lab);
        // A flood to ports 1, 2 and 3; 3 is free and sends its copies.
        pause(&mut lab, 2, u16::MAX);
        settle(&mut lab);
        for _ in 0..5 {
            lab.arrive(0, &ipv4(0, 77, LOSSLESS_DSCP, 2, 1000));
            settle(&mut lab);
        }
        until(&mut lab, since.after(Nanos::millis(199)), &[1, 2]);
        assert_eq!(told(&lab), [], "{workers} workers");
        let later = lab.now.after(Nanos(2 * DETECTION.0));
        until(&mut lab, later, &[1, 2]);
        assert_eq!(lab.port(3).counters().queues[queue(3)].transmitted.frames, 5);
        let found = told(&lab);
        assert_eq!(found.len(), 1, "{workers} workers: {found:?}");
        assert_eq!((found[0].1, found[0].2), (bits(&[1, 2]), true));
        pause(&mut lab, 1, 0);
        pause(&mut lab, 2, 0);
        lab.steps(20_000, Nanos(10_000));
        lab.assert_idle();
        assert!(lab.workers[0].shared().stuck.is_empty());
    }
}

/// All copies of a frame but one have left since the count: it is counted anew.
#[test]
fn a_copy_that_is_left_alone_holds_its_frame_alone() {
    let mut lab = lab_of(1, None);
    lab.hold(3, true);
    let since = stand(&mut lab);
    pause(&mut lab, 2, u16::MAX);
    settle(&mut lab);
    lab.arrive(0, &ipv4(0, 77, LOSSLESS_DSCP, 2, 1000));
    settle(&mut lab);
    until(&mut lab, since.after(Nanos(3 * DETECTION.0)), &[1, 2]);
    assert_eq!(told(&lab), [], "port 3 isn't paused");
    lab.hold(3, false);
    settle(&mut lab);
    let step = lab.workers[0].step(lab.now);
    assert!((lab.now..lab.now.after(DETECTION)).contains(&step.next_deadline));
    let later = lab.now.after(Nanos(2 * DETECTION.0));
    until(&mut lab, later, &[1, 2]);
    assert_eq!(told(&lab).len(), 1);
}

#[test]
fn a_long_queue_is_counted_in_several_steps() {
    let mut spec = profile_spec(vec![port_spec(); 3]);
    spec.total = Cells(40_000);
    spec.pools[0].1 = Cells(20_000);
    for port in &mut spec.ports {
        port.speed = BitRate::gigabits(1);
        port.pgs[pg(LOSSLESS)].xoff = Xoff::At(Cells(9_000));
    }
    let mut lab = Lab::with_profile(1, spec);
    lab.teach();
    pause(&mut lab, 1, u16::MAX);
    settle(&mut lab);
    let since = lab.now;
    for _ in 0..150 {
        (0..61).for_each(|_| lab.arrive(0, &ipv4(0, 1, LOSSLESS_DSCP, 2, 100)));
        lab.steps(1, Nanos(0));
    }
    assert!(lab.pg(0, LOSSLESS).xoff);
    assert!(lab.port(1).queue(queue(3)).frames() > 2 * 4096);
    until(&mut lab, Time(since.after(DETECTION).0 - 1), &[1]);
    lab.now = since.after(DETECTION);
    let step = lab.workers[0].step(lab.now);
    assert_eq!((told(&lab).len(), step.next_deadline), (0, lab.now), "4096 frames a step");
    lab.workers[0].step(lab.now);
    lab.workers[0].step(lab.now);
    assert_eq!(told(&lab), [(since.after(DETECTION), bits(&[1]), true)]);
}

#[test]
fn a_port_knows_who_paused_it() {
    let mut lab = lab_of(1, None);
    assert_eq!(lab.port(1).pause_receiver().source(), None);
    pause(&mut lab, 1, 100);
    settle(&mut lab);
    assert_eq!(lab.port(1).pause_receiver().source(), Some(station(1)));
    assert_eq!(lab.port(2).pause_receiver().source(), None);
    // A frame that pauses nothing tells nothing.
    let mut bytes = [0; 60];
    encode_pfc(&mut bytes, station(9), 0, &[0; 8]);
    lab.arrive(1, &bytes);
    settle(&mut lab);
    assert_eq!(lab.port(1).pause_receiver().source(), Some(station(1)));
}
