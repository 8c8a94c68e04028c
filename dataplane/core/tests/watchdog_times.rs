//! When a pause is a storm, and when that is over (SPEC 8): the watchdog of one queue against a
//! model that knows every nanosecond.
#![allow(clippy::unwrap_used, clippy::panic)] // A failed set-up fails the test.

use holdfast_core::pfc::watchdog::{Change, Look, QueueWatch, MOST_BACK_OFF, REPEATS_WITHIN};
use holdfast_core::profile::{WatchdogAction, WatchdogSpec};
use holdfast_core::units::{Nanos, Time};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
/// When the tests begin.
const START: u64 = 1_000 * MS;

const fn spec(back_off: bool) -> WatchdogSpec {
    WatchdogSpec {
        detection_time: Nanos::millis(200),
        restoration_time: Nanos::millis(300),
        action: WatchdogAction::Drop,
        back_off,
    }
}

/// A queue as its owner sees it, and its watchdog.
struct Queue {
    spec: WatchdogSpec,
    watch: QueueWatch,
    now: u64,
    waiting: bool,
    sent: u64,
    paused: u64,
    heard: u64,
    until: u64,
}

impl Queue {
    fn new(back_off: bool) -> Self {
        Self {
            spec: spec(back_off),
            watch: QueueWatch::default(),
            now: START,
            waiting: true,
            sent: 7,
            paused: 0,
            heard: 0,
            until: 0,
        }
    }

    /// Time passes; nobody looks.
    fn pass(&mut self, ns: u64) {
        let end = self.now + ns;
        self.paused += end.min(self.until).saturating_sub(self.now);
        self.now = end;
    }

    fn pause(&mut self, ns: u64) {
        (self.heard, self.until) = (self.now, self.now + ns);
    }

    fn look(&mut self) -> Option<Change> {
        let Self { now, waiting, sent, paused, heard, until, .. } = *self;
        let look = Look {
            now: Time(now),
            waiting,
            sent,
            paused: Nanos(paused),
            heard: Time(heard),
            paused_until: Time(until),
        };
        self.watch.look(&self.spec, look)
    }

    /// Time passes with a look wherever the watchdog wants one. Changes, and when they came.
    fn live(&mut self, ns: u64) -> Vec<(u64, Change)> {
        let end = self.now + ns;
        let mut changes = Vec::new();
        changes.extend(self.look().map(|change| (self.now, change)));
        loop {
            let deadline = self.watch.deadline(&self.spec).0;
            if deadline > end {
                break;
            }
            assert!(deadline > self.now, "it wants to be looked at for ever");
            self.pass(deadline - self.now);
            changes.extend(self.look().map(|change| (self.now, change)));
        }
        self.pass(end - self.now);
        changes.extend(self.look().map(|change| (self.now, change)));
        changes
    }

    /// A pause that is refreshed every millisecond for so long.
    fn storm(&mut self, ns: u64) -> Vec<(u64, Change)> {
        let (end, mut changes) = (self.now + ns, Vec::new());
        while self.now < end {
            self.pause(33 * MS);
            changes.extend(self.live(MS.min(end - self.now)));
        }
        changes
    }
}

use Change::{Detected, Restored};

#[test]
fn a_storm_is_detected_at_the_detection_time_to_the_nanosecond() {
    let mut queue = Queue::new(true);
    queue.pause(1_000 * MS);
    assert_eq!(queue.live(200 * MS - 1), []);
    assert_eq!(queue.live(1), [(START + 200 * MS, Detected)]);
    assert!(queue.watch.is_stormed());
    assert_eq!((queue.watch.detections(), queue.watch.restorations()), (1, 0));
}

#[test]
fn it_is_restored_so_long_after_the_last_pause() {
    let mut queue = Queue::new(true);
    let detected = queue.storm(250 * MS);
    assert_eq!(detected, [(START + 200 * MS, Detected)]);
    let last = START + 249 * MS;
    assert_eq!(queue.live(1_000 * MS), [(last + 300 * MS, Restored)]);
    // Resumes are no pauses: they neither help nor delay.
    assert!(!queue.watch.is_stormed());
}

/// On a slow port a pause lasts longer than the restoration time: it would be the next storm.
#[test]
fn it_is_not_restored_into_a_pause_that_still_runs() {
    let mut queue = Queue::new(true);
    queue.pause(3_000 * MS);
    assert_eq!(queue.live(210 * MS), [(START + 200 * MS, Detected)]);
    assert_eq!(queue.live(5_000 * MS), [(START + 3_000 * MS, Restored)]);
}

#[test]
fn half_the_time_is_never_a_storm() {
    let mut queue = Queue::new(true);
    for _ in 0..15 {
        assert_eq!(queue.storm(100 * MS), []);
        // It may send, and does.
        queue.until = queue.now;
        queue.sent += 1;
        assert_eq!(queue.live(5 * MS), []);
    }
    assert_eq!(queue.watch.detections(), 0);
}

#[test]
fn a_frame_sent_or_an_empty_queue_begins_anew() {
    for sends in [true, false] {
        let mut queue = Queue::new(true);
        assert_eq!(queue.storm(199 * MS), []);
        if sends {
            queue.sent += 1;
        } else {
            queue.waiting = false;
            assert_eq!(queue.live(0), []);
            queue.waiting = true;
        }
        assert_eq!(queue.storm(199 * MS), []);
        assert_eq!(queue.storm(5 * MS).len(), 1);
    }
}

#[test]
fn one_percent_of_the_time_may_be_free_and_no_more() {
    // Ten gaps of 0.2 ms in 200 ms are 1 %, of 0.21 ms more.
    for (gap, storms) in [(200_000, true), (210_000, false)] {
        let mut queue = Queue::new(true);
        let mut changes = Vec::new();
        for _ in 0..10 {
            queue.pause(20 * MS - gap);
            changes.extend(queue.live(20 * MS));
        }
        assert_eq!(!changes.is_empty(), storms, "gaps of {gap} ns: {changes:?}");
    }
}

#[test]
fn storms_that_repeat_double_the_restoration_time_up_to_eight_times() {
    for back_off in [true, false] {
        let mut queue = Queue::new(back_off);
        for factor in [1, 2, 4, 8, 8] {
            let factor = if back_off { factor } else { 1 };
            assert!(factor <= MOST_BACK_OFF);
            queue.storm(250 * MS);
            let last = queue.now - MS;
            assert_eq!(queue.live(5_000 * MS), [(last + factor * 300 * MS, Restored)]);
        }
        // After a quiet minute it is as at first.
        queue.live(REPEATS_WITHIN.0);
        queue.storm(250 * MS);
        let last = queue.now - MS;
        assert_eq!(queue.live(5_000 * MS), [(last + 300 * MS, Restored)]);
    }
}

#[test]
fn a_storm_of_a_minute_is_one_storm() {
    let mut queue = Queue::new(true);
    assert_eq!(queue.storm(60_000 * MS), [(START + 200 * MS, Detected)]);
}

#[test]
fn giving_up_ends_it_at_once_and_forgets() {
    let mut queue = Queue::new(true);
    queue.storm(250 * MS);
    assert!(queue.watch.give_up(Time(queue.now)) && !queue.watch.is_stormed());
    assert_eq!(queue.watch.restorations(), 1);
    assert!(!queue.watch.give_up(Time(queue.now)), "there is none any more");
    // A new one takes its whole time.
    let now = queue.now;
    assert_eq!(queue.storm(201 * MS), [(now + 200 * MS, Detected)]);
}

/// A worker that was late for half a second sees what was, not what might have been: each pause ran
/// out long before.
#[test]
fn a_late_look_makes_no_storm_of_a_short_pause() {
    let mut queue = Queue::new(true);
    queue.pause(33 * MS);
    queue.look();
    queue.pass(500 * MS);
    queue.pause(33 * MS);
    assert_eq!(queue.look(), None);
    assert_eq!(queue.live(30 * MS), []);
}

proptest! {
    /// Never earlier than the definition allows, and no later than two hundredths of the time after
    /// it: against every nanosecond remembered.
    #[test]
    fn detection_agrees_with_the_definition(
        steps in proptest::collection::vec((1u64..40, 0u64..3, 0u64..40, 0u8..20), 1..60),
    ) {
        let mut queue = Queue::new(true);
        // (begin, end) of the times at which it was free, since it stands.
        let mut free: Vec<(u64, u64)> = Vec::new();
        let mut stands: Option<u64> = None;
        for (pause, gap, wait, action) in steps {
            queue.pause(pause * MS);
            if action == 0 {
                queue.sent += 1;
                (stands, free) = (None, Vec::new());
            }
            if stands.is_none() {
                stands = Some(queue.now);
            }
            let began = queue.now;
            let changes = queue.live(pause.min(wait.max(1)) * MS);
            queue.until = queue.until.min(queue.now);
            let paused_to = queue.now;
            let more = queue.live(gap * MS);
            if gap > 0 {
                free.push((paused_to, queue.now));
            }
            if let Some((at, change)) = changes.into_iter().chain(more).next() {
                prop_assert_eq!(change, Detected);
                let begin = at - 200 * MS;
                prop_assert!(stands.unwrap() <= begin, "{} ms", (at - stands.unwrap()) / MS);
                let free: u64 = free
                    .iter()
                    .map(|(b, e)| (*e).min(at).saturating_sub((*b).max(begin)))
                    .sum();
                prop_assert!(free * 100 <= 200 * MS, "free for {free} ns");
                return Ok(());
            }
            // Had it been a storm for longer than the granularity allows, it was missed.
            let at = queue.now;
            let begin = at.saturating_sub(210 * MS);
            let no_gap = free.iter().all(|(_, e)| *e <= begin);
            prop_assert!(
                stands.unwrap() > begin || !no_gap || began > at,
                "missed a storm of {} ms", (at - stands.unwrap()) / MS
            );
        }
    }
}

/// A pause that came while a step was under way is later than the step's time: nothing is early.
#[test]
fn the_time_of_the_frame_counts_and_not_that_of_its_step() {
    let mut queue = Queue::new(true);
    let late = 90_000;
    (queue.heard, queue.until) = (START + late, START + late + 1_000 * MS);
    assert_eq!(queue.live(200 * MS + late - 1), []);
    assert_eq!(queue.live(1), [(START + late + 200 * MS, Detected)]);
    (queue.heard, queue.until) = (queue.now + late, queue.now + late + 33 * MS);
    let last = queue.heard;
    assert_eq!(queue.live(500 * MS), [(last + 300 * MS, Restored)]);
}
