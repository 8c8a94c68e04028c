//! Marking, pausing and sharing at the egress, on a whole switch in memory (SPEC 4 to 6).
#![cfg(not(loom))]
#![allow(clippy::expect_used)]

mod lab;

use holdfast_core::drop::DropReason;
use holdfast_core::profile::*;
use holdfast_core::trace::{EventKind, TraceMask};
use holdfast_core::units::*;
use holdfast_wire::mac_control::encode_pfc;
use holdfast_wire::MacAddr;
use lab::*;

const STEP: Nanos = Nanos(1_000);

fn wred(mark_at: MarkAt) -> WredSpec {
    WredSpec {
        kmin: Cells(200),
        kmax: Cells(204),
        pmax: Prob16::ONE,
        mark_at,
        not_ect: NotEct::Drop,
        ewma_shift: 0,
    }
}

/// 101 frames of 1024 B behind a hold, released; which of them came out as CE.
fn marked_positions(workers: usize, mark_at: MarkAt) -> (Lab, Vec<usize>) {
    let mut spec = port_spec();
    spec.queues[queue(3)].wred = Some(wred(mark_at));
    // Frames in the TX ring count into the depth: two at a time, as on a port of this MTU.
    spec.mtu = 1500;
    spec.tx_inflight = 2 * u32::from(spec.largest_frame());
    let mut lab = Lab::new(workers, 2, spec);
    lab.teach();
    for worker in &mut lab.workers {
        worker.set_trace_mask(TraceMask::MARKS);
    }
    lab.hold(1, true);
    for _ in 0..101 {
        lab.arrive(0, &ipv4(0, 1, 26, 2, 1024));
        lab.steps(1, STEP);
    }
    lab.hold(1, false);
    lab.steps(500, Nanos(10_000));
    let sent = lab.sent(1);
    assert_eq!(sent.len(), 101);
    let ce = sent.iter().enumerate().filter(|(_, f)| f[15] & 3 == 3).map(|(n, _)| n).collect();
    (lab, ce)
}

#[test]
fn ecn_marks_one_block_by_the_documented_rule() {
    for workers in [1, 2] {
        for mark_at in [MarkAt::Dequeue, MarkAt::Enqueue] {
            let (lab, ce) = marked_positions(workers, mark_at);
            assert!((50..=53).contains(&ce.len()), "{mark_at:?}: {} marks", ce.len());
            assert!(ce.windows(2).all(|pair| pair[1] == pair[0] + 1), "one block: {ce:?}");
            match mark_at {
                MarkAt::Dequeue => assert_eq!(ce[0], 0),
                MarkAt::Enqueue => assert_eq!(ce[ce.len() - 1], 100),
            }
            let depths: Vec<u32> = lab
                .events()
                .iter()
                .filter_map(|event| match event.kind {
                    EventKind::Mark { depth, marked: true, .. } => Some(depth.0),
                    _ => None,
                })
                .collect();
            assert_eq!(depths.len(), ce.len(), "each mark has its record");
            assert!(depths.iter().all(|depth| *depth > 200), "{depths:?}");
            lab.assert_idle();
        }
    }
}

#[test]
fn not_ect_is_dropped_on_lossy_queues_only() {
    let mut spec = port_spec();
    for id in [0, 3] {
        spec.queues[queue(id)].wred =
            Some(WredSpec { kmin: Cells(20), kmax: Cells(20), ..wred(MarkAt::Dequeue) });
    }
    let mut lab = Lab::new(1, 2, spec);
    lab.teach();
    lab.hold(1, true);
    for dscp in [26, 0] {
        for _ in 0..40 {
            lab.arrive(0, &ipv4(0, 1, dscp, 0, 200));
            lab.steps(1, STEP);
        }
    }
    let counters = lab.port(1).counters();
    assert_eq!(counters.queues[queue(3)].dropped.get(DropReason::Wred), 0);
    assert_eq!(counters.queues[queue(0)].dropped.get(DropReason::Wred), 21, "from depth 20 on");
    lab.hold(1, false);
    lab.steps(100, Nanos(20_000));
    assert_eq!(lab.sent(1).len(), 40 + 19);
    lab.assert_idle();
}

#[test]
fn copies_are_never_marked() {
    let mut spec = port_spec();
    spec.queues[queue(3)].wred =
        Some(WredSpec { kmin: Cells(1), kmax: Cells(1), ..wred(MarkAt::Dequeue) });
    let mut lab = Lab::new(1, 3, spec);
    lab.arrive(0, &ipv4(0, 9, 26, 2, 200));
    lab.steps(5, Nanos(10_000));
    for n in [1, 2] {
        assert_eq!(lab.sent(n), [ipv4(0, 9, 26, 2, 200)]);
        assert_eq!(lab.port(n).counters().queues[queue(3)].mark_skipped, 1);
    }
}

fn pause(quanta: u16) -> [u8; 60] {
    let mut bytes = [0; 60];
    let mut times = [0; 8];
    times[3] = quanta;
    encode_pfc(&mut bytes, MacAddr([2, 0, 0, 0, 0, 9]), 8, &times);
    bytes
}

#[test]
fn a_received_pause_stops_its_queue_only_and_resumes_at_once() {
    for workers in [1, 2] {
        let mut lab = Lab::new(workers, 2, port_spec());
        lab.teach();
        lab.arrive(1, &pause(65535));
        lab.steps(1, STEP);
        for _ in 0..20 {
            lab.arrive(0, &ipv4(0, 1, 26, 2, 100));
            lab.arrive(0, &ipv4(0, 1, 0, 0, 100));
            lab.steps(2, STEP);
        }
        lab.steps(20, STEP);
        let sent = lab.sent(1);
        assert_eq!(sent.len(), 20, "the lossy class goes on");
        assert!(sent.iter().all(|frame| frame[15] == 0));
        lab.arrive(1, &pause(0));
        lab.steps(50, STEP);
        assert_eq!(lab.sent(1).len(), 20, "resumed at once");
        lab.arrive(1, &pause(65535));
        lab.steps(1, STEP);
        lab.arrive(0, &ipv4(0, 1, 26, 2, 100));
        lab.steps(4, STEP);
        assert!(lab.sent(1).is_empty());
        // 65535 quanta last 3.36 ms at 10G.
        lab.steps(1, Nanos::micros(3_300));
        assert!(lab.sent(1).is_empty());
        lab.steps(4, Nanos::micros(60));
        assert_eq!(lab.sent(1).len(), 1, "the time ran out");
        lab.assert_idle();
    }
}

#[test]
fn weights_share_bytes_within_two_percent_for_any_mix_of_sizes() {
    let mut spec = port_spec();
    spec.maps.dscp_to_cos = holdfast_core::ids::PerDscp::from_fn(|dscp| {
        holdfast_core::ids::Cos::from_bits(dscp.number())
    });
    spec.maps.cos_to_queue = holdfast_core::ids::PerCos::from_fn(|cos| queue(cos.number()));
    let weights = [1, 2, 5];
    for (n, weight) in weights.iter().enumerate() {
        spec.queues[queue(n as u8)].service = Service::Weight(*weight);
        spec.queues[queue(n as u8)].limit = None;
    }
    for sizes in [[64, 1500, 9000], [9000, 64, 1500], [1500, 9000, 64]] {
        let mut profile = profile_spec(vec![spec.clone(); 2]);
        profile.total = Cells(60_000);
        profile.pools[1].1 = Cells(40_000);
        profile.egress_shared = Cells(50_000);
        let mut lab = Lab::with_profile(1, profile);
        lab.teach();
        lab.wires[1].borrow_mut().capture = false;
        // 8 ms at 10G, about 10 MB; every queue stays backlogged.
        for _ in 0..8_000 {
            for (class, size) in sizes.iter().enumerate() {
                let waiting = lab.port(1).queue(queue(class as u8)).frames() * size;
                let missing = 200_000usize.saturating_sub(waiting).div_ceil(*size);
                for _ in 0..missing.min(20) {
                    lab.arrive(0, &ipv4(0, 1, class as u8, 0, *size));
                }
            }
            lab.steps(1, STEP);
        }
        let bytes: Vec<u64> =
            (0..3).map(|n| lab.port(1).counters().queues[queue(n)].transmitted.bytes).collect();
        let total: u64 = bytes.iter().sum();
        for (n, weight) in weights.iter().enumerate() {
            let share = bytes[n] as f64 / total as f64;
            let due = f64::from(*weight) / 8.0;
            assert!((share / due - 1.0).abs() < 0.02, "{sizes:?} queue {n}: {share} of {due}");
        }
    }
}

#[test]
fn shaper_keeps_the_declared_speed() {
    let mut spec = port_spec();
    spec.speed = BitRate::new(400_000_000).expect("a rate");
    let mut lab = Lab::new(1, 2, spec);
    lab.teach();
    lab.wires[1].borrow_mut().capture = false;
    // One second of virtual time with twice the load.
    for _ in 0..50_000 {
        lab.arrive(0, &ipv4(0, 1, 0, 0, 1976));
        lab.steps(1, Nanos(20_000));
    }
    let sent = lab.wires[1].borrow().sent_frames;
    // 2000 bytes on the wire at 400 Mb/s: 25,000 frames a second.
    assert!((24_900..=25_101).contains(&sent), "{sent} frames");
}

/// A driver that sends within the kick makes room at once: a bound of two frames doesn't keep a
/// port from sending a whole burst in one step.
#[test]
fn a_small_bound_in_flight_does_not_make_a_queue() {
    let mut spec = port_spec();
    spec.speed = BitRate::new(100_000_000_000).expect("a rate");
    spec.mtu = 1500;
    spec.tx_inflight = 2 * u32::from(spec.largest_frame());
    let frame = usize::from(spec.largest_frame());
    let mut lab = Lab::new(1, 2, spec);
    lab.teach();
    for _ in 0..40 {
        lab.arrive(0, &ipv4(0, 1, 26, 0, frame));
    }
    // The first step has time for one frame only; the second one for all.
    lab.steps(2, Nanos::millis(1));
    assert_eq!(lab.wires[1].borrow().sent_frames, 40);
    // A driver that completes later keeps the bound.
    lab.wires[1].borrow_mut().stalled = true;
    for _ in 0..40 {
        lab.arrive(0, &ipv4(0, 1, 26, 0, frame));
    }
    lab.steps(3, Nanos::millis(1));
    assert_eq!(lab.wires[1].borrow().sent_frames, 42);
}

/// What queued behind a hold drains although the next full burst comes in with each step: a step
/// sends more than it takes in.
#[test]
fn a_queue_drains_while_full_bursts_come_in() {
    let mut spec = port_spec();
    spec.speed = BitRate::new(100_000_000_000).expect("a rate");
    let mut lab = Lab::new(1, 2, spec);
    lab.teach();
    lab.hold(1, true);
    let arrive = |lab: &mut Lab| {
        (0..64).for_each(|_| lab.arrive(0, &ipv4(0, 1, 26, 0, 200)));
        lab.steps(1, Nanos(50_000));
    };
    (0..4).for_each(|_| arrive(&mut lab));
    let waiting = |lab: &Lab| lab.port(1).queue(queue(3)).frames();
    assert_eq!(waiting(&lab), 256);
    lab.hold(1, false);
    (0..8).for_each(|_| arrive(&mut lab));
    assert!(waiting(&lab) < 128, "{} frames still wait", waiting(&lab));
}
