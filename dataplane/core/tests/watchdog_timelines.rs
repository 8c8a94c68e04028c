//! The timelines of faults 16 and 30 on a whole switch in memory: what was taken for a storm and is
//! none, each a hundred times with other phases, and the storm that must have one end.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lab;

use holdfast_core::ids::{Priority, PrioritySet};
use holdfast_core::profile::*;
use holdfast_core::trace::EventKind;
use holdfast_core::units::*;
use holdfast_wire::mac_control::encode_pfc;
use lab::*;

const REPORTED: &str = include_str!("../../../tests/fixtures/cases/16_30_pfcwd_timelines.csv");
const ROUNDS: u64 = 100;
const MS: Nanos = Nanos::millis(1);
/// A pause of the longest time lasts so long at 1G.
const LONGEST_MS: u64 = 33;

/// Detection and restoration time of a case, and the times and texts of its lines.
fn case(name: &str) -> (u64, u64, Vec<(u64, &'static str)>) {
    let lines = REPORTED.lines().skip(1).map(|line| line.splitn(5, ',').collect::<Vec<_>>());
    let lines: Vec<_> = lines.filter(|fields| fields[0] == name).collect();
    assert!(!lines.is_empty(), "no case {name}");
    let number = |text: &str| text.parse::<u64>().unwrap();
    let events = lines.iter().map(|fields| (number(fields[3]), fields[4])).collect();
    (number(lines[0][1]), number(lines[0][2]), events)
}

/// The first number in a text after `before`.
fn number_after(text: &str, before: &str) -> u64 {
    let rest = text.split(before).nth(1).unwrap();
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Phases of the rounds: the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Three ports at 1G with a watchdog; classes 3 (DSCP 24..31) and 4 (32..39) are lossless.
fn switch(detection: u64, restoration: u64) -> Lab {
    let mut spec = port_spec();
    spec.speed = BitRate::gigabits(1);
    spec.watchdog = Some(WatchdogSpec {
        detection_time: Nanos::millis(detection),
        restoration_time: Nanos::millis(restoration),
        action: WatchdogAction::Drop,
        back_off: true,
    });
    let four = Priority::new(4).unwrap();
    spec.pgs[pg(4)] = PgSpec { priorities: PrioritySet::only(four), ..lossless_pg() };
    spec.pfc.enabled = spec.pfc.enabled.with(four);
    let cos = |n| holdfast_core::ids::Cos::new(n).unwrap();
    for dscp in 32..40 {
        spec.maps.dscp_to_cos[holdfast_core::ids::Dscp::new(dscp).unwrap()] = cos(4);
    }
    spec.maps.cos_to_pg[cos(4)] = pg(4);
    spec.maps.cos_to_queue[cos(4)] = queue(4);
    let mut lab = Lab::new(1, 3, spec);
    lab.teach();
    lab
}

/// Port 1 hears a PFC frame.
fn hear(lab: &mut Lab, enable: u8, quanta: u16) {
    let mut bytes = [0; 60];
    encode_pfc(&mut bytes, station(1), enable, &[quanta; 8]);
    lab.arrive(1, &bytes);
}

/// A frame from port 0 to port 1.
fn data(lab: &mut Lab, class: u8) {
    lab.arrive(0, &ipv4(0, 1, 8 * class, 2, 1_000));
}

/// Queues of storms, and whether they begin, in order.
fn storms(lab: &Lab) -> Vec<(u64, u8, bool)> {
    let storms = lab.events().into_iter().filter_map(|event| match event.kind {
        EventKind::Storm(queues, begins) => Some((event.time.0, queues.0, begins)),
        _ => None,
    });
    storms.collect()
}

/// All enabled classes stormed for as long as was reported: one detection each, no end until then.
#[test]
fn all_classes_have_one_detection_and_one_end() {
    let (detect, restore, events) = case("all_classes");
    let length = number_after(events[0].1, "for");
    assert_eq!(events[1].0, length);
    let mut lab = switch(detect, restore);
    let begin = lab.now.0;
    for _ in 0..length / 10 {
        hear(&mut lab, 1 << 3 | 1 << 4, u16::MAX);
        data(&mut lab, 3);
        data(&mut lab, 4);
        lab.steps(2, Nanos::millis(5));
    }
    let begun = storms(&lab);
    let classes = |events: &[(u64, u8, bool)], begins: bool| {
        let ours = events.iter().filter(|(.., of)| *of == begins);
        ours.fold((0, 0), |(count, queues), (_, more, _)| {
            (count + more.count_ones(), queues | more)
        })
    };
    assert_eq!(classes(&begun, true), (2, 1 << 3 | 1 << 4), "{begun:?}");
    assert_eq!(classes(&begun, false), (0, 0), "restored {begun:?}");
    assert!(begun.iter().all(|(time, ..)| *time >= begin + detect * MS.0));
    let last = lab.now;
    lab.steps(1_000, MS);
    let ended = storms(&lab);
    assert_eq!(classes(&ended, false), (2, 1 << 3 | 1 << 4), "{ended:?}");
    let end = ended.last().unwrap().0;
    assert!(end < last.0 + (restore + LONGEST_MS) * MS.0, "{ended:?}");
}

/// One pause of a few quanta, late in a poll, and nothing or a little to send: whenever it comes.
#[test]
fn a_late_single_pause_is_no_storm() {
    let (detect, restore, events) = case("late_single_pfc");
    let quanta = number_after(events[0].1, "of") as u16;
    let mut dice = Dice(30);
    for round in 0..ROUNDS {
        let mut lab = switch(detect, restore);
        let at = if round == 0 { events[0].0 } else { dice.below(2 * detect) };
        // The reported one, and the longest there is; into an empty queue, and into one that waits.
        let quanta = if round % 2 == 0 { quanta } else { u16::MAX };
        lab.steps(at as usize, MS);
        hear(&mut lab, 1 << 3, quanta);
        if round % 4 > 1 {
            data(&mut lab, 3);
        }
        lab.steps((events[1].0 - at.min(events[1].0)) as usize + 400, MS);
        assert_eq!(storms(&lab), [], "round {round}, at {at} ms");
    }
}

/// Polls that come up to 350 ms late while pauses cover 60 % of the time: what waited in the RX
/// ring meanwhile is heard at once.
#[test]
fn a_slow_poll_makes_no_storm() {
    let (detect, restore, events) = case("slow_poll");
    let late = number_after(events[0].1, "to");
    let share = number_after(events[0].1, "cover");
    let mut dice = Dice(31);
    for round in 0..ROUNDS {
        let mut lab = switch(detect, restore);
        // On and off in a period, the first of them begun somewhere.
        let period = 20 + dice.below(detect);
        let phase = dice.below(period);
        let mut next_poll = dice.below(late);
        for ms in 0..events[1].0 {
            let paused = (ms + phase) % period < period * share / 100;
            if paused {
                // No longer than the rest of its share.
                let quanta = ((period * share / 100 - (ms + phase) % period) * 65_535 / 34) as u32;
                hear(&mut lab, 1 << 3, quanta.min(u32::from(u16::MAX)) as u16);
            } else if (ms + phase) % period == period * share / 100 {
                hear(&mut lab, 1 << 3, 0);
            }
            data(&mut lab, 3);
            if ms >= next_poll {
                let bound = if dice.below(8) == 0 { late } else { 3 };
                next_poll = ms + 1 + dice.below(bound);
                lab.steps(3, Nanos(0));
            }
            lab.now = lab.now.after(MS);
        }
        assert_eq!(storms(&lab), [], "round {round}, period {period}, phase {phase}");
    }
}

/// One frame a second and short pauses all the time: the old rule counted paused time alone.
#[test]
fn short_pauses_and_a_frame_a_second_are_no_storm() {
    let (detect, restore, _) = case("late_single_pfc");
    let mut dice = Dice(32);
    for round in 0..ROUNDS {
        let mut lab = switch(detect, restore);
        let phase = dice.below(1_000);
        let length = 1 + dice.below(LONGEST_MS - 3);
        for ms in 0..3_000 {
            if (ms + phase) % 1_000 == 0 {
                data(&mut lab, 3);
            }
            // Paused for most of the time, with a gap after each in which the frame may leave.
            if ms % (length + 3) == 0 {
                hear(&mut lab, 1 << 3, (length * 65_535 / 34) as u16);
            }
            lab.steps(1, MS);
        }
        assert_eq!(storms(&lab), [], "round {round}, pauses of {length} ms");
    }
}

/// Nothing waits: however long the pause, it is nobody's storm.
#[test]
fn an_empty_queue_has_no_storm() {
    let (detect, restore, _) = case("late_single_pfc");
    let mut lab = switch(detect, restore);
    for _ in 0..5_000 {
        hear(&mut lab, 1 << 3, u16::MAX);
        // The other class isn't paused.
        data(&mut lab, 4);
        lab.steps(1, MS);
    }
    assert_eq!(storms(&lab), []);
}

/// A link that goes down in the midst of pauses: the port isn't watched while it is down, and time
/// before counts no more.
#[test]
fn a_link_that_flaps_in_a_pause_has_no_storm() {
    let (detect, restore, _) = case("late_single_pfc");
    let mut dice = Dice(33);
    for round in 0..ROUNDS {
        let mut lab = switch(detect, restore);
        for _ in 0..4 {
            let (up, down) = (1 + dice.below(detect - 5), 1 + dice.below(3 * detect));
            for (ms, is_up) in [(up, true), (down, false)] {
                lab.wires[1].borrow_mut().set_up(is_up);
                for _ in 0..ms {
                    if is_up {
                        hear(&mut lab, 1 << 3, u16::MAX);
                    }
                    data(&mut lab, 3);
                    lab.steps(1, MS);
                }
            }
        }
        assert_eq!(storms(&lab), [], "round {round}");
    }
}

/// And a storm that is one is found, however late the polls: at the first one after its time.
#[test]
fn a_true_storm_is_found_by_the_first_poll_after_its_time() {
    let (detect, restore, events) = case("slow_poll");
    let late = number_after(events[0].1, "to");
    let mut dice = Dice(34);
    for round in 0..ROUNDS {
        let mut lab = switch(detect, restore);
        hear(&mut lab, 1 << 3, u16::MAX);
        data(&mut lab, 3);
        lab.steps(1, MS);
        let begin = lab.now.0;
        let mut due = None;
        while due.is_none() {
            // A pause every 10 ms; what waits in the ring is heard at the poll.
            for _ in 0..(1 + dice.below(LONGEST_MS.min(late) - 1)) {
                lab.now = lab.now.after(MS);
            }
            hear(&mut lab, 1 << 3, u16::MAX);
            lab.steps(1, Nanos(0));
            due = (lab.now.0 >= begin + detect * MS.0).then_some(lab.now.0);
        }
        assert_eq!(storms(&lab), [(due.unwrap(), 1 << 3, true)], "round {round}");
    }
}
