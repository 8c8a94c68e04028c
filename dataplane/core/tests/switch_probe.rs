//! How long the switch keeps frames, by samples (`holdfast_forwarding_latency_seconds`).
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

mod lab;

use holdfast_core::drop::DropReason;
use holdfast_core::durations::Durations;
use holdfast_core::probe::PROBE_EVERY;
use holdfast_core::profile::Limit;
use holdfast_core::units::{Cells, Nanos};
use holdfast_wire::mac_control::encode_pfc;
use lab::*;

const STEP: Nanos = Nanos(1_000);
const HOLD: Nanos = Nanos::millis(5);

fn lab(workers: usize) -> Lab {
    let mut lab = Lab::new(workers, 3, port_spec());
    lab.teach();
    lab
}

fn counted(lab: &Lab, port: u8) -> u64 {
    lab.port(port).latency().below.iter().sum()
}

fn is_free(lab: &Lab) -> bool {
    lab.workers[0].shared().probe.is_free()
}

#[test]
fn a_held_frame_is_counted_with_the_time_it_was_held() {
    for workers in [1, 2, 3] {
        let mut lab = lab(workers);
        lab.hold(1, true);
        lab.arrive(0, &ipv4(0, 1, 26, 2, 1000));
        lab.steps(1, STEP);
        lab.steps(1, Nanos(HOLD.0 - 1));
        // A frame that came later and leaves by another port isn't timed meanwhile.
        lab.arrive(0, &ipv4(0, 2, 26, 2, 1000));
        lab.hold(1, false);
        lab.steps(1, Nanos(1));
        let latency = lab.port(1).latency();
        assert_eq!((latency.total, latency.longest), (HOLD.0, HOLD.0), "{workers} workers");
        assert_eq!(latency.below[Durations::bucket(HOLD)], 1);
        assert_eq!((counted(&lab, 1), counted(&lab, 2)), (1, 0));
        lab.steps(4, STEP);
        lab.assert_idle();
    }
}

#[test]
fn a_frame_a_millisecond_is_timed_and_each_worker_has_its_turn() {
    for workers in [1, 2] {
        let mut lab = lab(workers);
        let rounds = 200;
        for _ in 0..rounds {
            for _ in 0..8 {
                lab.arrive(0, &ipv4(0, 2, 26, 2, 100));
                lab.arrive(1, &ipv4(1, 2, 0, 2, 100));
            }
            lab.steps(2, Nanos(50_000));
        }
        lab.steps(100, Nanos(50_000));
        assert_eq!(lab.sent(2).len(), rounds * 16);
        // 20 ms: 20 looks of each worker, at most one sample each.
        let samples = counted(&lab, 2);
        assert!((10..=21 * workers as u64).contains(&samples), "{samples}, {workers} workers");
        lab.assert_idle();
    }
}

/// What is dropped isn't counted, nor is another frame in its place, and the next one can be.
fn is_dropped(lab: &mut Lab, what: &str, reason: DropReason, drop: impl FnOnce(&mut Lab)) {
    lab.steps(1, PROBE_EVERY);
    let drops =
        |lab: &Lab| -> u64 { (0..3).map(|n| lab.port(n).counters().dropped.get(reason)).sum() };
    let before = (drops(lab), counted(lab, 1));
    drop(lab);
    assert!(drops(lab) > before.0, "{what}: nothing was dropped");
    assert!(is_free(lab), "{what}: a frame that is gone is still timed");
    for _ in 0..20 {
        lab.arrive(0, &ipv4(0, 1, 26, 2, 1000));
    }
    lab.steps(20, STEP);
    assert_eq!(counted(lab, 1), before.1, "{what}: another frame was taken for it");
    lab.steps(1, PROBE_EVERY);
    lab.arrive(0, &ipv4(0, 1, 26, 2, 1000));
    lab.steps(2, STEP);
    assert_eq!(counted(lab, 1), before.1 + 1, "{what}");
}

#[test]
fn a_frame_that_is_dropped_is_no_longer_timed() {
    for workers in [1, 2] {
        let lab = &mut lab(workers);
        let queued = |lab: &mut Lab| {
            lab.hold(1, true);
            lab.arrive(0, &ipv4(0, 1, 26, 2, 1000));
            lab.steps(1, STEP);
            assert!(!is_free(lab));
            lab.hold(1, false);
        };
        is_dropped(lab, "too long", DropReason::TooLong, |lab| {
            lab.arrive(0, &ipv4(0, 1, 26, 2, 9_100));
            lab.steps(1, STEP);
        });
        is_dropped(lab, "no header", DropReason::Parse, |lab| {
            lab.arrive(0, &[0; 10]);
            lab.steps(1, STEP);
        });
        is_dropped(lab, "to where it came from", DropReason::SamePort, |lab| {
            lab.arrive(0, &ipv4(0, 0, 26, 2, 1000));
            lab.steps(1, STEP);
        });
        is_dropped(lab, "port down with a queue", DropReason::PortDown, |lab| {
            queued(lab);
            lab.wires[1].borrow_mut().set_up(false);
            lab.steps(1, STEP);
            lab.wires[1].borrow_mut().set_up(true);
            lab.teach();
        });
        is_dropped(lab, "to a port that is down", DropReason::PortDown, |lab| {
            lab.wires[1].borrow_mut().set_up(false);
            lab.steps(1, STEP);
            lab.teach();
            lab.arrive(0, &ipv4(0, 1, 26, 2, 1000));
            lab.steps(1, STEP);
            lab.wires[1].borrow_mut().set_up(true);
            lab.teach();
        });
        is_dropped(lab, "the switch ends", DropReason::Shutdown, |lab| {
            queued(lab);
            lab.workers.iter_mut().for_each(|worker| worker.discard_queued());
        });
        lab.assert_idle();
    }
}

#[test]
fn what_a_limit_refuses_is_no_longer_timed() {
    for workers in [1, 2] {
        let lab = &mut lab(workers);
        lab.apply(|spec| {
            for port in &mut spec.ports {
                port.queues[queue(0)].limit = Some(Limit::Static(Cells(2)));
            }
        });
        is_dropped(lab, "queue limit", DropReason::QueueLimit, |lab| {
            lab.arrive(0, &ipv4(0, 1, 0, 2, 1000));
            lab.steps(1, STEP);
        });
        lab.apply(|spec| {
            for port in &mut spec.ports {
                port.pgs[pg(0)].limit = Limit::Static(Cells(2));
            }
        });
        is_dropped(lab, "ingress", DropReason::LossyIngress, |lab| {
            lab.arrive(0, &ipv4(0, 1, 0, 2, 1000));
            lab.steps(1, STEP);
        });
    }
}

/// A frame with copies leaves several times, MAC control never, and one that waits for room because
/// the worker was late says nothing of the way through the switch.
#[test]
fn copies_mac_control_and_late_frames_are_not_timed() {
    for workers in [1, 2] {
        let mut lab = lab(workers);
        let mut flooded = ipv4(0, 1, 26, 2, 1000);
        flooded[..6].fill(0xff);
        lab.arrive(0, &flooded);
        lab.steps(1, STEP);
        assert!(is_free(&lab));
        lab.steps(4, PROBE_EVERY);
        assert_eq!((lab.sent(1).len(), lab.sent(2).len()), (1, 1));
        let mut pause = [0; 60];
        encode_pfc(&mut pause, station(0), 8, &[0; 8]);
        lab.arrive(0, &pause);
        lab.steps(1, STEP);
        assert!(is_free(&lab));
        // All that there is room for, before the next look; then so many that the rest is late.
        lab.hold(1, true);
        lab.apply(|spec| spec.ports[0].pgs[pg(3)].limit = Limit::Static(Cells(1100)));
        for (frames, apart) in [(205, STEP), (400, PROBE_EVERY)] {
            (0..frames).for_each(|_| lab.arrive(0, &ipv4(0, 1, 26, 2, 2000)));
            lab.steps(1, apart);
            lab.steps(9, STEP);
        }
        assert_eq!(lab.port(0).late_frames(), 400, "none of them has room");
        assert!(is_free(&lab));
        lab.hold(1, false);
        lab.steps(4_000, Nanos(10_000));
        assert_eq!(lab.sent(1).len(), 605);
        lab.assert_idle();
    }
}
