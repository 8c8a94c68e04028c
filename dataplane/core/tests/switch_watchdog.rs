//! Storms on a whole switch in memory (SPEC 8): what is dropped, what goes on, what resumes.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lab;

use holdfast_core::drop::DropReason;
use holdfast_core::mmu::EdgeKind;
use holdfast_core::profile::*;
use holdfast_core::trace::EventKind;
use holdfast_core::units::*;
use holdfast_wire::mac_control::encode_pfc;
use lab::*;

/// A step, and so the error of every time in here.
const STEP: Nanos = Nanos(500_000);
const STEPS_A_MS: usize = 2;
/// Frames from port 0 to port 1, DSCP 26: lossless. And those of DSCP 0, lossy.
const LOSSLESS_DSCP: u8 = 26;

fn watchdog(action: WatchdogAction) -> WatchdogSpec {
    WatchdogSpec {
        detection_time: Nanos::millis(200),
        restoration_time: Nanos::millis(100),
        action,
        back_off: false,
    }
}

fn stormy(workers: usize, action: WatchdogAction) -> Lab {
    let mut spec = port_spec();
    spec.watchdog = Some(watchdog(action));
    // A pause lasts 33.5 ms.
    spec.speed = BitRate::gigabits(1);
    let mut lab = Lab::new(workers, 3, spec);
    lab.teach();
    lab
}

/// Port 1 receives a pause of priority 3, for so many quanta.
fn pause(lab: &mut Lab, quanta: u16) {
    let mut bytes = [0; 60];
    encode_pfc(&mut bytes, station(1), 1 << 3, &[0, 0, 0, quanta, 0, 0, 0, 0]);
    lab.arrive(1, &bytes);
}

/// So many ms; in each a pause where `storm`, and a frame of each class from ports 0 and 2 to 1.
fn live(lab: &mut Lab, ms: usize, storm: bool) {
    for _ in 0..ms {
        if storm {
            pause(lab, u16::MAX);
        }
        lab.arrive(0, &ipv4(0, 1, LOSSLESS_DSCP, 2, 1000));
        lab.arrive(2, &ipv4(2, 1, 0, 2, 1000));
        lab.steps(STEPS_A_MS, STEP);
    }
}

/// Frames that left port 1, by lossless and lossy queue.
fn sent(lab: &Lab) -> (u64, u64) {
    let of = |id| lab.port(1).counters().queues[queue(id)].transmitted.frames;
    (of(3), of(0))
}

fn dropped(lab: &Lab) -> u64 {
    lab.port(1).counters().queues[queue(3)].dropped.get(DropReason::Watchdog)
}

/// Times of the storms' beginnings and ends.
fn storms(lab: &Lab) -> Vec<(Time, u8, bool)> {
    let events = lab.events().into_iter();
    let storm = events.filter_map(|event| match event.kind {
        EventKind::Storm(queues, begins) if event.port == port(1) => {
            Some((event.time, queues.0, begins))
        }
        _ => None,
    });
    storm.collect()
}

#[test]
fn a_storm_is_flushed_what_comes_is_dropped_and_upstream_resumes() {
    for workers in [1, 2] {
        let mut lab = stormy(workers, WatchdogAction::Drop);
        // Enough that the ingress PG pauses its peer: the storm would spread.
        let start = lab.now;
        pause(&mut lab, u16::MAX);
        for _ in 0..300 {
            lab.arrive(0, &ipv4(0, 1, LOSSLESS_DSCP, 2, 1000));
            lab.steps(1, Nanos(10_000));
        }
        assert!(lab.pg(0, LOSSLESS).xoff);
        live(&mut lab, 195, true);
        assert_eq!((storms(&lab), dropped(&lab)), (vec![], 0), "not before its time");
        let before = sent(&lab);
        live(&mut lab, 10, true);
        let found = storms(&lab);
        let (at, queues, begins) = found[0];
        assert_eq!((found.len(), queues, begins), (1, 1 << 3, true));
        let after = at.since(start);
        assert!((Nanos::millis(200)..Nanos::millis(203)).contains(&after), "{after:?}");
        // What was queued is dropped with its reason, and the PG upstream is free again.
        assert!(dropped(&lab) > 200, "{}", dropped(&lab));
        assert_eq!(lab.pg(0, LOSSLESS).service, Cells(0));
        assert_eq!(lab.edges(0, LOSSLESS).last().unwrap().kind, EdgeKind::Xon);
        // The rest of the storm costs only its own queue, and no violation.
        let (before_dropped, before_lossy) = (dropped(&lab), before.1);
        live(&mut lab, 100, true);
        assert_eq!(dropped(&lab) - before_dropped, 100);
        let (lossless, lossy) = sent(&lab);
        assert_eq!((lossless, lossy - before_lossy), (before.0, 110));
        for n in 0..3 {
            assert_eq!(lab.port(n).counters().lossless_violations, 0);
        }
        // Over: what comes goes through again.
        live(&mut lab, 150, false);
        let found = storms(&lab);
        assert_eq!((found.len(), found[1].2), (2, false));
        // The last pause came 107 ms after the detection.
        let quiet = found[1].0.since(at);
        assert!((Nanos::millis(207)..Nanos::millis(209)).contains(&quiet), "{quiet:?}");
        let (now, lost) = (sent(&lab).0, dropped(&lab));
        live(&mut lab, 50, false);
        assert_eq!((sent(&lab).0 - now, dropped(&lab)), (50, lost));
        lab.steps(100, STEP);
        lab.assert_idle();
    }
}

#[test]
fn forward_ignores_the_pause_and_alert_only_tells() {
    for (action, flows) in [(WatchdogAction::Forward, true), (WatchdogAction::Alert, false)] {
        let mut lab = stormy(1, action);
        live(&mut lab, 210, true);
        assert_eq!(storms(&lab).len(), 1, "{action:?}");
        let before = sent(&lab).0;
        assert_eq!(before > 0, flows, "{action:?}: {before}");
        live(&mut lab, 50, true);
        assert_eq!(sent(&lab).0 - before, if flows { 50 } else { 0 }, "{action:?}");
        assert_eq!(dropped(&lab), 0);
        // Received pauses are counted all the while.
        let heard =
            lab.port(1).pause_receiver().counts(holdfast_core::ids::Priority::new(3).unwrap());
        assert_eq!(heard.xoff + heard.refresh, 260);
        live(&mut lab, 200, false);
        assert_eq!(storms(&lab).len(), 2, "{action:?}");
        lab.steps(100, STEP);
        lab.assert_idle();
    }
}

#[test]
fn a_queue_that_sends_or_has_nothing_to_send_is_no_storm() {
    let mut lab = stormy(1, WatchdogAction::Drop);
    // Paused for ever, and nothing comes for it.
    for _ in 0..400 {
        pause(&mut lab, u16::MAX);
        lab.steps(STEPS_A_MS, STEP);
    }
    // Paused for half of the time.
    for _ in 0..15 {
        live(&mut lab, 100, true);
        pause(&mut lab, 0);
        live(&mut lab, 100, false);
    }
    // A hold is no pause.
    lab.hold(1, true);
    live(&mut lab, 300, false);
    lab.hold(1, false);
    assert_eq!((storms(&lab), dropped(&lab)), (vec![], 0));
}

#[test]
fn all_priorities_at_once_are_one_storm_of_the_queues_that_can_be_paused() {
    let mut lab = stormy(1, WatchdogAction::Drop);
    for _ in 0..5_000 {
        let mut bytes = [0; 60];
        encode_pfc(&mut bytes, station(1), 0xff, &[u16::MAX; 8]);
        lab.arrive(1, &bytes);
        lab.arrive(0, &ipv4(0, 1, LOSSLESS_DSCP, 2, 1000));
        lab.steps(STEPS_A_MS, STEP);
    }
    let found = storms(&lab);
    assert_eq!((found.len(), found[0].1), (1, 1 << 3), "{found:?}");
}

/// SPEC 8: removing watchdog, PFC or port in mid-storm restores at once.
#[test]
fn taking_the_watchdog_the_pfc_or_the_link_away_ends_the_storm() {
    for what in ["watchdog", "pfc", "link"] {
        let mut lab = stormy(2, WatchdogAction::Drop);
        live(&mut lab, 210, true);
        assert_eq!(storms(&lab).len(), 1);
        match what {
            "watchdog" => lab.apply(|spec| spec.ports[1].watchdog = None),
            "pfc" => lab.apply(|spec| {
                spec.ports[1].pfc.enabled = holdfast_core::ids::PrioritySet::EMPTY;
            }),
            _ => lab.wires[1].borrow_mut().set_up(false),
        }
        lab.steps(1, STEP);
        let found = storms(&lab);
        assert_eq!((found.len(), found[1].2), (2, false), "{what}");
        if what == "link" {
            lab.wires[1].borrow_mut().set_up(true);
        }
        let (before, lost) = (sent(&lab).0, dropped(&lab));
        live(&mut lab, 50, what == "pfc");
        assert_eq!(dropped(&lab), lost, "{what}");
        assert!(what == "watchdog" || sent(&lab).0 > before + 45, "{what}");
    }
}

/// The deadline of a step is enough for a worker that sleeps until then: nothing else wakes it.
#[test]
fn a_sleeping_worker_wakes_for_detection_and_restoration() {
    let mut lab = stormy(1, WatchdogAction::Drop);
    lab.arrive(0, &ipv4(0, 1, LOSSLESS_DSCP, 2, 1000));
    pause(&mut lab, u16::MAX);
    let start = lab.now;
    let mut wakes = 0;
    while lab.now < start.after(Nanos::millis(600)) {
        let worker = &mut lab.workers[0];
        let mut step = worker.step(lab.now);
        while step.work > 0 {
            step = worker.step(lab.now);
        }
        // Refreshed until 250 ms.
        let refresh = lab.now < start.after(Nanos::millis(250));
        let limit = lab.now.after(Nanos::millis(10));
        lab.now = step.next_deadline.min(if refresh { limit } else { Time::NEVER });
        if refresh {
            pause(&mut lab, u16::MAX);
        }
        wakes += 1;
        assert!(wakes < 200, "it wakes for ever");
        if lab.now == Time::NEVER {
            break;
        }
    }
    let found = storms(&lab);
    assert_eq!(found.len(), 2, "{found:?}");
}

/// What an operator does when a storm is told of: what waits is dropped then, not at its end.
#[test]
fn to_drop_is_chosen_while_the_storm_lasts() {
    for workers in [1, 2] {
        let mut lab = stormy(workers, WatchdogAction::Alert);
        pause(&mut lab, u16::MAX);
        for _ in 0..300 {
            lab.arrive(0, &ipv4(0, 1, LOSSLESS_DSCP, 2, 1000));
            lab.steps(1, Nanos(10_000));
        }
        live(&mut lab, 210, true);
        assert!(lab.pg(0, LOSSLESS).xoff && dropped(&lab) == 0);
        lab.apply(|spec| spec.ports[1].watchdog = Some(watchdog(WatchdogAction::Drop)));
        live(&mut lab, 2, true);
        assert!(dropped(&lab) > 200, "{}", dropped(&lab));
        let pg = lab.pg(0, LOSSLESS);
        assert_eq!((pg.service, pg.headroom, pg.xoff), (Cells(0), Cells(0), false));
        assert_eq!(storms(&lab).len(), 1, "the storm goes on");
    }
}
