//! Frames of one burst that look alike: each goes its own way all the same.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod lab;

use holdfast_core::drop::DropReason;
use holdfast_core::ids::{Cos, Dscp};
use holdfast_core::io::Losses;
use holdfast_core::units::Nanos;
use lab::{ipv4, port, port_spec, Lab};

const APART: Nanos = Nanos(10_000);

fn lab() -> Lab {
    let mut lab = Lab::new(1, 3, port_spec());
    lab.teach();
    lab
}

#[test]
fn a_station_that_moves_within_a_burst_has_moved_for_the_next_frame() {
    let mut lab = lab();
    for _ in 0..2 {
        lab.arrive(0, &ipv4(0, 2, 26, 2, 100));
        lab.arrive(0, &ipv4(0, 1, 26, 2, 100));
    }
    // Station 2 turns up behind port 0, where station 0 is.
    lab.arrive(0, &ipv4(2, 1, 26, 2, 100));
    lab.arrive(0, &ipv4(0, 2, 26, 2, 100));
    lab.steps(2, APART);
    assert_eq!((lab.sent(2).len(), lab.sent(1).len()), (2, 3));
    let counters = lab.port(0).counters();
    assert_eq!(counters.dropped.get(DropReason::SamePort), 1);
    assert_eq!(counters.fdb_moves, 1);
    lab.assert_idle();
}

#[test]
fn the_same_head_in_a_cut_frame_is_no_ip() {
    let mut lab = lab();
    let whole = ipv4(0, 2, 26, 2, 100);
    for bytes in [&whole[..], &whole[..30], &whole[..], &whole[..34], &whole[..15]] {
        lab.arrive(0, bytes);
    }
    lab.steps(2, APART);
    let counters = lab.port(0).counters();
    assert_eq!(counters.received_dscp[Dscp::new(26).unwrap()], 3);
    assert_eq!(counters.received_unclassed, 2);
    assert_eq!(counters.received_cos[Cos::new(3).unwrap()], 3);
    let lengths: Vec<usize> = lab.sent(2).iter().map(Vec::len).collect();
    assert_eq!(lengths.iter().sum::<usize>(), 100 + 30 + 100 + 34 + 15);
}

#[test]
fn the_same_head_in_a_frame_that_is_too_long_is_dropped() {
    let mut lab = lab();
    let largest = usize::from(port_spec().largest_frame());
    for len in [100, largest + 1, largest, largest + 1, 100] {
        lab.arrive(0, &ipv4(0, 2, 26, 2, len));
    }
    lab.steps(40, APART);
    assert_eq!(lab.sent(2).len(), 3);
    let counters = lab.port(0).counters();
    assert_eq!(counters.dropped.get(DropReason::TooLong), 2);
    assert_eq!(counters.received.frames, 5);
    lab.assert_idle();
}

#[test]
fn frames_of_two_groups_in_turn_give_back_their_own_cells() {
    let mut lab = lab();
    for n in 0..60 {
        let (dscp, len) = if n % 2 == 0 { (26, 300) } else { (0, 900) };
        lab.arrive(n % 2, &ipv4(n % 2, 2, dscp, 2, len));
    }
    lab.steps(40, APART);
    assert_eq!(lab.sent(2).len(), 60);
    lab.assert_idle();
}

#[test]
fn mac_control_between_data_frames_is_obeyed_first_and_ends_there() {
    let mut lab = lab();
    let data = ipv4(0, 2, 26, 2, 100);
    let mut pause = [0u8; 60];
    pause[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 1]);
    pause[12..20].copy_from_slice(&[0x88, 0x08, 0x01, 0x01, 0, 8, 0, 0]);
    pause[24..26].copy_from_slice(&[0xff, 0xff]);
    for _ in 0..2 {
        lab.arrive(2, &ipv4(2, 0, 26, 2, 100));
        lab.arrive(2, &pause);
    }
    lab.arrive(0, &data);
    lab.steps(2, APART);
    assert_eq!((lab.sent(0).len(), lab.sent(2).len()), (2, 0), "port 2 is paused");
    assert_eq!(lab.port(2).counters().received.frames, 2);
}

/// What is lost before the switch sees it: each total counts once, and again after the port was
/// opened anew, when the kernel starts at 0.
#[test]
fn losses_of_the_driver_are_counted_by_reason() {
    let mut lab = lab();
    let told = Losses { overrun: 3, rx_pressure_lossy: 20, runt: 2, too_long: 1 };
    let worker = &mut lab.workers[0];
    for now in [told, told, Losses { overrun: 5, ..told }] {
        worker.count_losses(port(0), now);
    }
    let counted = |lab: &Lab| {
        let counters = lab.port(0).counters();
        let dropped = |reason| counters.dropped.get(reason);
        let shed = dropped(DropReason::RxPressureLossy);
        let (overrun, violations) = (counters.receive_overrun, counters.lossless_violations);
        (overrun, violations, shed, dropped(DropReason::Parse), dropped(DropReason::TooLong))
    };
    assert_eq!(counted(&lab), (5, 5, 20, 2, 1));
    lab.workers[0].count_losses(port(0), Losses::default());
    lab.workers[0].count_losses(port(0), Losses { overrun: 1, ..Losses::default() });
    assert_eq!(counted(&lab), (6, 6, 20, 2, 1));
}
