//! The shaper keeps its rate to the bit, the pacer its bound (SPEC 4.2, 6).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_core::sched::{Pacer, Shaper};
use holdfast_core::units::*;
use proptest::prelude::*;

const CATCH_UP: Nanos = Nanos::micros(50);

fn rate(bits_per_second: u64) -> BitRate {
    BitRate::new(bits_per_second).unwrap()
}

/// The instant at which `bytes` end at `rate`, in whole nanoseconds.
fn exact_end(bytes: u64, rate: BitRate) -> Time {
    let ns = u128::from(bytes) * 8_000_000_000 / u128::from(rate.bits_per_second());
    Time(u64::try_from(ns).unwrap())
}

#[test]
fn a_frame_counts_24_bytes_more_than_its_length() {
    let mut shaper = Shaper::new(rate(8_000_000_000), CATCH_UP);
    shaper.charge(FrameLen(60).on_wire(), Time(0));
    assert_eq!(shaper.ready_at(), Time(84));
    assert!(!shaper.ready(Time(83)));
    assert!(shaper.ready(Time(84)));
}

#[test]
fn no_rate_drifts_over_a_million_frames() {
    let speeds = [400_000_000_000, 800_000_000, 25_000_000_000, 1_000_000_007, 333_333_333, 999];
    for speed in speeds.map(rate) {
        let mut shaper = Shaper::new(speed, CATCH_UP);
        let mut bytes = 0;
        for n in 0..1_000_000u64 {
            let wire = FrameLen((64 + n * 7 % 9_000) as u16).on_wire();
            let now = shaper.ready_at();
            shaper.charge(wire, now);
            bytes += u64::from(wire.0);
        }
        assert_eq!(shaper.ready_at(), exact_end(bytes, speed), "{speed:?}");
    }
}

/// Sends 1500-byte frames whenever a step comes and the shaper lets them; the bytes on the wire.
fn run(shaper: &mut Shaper, steps: impl Iterator<Item = Time>) -> u64 {
    let wire = FrameLen(1_500).on_wire();
    let mut bytes = 0;
    for now in steps {
        while shaper.ready(now) {
            shaper.charge(wire, now);
            bytes += u64::from(wire.0);
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn late_steps_lose_no_rate_up_to_catch_up(
        fast: bool,
        gaps in proptest::collection::vec(1..=CATCH_UP.0, 1_000..4_000),
    ) {
        let speed = rate(if fast { 400_000_000_000 } else { 800_000_000 });
        let mut shaper = Shaper::new(speed, CATCH_UP);
        let mut end = Time(0);
        let times = std::iter::once(0).chain(gaps).map(|gap| {
            end = end.after(Nanos(gap));
            end
        });
        let bytes = run(&mut shaper, times);
        // All that fits until the last step, and the frame that began then, less than 1 ns early.
        let exact = speed.bytes_in(Nanos(end.0)).0;
        let frame = u64::from(FrameLen(1_500).on_wire().0);
        let most = exact + frame + speed.bytes_in(Nanos(1)).0 + 1;
        prop_assert!(exact < bytes && bytes <= most, "{} of {}", bytes, exact);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Frames of any lengths, each sent as soon as it may be, at any rate: each begins at the whole
    /// nanosecond at which all before it have ended, counted from the last time the port was idle.
    #[test]
    fn frames_begin_when_those_before_them_have_ended(
        bits_per_second in 1_000_000u64..=400_000_000_000,
        runs in proptest::collection::vec(
            (0u64..=1_000_000_000, proptest::collection::vec(60u16..=9_226, 1..60)), 1..20),
    ) {
        let speed = rate(bits_per_second);
        let mut shaper = Shaper::new(speed, CATCH_UP);
        for (quiet, lens) in runs {
            let begin = shaper.ready_at().after(Nanos(quiet));
            shaper.idle(begin);
            prop_assert!(shaper.ready(begin));
            let (mut bytes, mut now) = (0, begin);
            for len in lens {
                let wire = FrameLen(len).on_wire();
                shaper.charge(wire, now);
                bytes += u64::from(wire.0);
                now = shaper.ready_at();
                let exact = exact_end(bytes, speed).0 + begin.0;
                // The part of a nanosecond that the run began with is carried along.
                prop_assert!(now.0 == exact || now.0 == exact + 1, "{} for {}", now.0, exact);
                prop_assert!(!shaper.ready(Time(now.0 - 1)) && shaper.ready(now));
            }
        }
    }
}

#[test]
fn lateness_beyond_catch_up_is_lost() {
    let speed = rate(400_000_000_000);
    let mut shaper = Shaper::new(speed, CATCH_UP);
    run(&mut shaper, std::iter::once(Time(0)));
    let burst = run(&mut shaper, std::iter::once(Time(1_000_000_000)));
    let allowed = speed.bytes_in(CATCH_UP).0;
    let frame = u64::from(FrameLen(1_500).on_wire().0);
    assert!(allowed <= burst && burst <= allowed + frame, "{burst} of {allowed}");
}

#[test]
fn a_silent_port_does_not_save_up_a_burst() {
    let mut shaper = Shaper::new(rate(400_000_000_000), CATCH_UP);
    shaper.idle(Time(1_000_000));
    let burst = run(&mut shaper, std::iter::once(Time(1_000_000)));
    assert_eq!(burst, u64::from(FrameLen(1_500).on_wire().0));
    shaper.idle(Time(1_000_000));
    assert!(!shaper.ready(Time(1_000_000)), "idling doesn't forget the frame under way");
}

#[test]
fn another_rate_holds_from_the_next_frame_on() {
    let mut shaper = Shaper::new(rate(8_000_000_000), CATCH_UP);
    shaper.charge(WireBytes(100), Time(0));
    shaper.adopt(rate(800_000_000), CATCH_UP);
    assert_eq!(shaper.ready_at(), Time(100));
    shaper.charge(WireBytes(100), Time(100));
    assert_eq!(shaper.ready_at(), Time(1_100));
}

#[test]
fn adopting_the_same_rate_again_and_again_does_not_drift() {
    let speed = rate(333_333_333);
    let mut shaper = Shaper::new(speed, CATCH_UP);
    for _ in 0..1_000 {
        let now = shaper.ready_at();
        shaper.charge(WireBytes(100), now);
        shaper.adopt(speed, CATCH_UP);
    }
    assert_eq!(shaper.ready_at(), exact_end(100_000, speed));
}

#[test]
fn the_tx_ring_holds_no_more_than_its_bound() {
    let mut pacer = Pacer::new(3_000);
    for _ in 0..2 {
        assert!(pacer.has_room(FrameLen(1_500)));
        pacer.entered(FrameLen(1_500));
    }
    assert!(!pacer.has_room(FrameLen(1)));
    pacer.left(FrameLen(1_500));
    assert!(pacer.has_room(FrameLen(1_500)));
    assert!(!pacer.has_room(FrameLen(1_501)));
    assert_eq!(pacer.inflight(), 1_500);
}

#[test]
fn a_smaller_bound_drains_and_never_blocks_an_empty_ring() {
    let mut pacer = Pacer::new(10_000);
    pacer.entered(FrameLen(9_000));
    pacer.adopt(3_000);
    assert!(!pacer.has_room(FrameLen(64)));
    pacer.left(FrameLen(9_000));
    assert!(pacer.has_room(FrameLen(9_000)));
}
