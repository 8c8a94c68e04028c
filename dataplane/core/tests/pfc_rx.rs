//! Received pauses: SPEC 4.2, sentence by sentence, and against a model that counts nanoseconds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_core::ids::*;
use holdfast_core::pfc::{PauseCounts, PauseReceiver};
use holdfast_core::profile::*;
use holdfast_core::units::*;
use holdfast_wire::mac_control::{parse_mac_control, InvalidKind, MacControl};
use proptest::prelude::*;

/// One quantum lasts 1 ns at this speed.
const NS_QUANTA: BitRate = BitRate::gigabits(512);
const ENABLED: PrioritySet = PrioritySet(0b0000_1000);

fn p(n: u8) -> Priority {
    Priority::new(n).unwrap()
}

fn queue_bit(n: u8) -> QueueSet {
    QueueSet::only(QueueId::new(n).unwrap())
}

fn spec(enabled: PrioritySet, link_pause: bool) -> PfcSpec {
    PfcSpec {
        enabled,
        quanta: Quanta(65_535),
        resume: Resume::Xon,
        link_pause,
        rx_backlog_mark: 256,
    }
}

fn receiver() -> PauseReceiver {
    PauseReceiver::new(&spec(ENABLED, false), NS_QUANTA)
}

fn pfc(times: &[(u8, u16)]) -> MacControl {
    let (mut enable, mut quanta) = (0, [0; 8]);
    for (priority, time) in times {
        enable |= 1 << priority;
        quanta[usize::from(*priority)] = *time;
    }
    MacControl::Pfc { enable, quanta }
}

/// Priority n stops queue n, priority 3 stops queue 5 too.
fn maps() -> ClassMaps {
    let cos = Cos::default();
    ClassMaps {
        trust: Trust::Port,
        default_cos: cos,
        dscp_to_cos: PerDscp::from_fn(|_| cos),
        pcp_to_cos: PerPcp::from_fn(|_| cos),
        cos_to_pg: PerCos::default(),
        cos_to_queue: PerCos::default(),
        priority_to_queues: PerPriority::from_fn(|priority| match priority.number() {
            3 => queue_bit(3).or(queue_bit(5)),
            n => queue_bit(n),
        }),
    }
}

#[test]
fn a_time_pauses_until_now_plus_quanta_and_not_longer() {
    let mut rx = receiver();
    rx.receive(&pfc(&[(3, 100)]), Time(1_000));
    assert!(rx.is_paused(p(3), Time(1_000)));
    assert!(rx.is_paused(p(3), Time(1_099)));
    assert_eq!(rx.deadline(Time(1_000)), Time(1_100));
    assert!(!rx.is_paused(p(3), Time(1_100)));
    assert_eq!(rx.deadline(Time(1_100)), Time::NEVER);
}

#[test]
fn quanta_last_512_bit_times_at_the_declared_speed() {
    for (gigabits, nanoseconds) in [(1, 33_553_920), (10, 3_355_392), (400, 83_885)] {
        let mut rx = PauseReceiver::new(&spec(ENABLED, false), BitRate::gigabits(gigabits));
        rx.receive(&pfc(&[(3, 65_535)]), Time(7));
        assert_eq!(rx.deadline(Time(7)), Time(7 + nanoseconds), "{gigabits}G");
    }
}

#[test]
fn a_new_time_replaces_the_old_one_shorter_or_longer() {
    let mut rx = receiver();
    rx.receive(&pfc(&[(3, 100)]), Time(0));
    rx.receive(&pfc(&[(3, 20)]), Time(10));
    assert_eq!(rx.deadline(Time(10)), Time(30));
    rx.receive(&pfc(&[(3, 500)]), Time(15));
    assert_eq!(rx.deadline(Time(15)), Time(515));
}

/// Fault S3.
#[test]
fn time_0_cuts_a_pause_short_at_once() {
    let mut rx = receiver();
    rx.receive(&pfc(&[(3, 65_535)]), Time(0));
    rx.receive(&pfc(&[(3, 0)]), Time(40));
    assert!(rx.paused_priorities(Time(40)).is_empty());
    assert_eq!(rx.deadline(Time(40)), Time::NEVER);
    assert_eq!(rx.paused_time(p(3), Time(90)), Nanos(40));
}

#[test]
fn clear_bits_leave_a_priority_alone() {
    let mut rx = PauseReceiver::new(&spec(PrioritySet(0xff), false), NS_QUANTA);
    rx.receive(&pfc(&[(3, 100), (4, 50)]), Time(0));
    rx.receive(&MacControl::Pfc { enable: 1 << 4, quanta: [0; 8] }, Time(10));
    assert_eq!(rx.paused_priorities(Time(10)), PrioritySet::only(p(3)));
}

#[test]
fn a_priority_without_pfc_is_counted_and_not_obeyed() {
    let mut rx = receiver();
    rx.receive(&pfc(&[(4, 100)]), Time(0));
    assert!(rx.paused_priorities(Time(0)).is_empty());
    assert_eq!(rx.counts(p(4)), PauseCounts { xoff: 1, refresh: 0, xon: 0 });
    assert_eq!((rx.not_enabled(p(4)), rx.transitions(p(4))), (1, 0));
    assert_eq!(rx.not_enabled(p(3)), 0);
}

#[test]
fn kinds_are_told_apart() {
    let mut rx = receiver();
    for (time, quanta) in [(0, 100), (50, 100), (150, 100), (160, 0), (170, 0)] {
        rx.receive(&pfc(&[(3, quanta)]), Time(time));
    }
    // At 150 the pause of 50 had just run out: an XOFF, no refresh.
    assert_eq!(rx.counts(p(3)), PauseCounts { xoff: 2, refresh: 1, xon: 2 });
    assert_eq!(rx.transitions(p(3)), 2);
    assert_eq!(rx.paused_time(p(3), Time(1_000)), Nanos(160));
}

#[test]
fn invalid_frames_count_by_kind_without_effect() {
    let mut rx = receiver();
    for (n, kind) in InvalidKind::ALL.into_iter().enumerate() {
        for _ in 0..=n {
            rx.receive(&MacControl::Invalid(kind), Time(0));
        }
    }
    for (n, kind) in InvalidKind::ALL.into_iter().enumerate() {
        assert_eq!(rx.invalid(kind), n as u64 + 1, "{}", kind.name());
    }
    assert!(rx.paused_queues(Time(0), &maps()).is_empty());
}

#[test]
fn link_pause_stops_the_whole_port_only_where_it_is_configured() {
    let pause = MacControl::Pause { quanta: 100 };
    let mut rx = receiver();
    rx.receive(&pause, Time(0));
    assert!(!rx.is_link_paused(Time(0)));
    assert_eq!((rx.paused_queues(Time(0), &maps()), rx.link_frames()), (QueueSet::EMPTY, 1));

    let mut rx = PauseReceiver::new(&spec(PrioritySet::EMPTY, true), NS_QUANTA);
    rx.receive(&pause, Time(0));
    assert_eq!(rx.paused_queues(Time(99), &maps()), QueueSet(0xff));
    assert_eq!(rx.deadline(Time(99)), Time(100));
    assert!(rx.paused_queues(Time(100), &maps()).is_empty());
    rx.receive(&pause, Time(200));
    rx.receive(&MacControl::Pause { quanta: 0 }, Time(210));
    assert!(!rx.is_link_paused(Time(210)));
    assert_eq!(rx.link_frames(), 3);
}

#[test]
fn a_paused_priority_stops_its_queues_and_no_others() {
    let mut rx = PauseReceiver::new(&spec(PrioritySet(0xff), false), NS_QUANTA);
    rx.receive(&pfc(&[(3, 100)]), Time(0));
    assert_eq!(rx.paused_queues(Time(50), &maps()), queue_bit(3).or(queue_bit(5)));
    rx.receive(&pfc(&[(6, 10)]), Time(50));
    assert_eq!(rx.paused_queues(Time(59), &maps()), QueueSet(0b0110_1000));
    assert_eq!(rx.paused_queues(Time(60), &maps()), QueueSet(0b0010_1000));
}

#[test]
fn turning_pfc_or_link_pause_off_resumes_at_once() {
    let mut rx = PauseReceiver::new(&spec(PrioritySet(0xff), false), NS_QUANTA);
    rx.receive(&pfc(&[(3, 1_000), (4, 1_000)]), Time(0));
    rx.adopt(&spec(ENABLED, false), NS_QUANTA, Time(100));
    assert_eq!(rx.paused_priorities(Time(100)), ENABLED);
    assert_eq!(rx.paused_time(p(4), Time(500)), Nanos(100));
    assert_eq!(rx.paused_time(p(3), Time(500)), Nanos(500));

    let mut rx = PauseReceiver::new(&spec(PrioritySet::EMPTY, true), NS_QUANTA);
    rx.receive(&MacControl::Pause { quanta: 1_000 }, Time(0));
    rx.adopt(&spec(ENABLED, false), NS_QUANTA, Time(1));
    assert!(rx.paused_queues(Time(1), &maps()).is_empty());
}

#[test]
fn a_link_that_went_down_pauses_nothing() {
    let mut rx = receiver();
    rx.receive(&pfc(&[(3, 1_000)]), Time(0));
    rx.forget(Time(10));
    assert!(rx.paused_queues(Time(10), &maps()).is_empty());
    assert_eq!(rx.paused_time(p(3), Time(2_000)), Nanos(10));
}

/// Fault 11, with the reported bytes.
#[test]
fn vector_0_pauses_nothing_and_a_zero_source_mac_is_fine() {
    let text = include_str!("../../../tests/fixtures/cases/11_pfc_cev0.hex");
    let frames: Vec<Vec<u8>> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(" : "))
        .map(|(_, hex)| {
            let digits = hex.trim().as_bytes().chunks(2);
            digits
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect()
        })
        .collect();
    assert_eq!(frames.len(), 4);
    let mut rx = PauseReceiver::new(&spec(PrioritySet(0xff), false), BitRate::gigabits(10));
    for frame in &frames[..2] {
        rx.receive(&parse_mac_control(frame), Time(0));
    }
    assert!(rx.paused_priorities(Time(0)).is_empty());
    assert!(Priority::all().all(|priority| rx.counts(priority) == PauseCounts::default()));
    assert_eq!(rx.invalid(InvalidKind::EmptyVector), 2);
    for (n, frame) in frames[2..].iter().enumerate() {
        let at = Time(n as u64 * 1_000_000_000);
        rx.receive(&parse_mac_control(frame), at);
        assert_eq!(rx.paused_priorities(at), PrioritySet::only(p(3)));
        assert_eq!(rx.counts(p(3)).xoff, n as u64 + 1);
    }
}

/// What a priority would be if each nanosecond were looked at.
#[derive(Default, Clone, Copy)]
struct Model {
    until: u64,
    paused_ns: u64,
    transitions: u64,
    counts: PauseCounts,
}

impl Model {
    fn receive(&mut self, enabled: bool, quanta: u16, now: u64) {
        let paused = now < self.until;
        match (quanta, paused) {
            (0, _) => self.counts.xon += 1,
            (_, true) => self.counts.refresh += 1,
            (_, false) => self.counts.xoff += 1,
        }
        if enabled {
            self.transitions += u64::from(!paused && quanta > 0);
            self.until = now + u64::from(quanta);
        }
    }
}

proptest! {
    #[test]
    fn timelines_match_a_model_that_looks_at_each_nanosecond(
        enabled: u8,
        frames in proptest::collection::vec(
            (0u64..60, any::<u8>(), proptest::array::uniform8(prop_oneof![Just(0), 0u16..80])),
            0..40,
        ),
    ) {
        let mut rx = PauseReceiver::new(&spec(PrioritySet(enabled), false), NS_QUANTA);
        let mut models = [Model::default(); 8];
        let mut arrivals = Vec::new();
        let mut at = 0;
        for (gap, enable, quanta) in frames {
            at += gap;
            arrivals.push((at, enable, quanta));
        }
        let mut arrivals = arrivals.into_iter().peekable();
        for now in 0..at + 100 {
            while let Some((_, enable, quanta)) = arrivals.next_if(|(time, ..)| *time == now) {
                rx.receive(&MacControl::Pfc { enable, quanta }, Time(now));
                let named = models.iter_mut().enumerate().filter(|(n, _)| enable >> n & 1 == 1);
                for (n, model) in named {
                    model.receive(enabled >> n & 1 == 1, quanta[n], now);
                }
            }
            let paused = (0..8).filter(|n| now < models[*n].until).fold(0, |set, n| set | 1 << n);
            prop_assert_eq!(rx.paused_priorities(Time(now)).0, paused);
            let next = models.iter().map(|model| model.until).filter(|until| *until > now).min();
            prop_assert_eq!(rx.deadline(Time(now)), next.map_or(Time::NEVER, Time));
            for (priority, model) in Priority::all().zip(&mut models) {
                prop_assert_eq!(rx.paused_time(priority, Time(now)).0, model.paused_ns);
                prop_assert_eq!(rx.transitions(priority), model.transitions);
                prop_assert_eq!(rx.counts(priority), model.counts);
                model.paused_ns += u64::from(now < model.until);
            }
        }
    }
}
