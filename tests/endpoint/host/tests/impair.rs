//! Hosts that obey pauses badly, in virtual time.
#![allow(clippy::unwrap_used)] // In the functions that tests share.

use holdfast_host::{BitRate, ImpairedReceiver, Impairments, Nanos, PfcReceiver, Time};
use holdfast_wire::{InvalidKind, MacControl};

/// At 1 Gb/s, where a quantum lasts 512 ns.
fn host(enabled: u8, link_pause: bool, impairments: Impairments) -> ImpairedReceiver {
    let speed = BitRate::new(1_000_000_000).unwrap();
    ImpairedReceiver::new(PfcReceiver::new(speed, enabled, link_pause), impairments)
}

fn pfc(enable: u8, quanta: u16) -> MacControl {
    MacControl::Pfc { enable, quanta: [quanta; 8] }
}

/// The nanoseconds in which priority 3 is paused, as a sender sees it that looks at each.
fn paused(host: &mut ImpairedReceiver, frames: &[(u64, MacControl)], until: u64) -> Vec<u64> {
    let mut frames = frames.iter().peekable();
    let mut paused = Vec::new();
    for now in 0..until {
        while let Some((_, frame)) = frames.next_if(|frame| frame.0 <= now) {
            host.receive(Time(now), frame);
        }
        host.advance(Time(now));
        if host.pauses().paused_until(3, Time(now)).is_some() {
            paused.push(now);
        }
    }
    paused
}

#[test]
fn a_delay_shifts_the_begin_and_the_end_of_a_pause() {
    let impairments = Impairments { delay: Nanos(300), ..Impairments::default() };
    // By its timer: 512 ns from 100 on, and so late.
    let mut slow = host(0xff, false, impairments);
    let frames = [(100, pfc(8, 1))];
    assert_eq!(paused(&mut slow, &frames, 2000), Vec::from_iter(400..912));
    let (report, impaired) = slow.report(Time(2000));
    assert_eq!((report.pause_ns[3], report.xoff[3], report.pfc_frames), (512, 1, 1));
    assert_eq!((impaired.frames_delayed, impaired.frames_held), (1, 0));
    // By a resume that comes while the pause hasn't even begun.
    let mut slow = host(0xff, false, impairments);
    let frames = [(100, pfc(8, 9)), (250, pfc(8, 0))];
    assert_eq!(paused(&mut slow, &frames, 2000), Vec::from_iter(400..550));
    assert_eq!(slow.report(Time(2000)).0.pause_ns[3], 150);
}

#[test]
fn what_is_delayed_has_a_time_and_counts_at_once() {
    let impairments = Impairments { delay: Nanos(300), ..Impairments::default() };
    let mut slow = host(0xff, false, impairments);
    assert_eq!(slow.next_change(), None);
    slow.receive(Time(100), &pfc(8, 1));
    slow.receive(Time(150), &pfc(8, 2));
    slow.receive(Time(150), &MacControl::Invalid(InvalidKind::TooShort));
    slow.receive(Time(150), &MacControl::Pause { quanta: 1 });
    assert_eq!(slow.next_change(), Some(Time(400)));
    let (report, impaired) = slow.report(Time(420));
    assert_eq!((report.pfc_frames, report.pause_frames, report.invalid[0]), (2, 1, 1));
    assert_eq!((impaired.frames_delayed, impaired.frames_held), (2, 1), "PAUSE isn't obeyed");
    assert_eq!((slow.next_change(), report.pause_ns[3]), (Some(Time(450)), 20));
}

#[test]
fn a_clock_that_steps_back_changes_no_order() {
    let impairments = Impairments { delay: Nanos(300), ..Impairments::default() };
    let mut slow = host(0xff, false, impairments);
    slow.receive(Time(100), &pfc(8, 9));
    slow.receive(Time(90), &pfc(8, 0));
    slow.advance(Time(400));
    assert_eq!(slow.pauses().paused_until(3, Time(400)), None);
    assert_eq!(slow.report(Time(400)).0.xon[3], 1);
}

#[test]
fn a_lost_xon_lets_the_pause_run_out() {
    let frames = [(100, pfc(0x18, 1)), (200, pfc(0x18, 0))];
    let mut deaf = host(0xff, false, Impairments { lose_xon: 1.0, ..Impairments::default() });
    assert_eq!(paused(&mut deaf, &frames, 2000), Vec::from_iter(100..612));
    let (report, impaired) = deaf.report(Time(2000));
    assert_eq!((report.pfc_frames, report.xoff[3], report.xon[3]), (2, 1, 0));
    assert_eq!(impaired.xon_lost, [0, 0, 0, 1, 1, 0, 0, 0]);
    let mut sound = host(0xff, false, Impairments::default());
    assert_eq!(paused(&mut sound, &frames, 2000), Vec::from_iter(100..200));
    assert_eq!(sound.report(Time(2000)).1, Default::default());
}

#[test]
fn only_the_resumes_of_a_frame_are_lost() {
    let mut deaf = host(0xff, false, Impairments { lose_xon: 1.0, ..Impairments::default() });
    deaf.receive(Time(0), &pfc(0x18, 9));
    let mut quanta = [0; 8];
    quanta[4] = 1;
    deaf.receive(Time(100), &MacControl::Pfc { enable: 0x18, quanta });
    assert_eq!(deaf.pauses().paused_until(3, Time(100)), Some(Time(9 * 512)), "its resume is lost");
    assert_eq!(deaf.pauses().paused_until(4, Time(100)), Some(Time(612)), "its new time is not");
}

#[test]
fn a_share_of_the_resumes_is_lost_the_same_for_the_same_seed() {
    let lost = |seed, share| {
        let mut host =
            host(1, false, Impairments { lose_xon: share, seed, ..Impairments::default() });
        let heard = |n| {
            host.receive(Time(n), &pfc(0b11, 0));
            host.report(Time(n)).0.xon[0]
        };
        let heard: Vec<u64> = (0..2000).map(heard).collect();
        let (report, impaired) = host.report(Time(2000));
        assert_eq!(report.xon[0] + impaired.xon_lost[0], 2000);
        assert_eq!(impaired.xon_lost[1], 0, "it wouldn't have been obeyed");
        (impaired.xon_lost[0], heard)
    };
    assert_eq!(lost(7, 0.3), lost(7, 0.3));
    assert_ne!(lost(7, 0.3).1, lost(8, 0.3).1);
    // 2000 draws deviate by 20 from 600; five times that is never.
    assert!((500..700).contains(&lost(7, 0.3).0), "{}", lost(7, 0.3).0);
    assert_eq!((lost(7, 0.0).0, lost(7, 1.0).0), (0, 2000));
}

#[test]
fn a_links_resume_is_lost_for_all_priorities_or_for_none() {
    let impairments = Impairments { lose_xon: 0.5, seed: 3, ..Impairments::default() };
    let mut deaf = host(0, true, impairments);
    (0..100).for_each(|n| deaf.receive(Time(n), &MacControl::Pause { quanta: 0 }));
    let (report, impaired) = deaf.report(Time(100));
    assert_eq!(impaired.xon_lost, [impaired.xon_lost[0]; 8]);
    assert!((20..80).contains(&impaired.xon_lost[0]), "{impaired:?}");
    assert_eq!(report.xon[0] + impaired.xon_lost[0], report.pause_frames);
}

#[test]
fn a_host_that_ignores_pauses_counts_what_it_should_have_obeyed() {
    let impairments = Impairments { ignore: true, ..Impairments::default() };
    let mut rude = host(0b1000, false, impairments);
    let frames = [(100, pfc(0xff, 9)), (200, pfc(0xff, 9)), (300, pfc(0xff, 0))];
    assert!(paused(&mut rude, &frames, 2000).is_empty());
    let (report, impaired) = rude.report(Time(2000));
    assert_eq!((report.pfc_frames, report.xoff, report.xon), (3, [0; 8], [0; 8]));
    assert_eq!(impaired.xoff_ignored, [0, 0, 0, 2, 0, 0, 0, 0]);
    assert_eq!(impaired.xon_lost, [0, 0, 0, 1, 0, 0, 0, 0]);
    let mut rude = host(0, true, impairments);
    rude.receive(Time(0), &MacControl::Pause { quanta: 5 });
    assert_eq!(rude.pauses().paused_until(0, Time(0)), None);
    assert_eq!(rude.report(Time(0)).1.xoff_ignored, [1; 8]);
}
