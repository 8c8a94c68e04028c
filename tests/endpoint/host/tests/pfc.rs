//! A host's pauses (SPEC 4.2): replace, resume, expire, and what has no effect.
#![allow(clippy::unwrap_used)] // In the functions that tests share.

use holdfast_host::{BitRate, Nanos, PfcReceiver, Time};
use holdfast_wire::{InvalidKind, MacControl};
use proptest::prelude::*;

/// One quantum lasts 512 ns.
fn gigabit() -> BitRate {
    BitRate::new(1_000_000_000).unwrap()
}

fn pfc(enable: u8, quanta: u16) -> MacControl {
    let mut times = [0; 8];
    (0..8).filter(|n| enable >> n & 1 == 1).for_each(|n| times[n] = quanta);
    MacControl::Pfc { enable, quanta: times }
}

#[test]
fn a_pause_lasts_its_quanta_and_no_longer() {
    let mut host = PfcReceiver::new(gigabit(), 0xff, false);
    host.receive(Time(1000), &pfc(0b1000, 100));
    assert_eq!(host.paused_until(3, Time(1000)), Some(Time(1000 + 51_200)));
    assert_eq!(host.paused_until(3, Time(52_199)), Some(Time(52_200)));
    assert_eq!(host.paused_until(3, Time(52_200)), None);
    assert_eq!(host.paused_until(4, Time(1000)), None);
    assert_eq!(host.report(Time(26_600)).pause_ns[3], 25_600);
    assert_eq!(host.report(Time(99_999)).pause_ns[3], 51_200);
}

#[test]
fn zero_resumes_at_once_and_a_new_time_replaces_the_old() {
    let mut host = PfcReceiver::new(gigabit(), 0xff, false);
    host.receive(Time(0), &pfc(0b11000, u16::MAX));
    host.receive(Time(100), &pfc(0b01000, 0));
    assert_eq!(host.paused_until(3, Time(100)), None);
    assert!(host.paused_until(4, Time(100)).is_some(), "a clear bit leaves its priority alone");
    host.receive(Time(200), &pfc(0b10000, 1));
    assert_eq!(host.paused_until(4, Time(200)), Some(Time(712)), "shorter replaces longer");
    let report = host.report(Time(10_000));
    assert_eq!((report.pause_ns[3], report.pause_ns[4]), (100, 712));
    assert_eq!((report.xoff[3], report.xon[3], report.xoff[4], report.xon[4]), (1, 1, 2, 0));
    assert_eq!(report.pfc_frames, 3);
}

#[test]
fn refreshes_are_counted_once_as_time() {
    let mut host = PfcReceiver::new(gigabit(), 0xff, false);
    for now in (0..10_000).step_by(100) {
        host.receive(Time(now), &pfc(1, 1));
    }
    assert_eq!(host.report(Time(20_000)).pause_ns[0], 9_900 + 512);
}

#[test]
fn a_priority_without_pfc_and_a_link_without_pause_are_not_stopped() {
    let mut host = PfcReceiver::new(gigabit(), 0b1000, false);
    host.receive(Time(0), &pfc(0b10000, 9));
    host.receive(Time(0), &MacControl::Pause { quanta: 9 });
    assert!((0..8).all(|priority| host.paused_until(priority, Time(0)).is_none()));
    let report = host.report(Time(0));
    assert_eq!((report.pfc_frames, report.pause_frames, report.xoff), (1, 1, [0; 8]));
    let mut host = PfcReceiver::new(gigabit(), 0, true);
    host.receive(Time(0), &MacControl::Pause { quanta: 9 });
    assert!((0..8).all(|priority| host.paused_until(priority, Time(0)).is_some()));
}

#[test]
fn invalid_frames_are_counted_by_kind() {
    let mut host = PfcReceiver::new(gigabit(), 0xff, true);
    for kind in InvalidKind::ALL {
        (0..=kind.index()).for_each(|_| host.receive(Time(0), &MacControl::Invalid(kind)));
    }
    assert_eq!(host.report(Time(0)).invalid, [1, 2, 3, 4]);
    assert_eq!(host.report(Time(0)).pfc_frames, 0);
}

proptest! {
    /// Against a naive model that looks at every nanosecond.
    #[test]
    fn paused_time_equals_a_count_of_paused_nanoseconds(
        events in proptest::collection::vec((1u64..2000, 0u16..4), 1..20),
    ) {
        let mut host = PfcReceiver::new(gigabit(), 0xff, false);
        let (mut now, mut until, mut paused) = (0, 0, 0);
        for (gap, quanta) in events {
            for _ in 0..gap {
                paused += u64::from(now < until);
                now += 1;
            }
            host.receive(Time(now), &pfc(1, quanta));
            until = now + u64::from(quanta) * 512;
            prop_assert_eq!(host.paused_until(0, Time(now)).is_some(), quanta > 0);
            prop_assert_eq!(host.report(Time(now)).pause_ns[0], paused);
        }
        prop_assert_eq!(Time(5).since(Time(9)), Nanos(0));
    }
}
