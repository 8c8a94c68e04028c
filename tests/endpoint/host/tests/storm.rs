//! A storm in virtual time: when each frame is due, and what is measured if it leaves late.
#![allow(clippy::unwrap_used)] // In the functions that tests share.

use holdfast_host::{
    BitRate, Bursts, ImpairedReceiver, Impairments, Nanos, PfcReceiver, Storm, StormEnd, StormPlan,
    StormStep, StormTarget, Time,
};
use holdfast_wire::{parse_mac_control, MacAddr, MacControl};

/// A frame that left: when, and whether it was a resume.
type Left = (u64, bool);

/// Runs a storm whose caller wakes up `late` after each time it was told to wait for, and needs
/// `call` for sending; stopped at `stop`.
fn run(plan: StormPlan, late: u64, call: u64, stop: Option<u64>) -> (Storm, Vec<Left>, StormEnd) {
    let start = 1000;
    let (mut storm, mut now, mut left) = (Storm::new(plan, Time(start)), start, Vec::new());
    for _ in 0..100_000 {
        if stop.is_some_and(|stop| now >= start + stop) {
            storm.stop(Time(now));
        }
        match storm.step(Time(now)) {
            StormStep::Done(end) => return (storm, left, end),
            StormStep::Wait(until) => {
                assert!(until > Time(now), "no standing still");
                now = until.0.min(stop.map_or(u64::MAX, |stop| (start + stop).max(now + 1))) + late;
            }
            step => {
                left.push((now - start, step == StormStep::Resume));
                if step == StormStep::Pause {
                    storm.note_pause(Time(now), Time(now + call));
                } else {
                    storm.note_resume(true);
                }
                now += call;
            }
        }
    }
    unreachable!("the storm never ends");
}

fn plan(pause: u64) -> StormPlan {
    StormPlan { pause: Nanos(pause), ..StormPlan::default() }
}

fn pauses(times: &[u64]) -> Vec<Left> {
    times.iter().map(|&time| (time, false)).collect()
}

#[test]
fn each_pause_follows_after_half_of_the_one_before() {
    let (storm, left, end) = run(StormPlan { count: Some(4), ..plan(1000) }, 0, 0, None);
    assert_eq!((left, end), (pauses(&[0, 500, 1000, 1500]), StormEnd::Count));
    let report = storm.report();
    assert_eq!((report.sent, report.bursts, report.xons_sent, report.pause_ns), (4, 1, 0, 1000));
    assert_eq!((report.longest_gap_ns, report.gaps_longer_than_pause), (500, 0));
    assert_eq!(report.most_late_ns, 0);
}

#[test]
fn a_storm_lasts_its_length_and_resumes_if_wished() {
    let length = StormPlan { length: Some(Nanos(1600)), ..plan(1000) };
    let (_, left, end) = run(length, 0, 0, None);
    assert_eq!((left, end), (pauses(&[0, 500, 1000, 1500]), StormEnd::Length));
    let (storm, left, end) = run(StormPlan { xon: true, ..length }, 0, 0, None);
    assert_eq!((left.len(), left[4], end), (5, (1600, true), StormEnd::Length));
    assert_eq!((storm.report().sent, storm.report().xons_sent), (4, 1));
}

#[test]
fn lateness_is_measured_and_a_gap_is_counted() {
    // Woken 300 late: a gap of 800, within the pause. Woken 600 late: longer than the pause.
    for (late, longest, over) in [(300, 800, 0), (500, 1000, 0), (600, 1100, 3)] {
        let plan = StormPlan { count: Some(4), ..plan(1000) };
        let (storm, ..) = run(plan, late, 0, None);
        let report = storm.report();
        assert_eq!((report.longest_gap_ns, report.gaps_longer_than_pause), (longest, over));
        assert_eq!(report.most_late_ns, late);
    }
}

#[test]
fn a_gap_is_the_longest_that_the_readings_of_the_clock_allow() {
    // The first call may have sent at once and the second one at its very end.
    let (storm, ..) = run(StormPlan { count: Some(2), ..plan(1000) }, 0, 600, None);
    assert_eq!(storm.report().longest_gap_ns, 1200);
    assert_eq!(storm.report().gaps_longer_than_pause, 1);
}

#[test]
fn a_pause_that_ran_out_before_the_end_is_a_gap_too() {
    // Woken long after the end: the only pause, of 1000, didn't last the 3000 of the storm.
    let plan = StormPlan { length: Some(Nanos(3000)), ..plan(1000) };
    let (storm, left, _) = run(plan, 50_000, 0, None);
    assert_eq!(left, pauses(&[0]));
    assert_eq!(storm.report().longest_gap_ns, 3000);
    assert_eq!(storm.report().gaps_longer_than_pause, 1);
}

#[test]
fn bursts_follow_each_other_and_the_quiet_between_is_no_gap() {
    let bursts = Some(Bursts { count: 3, on: Nanos(1200), off: Nanos(5000) });
    let (storm, left, end) = run(StormPlan { bursts, ..plan(1000) }, 0, 0, None);
    let times = [0, 500, 1000, 6200, 6700, 7200, 12_400, 12_900, 13_400];
    assert_eq!((left, end), (pauses(&times), StormEnd::Count));
    assert_eq!((storm.report().bursts, storm.report().gaps_longer_than_pause), (3, 0));
    let (storm, left, _) = run(StormPlan { bursts, xon: true, ..plan(1000) }, 0, 0, None);
    let resumes: Vec<u64> = left.iter().filter(|left| left.1).map(|left| left.0).collect();
    assert_eq!(resumes, [1200, 7400, 13_600]);
    assert_eq!((storm.report().sent, storm.report().xons_sent), (9, 3));
    let length = Some(Nanos(6300));
    let (storm, left, end) = run(StormPlan { bursts, length, ..plan(1000) }, 0, 0, None);
    assert_eq!((left.len(), end, storm.report().bursts), (4, StormEnd::Length, 2));
    let length = Some(Nanos(3000));
    let (_, left, end) = run(StormPlan { bursts, length, ..plan(1000) }, 0, 0, None);
    assert_eq!((left.len(), end), (3, StormEnd::Length), "it ends in the quiet too");
}

#[test]
fn a_stopped_storm_still_resumes() {
    let (storm, left, end) = run(StormPlan { xon: true, ..plan(1000) }, 0, 0, Some(1300));
    assert_eq!(end, StormEnd::Stopped);
    assert_eq!(left, [(0, false), (500, false), (1000, false), (1300, true)]);
    assert_eq!(storm.report().xons_sent, 1);
    let bursts = Some(Bursts { count: 3, on: Nanos(100), off: Nanos(5000) });
    let (storm, left, end) = run(StormPlan { bursts, ..plan(1000) }, 0, 0, Some(2000));
    assert_eq!((left.len(), end, storm.report().bursts), (1, StormEnd::Stopped, 1));
    // Stopped long after its pause ran out: a gap too.
    let mut storm = Storm::new(plan(1000), Time(0));
    assert_eq!(storm.step(Time(0)), StormStep::Pause);
    storm.note_pause(Time(0), Time(0));
    storm.stop(Time(3000));
    assert_eq!(storm.step(Time(3000)), StormStep::Done(StormEnd::Stopped));
    assert_eq!(storm.report().gaps_longer_than_pause, 1);
}

#[test]
fn its_frames_are_read_back_as_what_was_asked_for() {
    let mac = MacAddr([2, 0, 0, 0, 0, 7]);
    let frame = StormTarget::Priorities(0b1_1000).frame(mac, 0xfffe);
    let quanta = [0, 0, 0, 0xfffe, 0xfffe, 0, 0, 0];
    assert_eq!(parse_mac_control(&frame), MacControl::Pfc { enable: 0b1_1000, quanta });
    assert_eq!((&frame[..6], &frame[6..12]), (&[1, 0x80, 0xc2, 0, 0, 1][..], &mac.0[..]));
    let frame = StormTarget::Link.frame(mac, 9);
    assert_eq!(parse_mac_control(&frame), MacControl::Pause { quanta: 9 });
}

#[test]
fn a_host_in_a_storm_never_gets_a_word_in() {
    let gigabit = BitRate::new(1_000_000_000).unwrap();
    let pause = gigabit.quanta(100);
    let length = Some(Nanos(1_000_000));
    let (storm, left, _) = run(StormPlan { pause, length, ..StormPlan::default() }, 900, 0, None);
    assert_eq!(storm.report().gaps_longer_than_pause, 0);
    let frame = StormTarget::Priorities(1 << 3).frame(MacAddr([2; 6]), 100);
    let pfc = PfcReceiver::new(gigabit, 0xff, false);
    let mut host = ImpairedReceiver::new(pfc, Impairments::default());
    let mut left = left.iter().peekable();
    for now in 0..1_000_000 {
        while left.next_if(|left| left.0 <= now).is_some() {
            host.receive(Time(now), &parse_mac_control(&frame));
        }
        assert!(host.pauses().paused_until(3, Time(now)).is_some(), "free at {now}");
    }
}
