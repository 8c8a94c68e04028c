//! A worker that comes late (SPEC 4.3): what its RX ring took in meanwhile is more than Headroom
//! has room for, and nothing of it is lost while the peer obeys.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

mod lab;

use holdfast_core::drop::DropReason;
use holdfast_core::ids::{Cos, Dscp, PrioritySet};
use holdfast_core::profile::{Limit, PortSpec};
use holdfast_core::units::{Cells, Nanos};
use holdfast_wire::mac_control::encode_pfc;
use lab::*;

/// Entries of the RX ring of a lab's port.
const RING: usize = 512;
const STEP: Nanos = Nanos(10_000);
/// 8 cells.
const LEN: usize = 2000;

/// Frames that the PG has room for: no frame is split between 36, 1100 and 512 cells.
const ROOM: usize = 36 / 8 + 1100 / 8 + 512 / 8;

/// Frames that it takes until it is in XOFF, at 1000 cells of Service.
const UNTIL_XOFF: usize = 36 / 8 + 1000 / 8;

fn spec() -> PortSpec {
    let mut spec = port_spec();
    spec.pgs[pg(LOSSLESS)].limit = Limit::Static(Cells(1100));
    spec.mtu = 2000;
    spec
}

fn lab(workers: usize) -> Lab {
    let mut lab = Lab::new(workers, 3, spec());
    lab.teach();
    lab
}

/// A frame with its number in its last bytes.
fn numbered(to: u8, dscp: u8, number: u32) -> Vec<u8> {
    let mut bytes = ipv4(0, to, dscp, 2, LEN);
    let at = bytes.len() - 4;
    bytes[at..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn numbers(frames: &[Vec<u8>]) -> Vec<u32> {
    let last = |frame: &Vec<u8>| u32::from_be_bytes(*frame.last_chunk().unwrap());
    frames.iter().map(last).collect()
}

/// The worker had no core for so long that the ring is full.
fn stall(lab: &mut Lab) {
    for number in 0..RING as u32 {
        lab.arrive(0, &numbered(1, 26, number));
    }
}

#[test]
fn a_full_ring_after_a_stall_loses_nothing() {
    for workers in [1, 2] {
        let mut lab = lab(workers);
        stall(&mut lab);
        lab.steps(1, STEP);
        let pause = lab.control(0);
        assert!(pause.iter().any(|frame| frame[17] & 8 != 0), "the peer isn't paused");
        lab.steps(2_000, STEP);
        let all: Vec<u32> = (0..RING as u32).collect();
        assert_eq!(numbers(&lab.sent(1)), all, "{workers} workers");
        let counters = lab.port(0).counters();
        assert_eq!((counters.lossless_violations, counters.received.frames), (0, RING as u64));
        assert_eq!(counters.dropped.get(DropReason::HeadroomOverflow), 0);
        assert_eq!(lab.port(0).late_frames(), 0);
        lab.assert_idle();
    }
}

/// What waits for room is passed by what needs none, and MAC control behind it is seen.
#[test]
fn waiting_frames_stop_neither_mac_control_nor_other_classes() {
    let mut lab = lab(1);
    lab.hold(1, true);
    stall(&mut lab);
    lab.steps(100, STEP);
    let waiting = lab.port(0).late_frames() as usize;
    assert_eq!(waiting, RING - UNTIL_XOFF, "all that came after XOFF waits, nothing else");
    assert_eq!(lab.pg(0, LOSSLESS).headroom, Cells(0), "kept for what is in flight");
    assert_eq!(lab.wires[0].borrow().chunks_held(), RING - waiting, "lent as if none waited");
    // After 20 ms of pause nothing is in flight.
    lab.steps(2_100, STEP);
    assert_eq!(lab.pg(0, LOSSLESS).headroom, Cells(512));
    let waiting = lab.port(0).late_frames() as usize;
    assert_eq!(waiting, RING - ROOM, "all that has no room waits, nothing else");
    assert_eq!(lab.wires[0].borrow().chunks_held(), RING - waiting, "lent as if none waited");
    let mut pfc = [0; 60];
    encode_pfc(&mut pfc, station(0), 1 << 3, &[0, 0, 0, 65535, 0, 0, 0, 0]);
    lab.arrive(0, &pfc);
    lab.arrive(0, &numbered(2, 0, 7));
    lab.steps(2, STEP);
    let now = lab.now;
    let paused = lab.port(0).pause_receiver().paused_queues(now, &spec().maps);
    assert!(paused.contains(queue(3)), "the pause behind the waiting frames wasn't seen");
    assert_eq!(numbers(&lab.sent(2)), [7], "a lossy frame waited");
    lab.hold(1, false);
    lab.steps(2_000, STEP);
    assert_eq!(lab.sent(1).len(), RING);
    lab.assert_idle();
}

/// A peer that doesn't obey: ring and waiting frames together stay as many as the ring has entries.
#[test]
fn a_deaf_peer_loses_its_own_frames_and_no_memory() {
    let mut lab = lab(1);
    lab.hold(1, true);
    let mut told = 0;
    for _ in 0..20 {
        stall(&mut lab);
        lab.steps(3, STEP);
        let wire = lab.wires[0].borrow();
        let held = wire.chunks_held() + lab.port(0).late_frames() as usize;
        assert!(held <= RING, "{held} chunks");
        told = wire.overrun;
    }
    // By the kernel, or, for an eighth of the ring is always lent, here: each of them is counted.
    let counters = lab.port(0).counters();
    let (lost, here) = (told + counters.lossless_violations, counters.dropped);
    assert!(told > 0 && counters.lossless_violations > 0, "{told} of {lost}");
    assert_eq!(counters.lossless_violations, here.get(DropReason::HeadroomOverflow));
    lab.hold(1, false);
    lab.steps(4_000, STEP);
    lab.assert_idle();
}

/// While the worker keeps up nothing waits: one frame too many is dropped and said (SPEC 3.2).
#[test]
fn without_a_backlog_what_has_no_room_is_dropped() {
    let mut lab = lab(1);
    lab.hold(1, true);
    for number in 0..210 {
        lab.arrive(0, &numbered(1, 26, number));
        lab.steps(1, STEP);
    }
    let counters = lab.port(0).counters();
    assert_eq!((counters.lossless_violations, lab.port(0).late_frames()), (5, 0));
    lab.hold(1, false);
    lab.steps(2_000, STEP);
    assert_eq!(lab.sent(1).len(), ROOM);
    lab.assert_idle();
}

#[test]
fn what_waits_is_given_up_when_the_switch_ends() {
    let mut lab = lab(1);
    lab.hold(1, true);
    stall(&mut lab);
    lab.steps(100, STEP);
    let waiting = u64::from(lab.port(0).late_frames());
    assert!(waiting > 0);
    let now = lab.now;
    lab.workers[0].stop_accepting(now);
    assert_eq!(lab.port(0).late_frames(), 0);
    let counters = lab.port(0).counters();
    assert_eq!(counters.dropped.get(DropReason::Shutdown), waiting);
    lab.hold(1, false);
    lab.steps(2_000, STEP);
    lab.assert_idle();
}

/// The PG was full when the stall began, and the pause ran out in it: what the peer sent then is no
/// more than a burst or two, and not even the first of it is dropped.
#[test]
fn what_came_after_a_pause_that_ran_out_waits() {
    for late in [1, 60, 300] {
        let mut lab = lab(1);
        lab.hold(1, true);
        for number in 0..ROOM as u32 {
            lab.arrive(0, &numbered(1, 26, number));
            lab.steps(1, STEP);
        }
        for number in 0..late {
            lab.arrive(0, &numbered(1, 26, ROOM as u32 + number));
        }
        // 65535 quanta at 10G are 3.4 ms.
        lab.steps(1, Nanos::millis(4));
        lab.steps(50, STEP);
        assert_eq!(lab.port(0).counters().lossless_violations, 0, "{late} frames");
        lab.hold(1, false);
        lab.steps(2_000, STEP);
        assert_eq!(numbers(&lab.sent(1)), (0..ROOM as u32 + late).collect::<Vec<_>>());
        lab.assert_idle();
    }
}

/// When the last frame of a stall has gone in, all of Headroom is there for what the peer sends
/// until it obeys: it was told late as well.
#[test]
fn headroom_is_not_used_up_by_what_came_in_the_stall() {
    let mut lab = lab(1);
    stall(&mut lab);
    lab.steps(10, STEP);
    assert!(lab.port(0).late_frames() > 0);
    for _ in 0..2_000 {
        if lab.port(0).late_frames() == 0 {
            break;
        }
        lab.steps(1, STEP);
    }
    assert_eq!(lab.port(0).late_frames(), 0);
    lab.hold(1, true);
    let in_flight = 512 / 8;
    for number in 0..in_flight {
        lab.arrive(0, &numbered(1, 26, RING as u32 + number));
        lab.steps(1, STEP);
    }
    assert_eq!(lab.port(0).counters().lossless_violations, 0);
    lab.hold(1, false);
    lab.steps(2_000, STEP);
    assert_eq!(numbers(&lab.sent(1)), (0..RING as u32 + in_flight).collect::<Vec<_>>());
    lab.assert_idle();
}

/// A class that can't go on, and of which a stall has left a ring full: others of its port are
/// received, and not paused, and MAC control is obeyed.
#[test]
fn a_class_that_waits_stops_no_other_one() {
    let mut spec = spec();
    spec.pgs[pg(4)] = spec.pgs[pg(LOSSLESS)];
    spec.pgs[pg(4)].priorities = PrioritySet(1 << 4);
    spec.pfc.enabled = PrioritySet(1 << 3 | 1 << 4);
    spec.maps.dscp_to_cos[Dscp::new(34).unwrap()] = Cos::new(4).unwrap();
    spec.maps.cos_to_pg[Cos::new(4).unwrap()] = pg(4);
    spec.maps.cos_to_queue[Cos::new(4).unwrap()] = queue(4);
    let mut lab = Lab::new(1, 3, spec);
    lab.teach();
    lab.hold(1, true);
    // Twice as many as the ring has entries, in two stalls.
    for _ in 0..2 {
        stall(&mut lab);
        lab.steps(20, STEP);
    }
    assert!(lab.port(0).late_frames() > 200);
    assert!(lab.wires[0].borrow().chunks_held() >= RING / 8, "the ring is lent nothing");
    let paused = lab.port(0).pause_sender().paused();
    assert_eq!(paused, PrioritySet(1 << 3), "a class with an empty PG is paused");
    for number in 0..1000 {
        lab.arrive(0, &numbered(2, 34, number));
        lab.steps(2, STEP);
    }
    assert_eq!(lab.sent(2).len(), 1000);
    let mut pfc = [0; 60];
    encode_pfc(&mut pfc, station(0), 1 << 3, &[0, 0, 0, 65535, 0, 0, 0, 0]);
    lab.arrive(0, &pfc);
    lab.steps(2, STEP);
    assert_eq!(lab.port(0).pause_receiver().paused_queues(lab.now, &port_spec().maps).0, 1 << 3);
}

/// Its frames came before it, and its stations are gone: none comes back by a frame that waits.
#[test]
fn what_waits_goes_with_the_link() {
    let mut lab = lab(1);
    lab.hold(1, true);
    stall(&mut lab);
    lab.steps(100, STEP);
    let waiting = u64::from(lab.port(0).late_frames());
    assert!(waiting > 0);
    lab.wires[0].borrow_mut().set_up(false);
    lab.steps(10, STEP);
    assert_eq!(lab.port(0).late_frames(), 0);
    assert_eq!(lab.port(0).counters().dropped.get(DropReason::PortDown), waiting);
    let fdb = &lab.workers[0].shared().fdb;
    assert!(fdb.lookup(station(0), 0, lab.now).is_none(), "its station is known again");
    lab.hold(1, false);
    lab.steps(2_000, STEP);
    lab.assert_idle();
}
