//! Senders and receivers together, in virtual time.
#![allow(clippy::unwrap_used)] // In the functions that tests share.

mod fixture;

use fixture::spec;
use holdfast_host::flow::FlowError;
use holdfast_host::{
    BitRate, Flow, FlowKey, FlowSpec, Nanos, Next, PfcReceiver, Rate, Received, Receiver, Sender,
    Time,
};
use holdfast_wire::roce::BuildError;
use holdfast_wire::{mark_ce, L3Kind, MacAddr, MacControl};

const SLACK: Nanos = Nanos(50_000);

fn gigabit() -> BitRate {
    BitRate::new(1_000_000_000).unwrap()
}

fn idle() -> PfcReceiver {
    PfcReceiver::new(gigabit(), 0xff, false)
}

fn sender(specs: Vec<FlowSpec>) -> Sender {
    let flows = specs.into_iter().map(|spec| Flow::new(spec, SLACK).unwrap()).collect();
    Sender::new(flows, gigabit(), SLACK)
}

/// Sends as the protocol says until `end`; hands each frame to `sink` with its time and flow.
fn run(
    sender: &mut Sender,
    pauses: &PfcReceiver,
    start: Time,
    end: Time,
    mut sink: impl FnMut(Time, usize, &[u8]),
) -> Time {
    let (mut now, mut buf) = (start, [0; 9100]);
    while now < end {
        match sender.next(now, pauses) {
            Next::Send(flow) => {
                let len = sender.make(flow, now, &mut buf).unwrap();
                sender.note_sent(flow, len);
                sink(now, flow, &buf[..len]);
            }
            Next::Wait(until) => {
                assert!(until > now);
                now = until;
            }
            Next::Done => return now,
        }
    }
    now
}

/// `count` frames of one flow, in order.
fn frames(spec: FlowSpec, count: u64) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut sender = sender(vec![FlowSpec { frames: Some(count), ..spec }]);
    run(&mut sender, &idle(), Time(0), Time(u64::MAX), |_, _, frame| frames.push(frame.to_vec()));
    assert_eq!(frames.len() as u64, count);
    frames
}

#[test]
fn every_frame_arrives_in_order_with_its_age() {
    let spec = FlowSpec { first_psn: 0x00ff_fff0, sizes: vec![64, 1500, 9014], ..spec(17, 3) };
    let mut sender = sender(vec![FlowSpec { frames: Some(100), ..spec }]);
    let mut receiver = Receiver::new(Some(0x00ff_fff0));
    let mut lengths = Vec::new();
    run(&mut sender, &idle(), Time(0), Time(u64::MAX), |now, _, frame| {
        let key = FlowKey { src_mac: MacAddr([2, 0, 0, 0, 0, 1]), qp: 17 };
        let age = Some(Nanos(777));
        let arrived = receiver.receive(now + Nanos(777), frame);
        assert_eq!(arrived, Received::Data { key, age });
        lengths.push(frame.len());
    });
    assert_eq!(lengths[..4], [64, 1500, 9014, 64]);
    let (report, sent) = (receiver.report(), sender.report());
    assert_eq!((report.received, report.lost, report.reordered, report.duplicates), (100, 0, 0, 0));
    assert_eq!(report.bytes, lengths.iter().sum::<usize>() as u64);
    assert_eq!((sent[0].sent, sent[0].bytes), (report.received, report.bytes));
    assert_eq!((sent[0].next_psn, report.flows[0].next_psn), (84, 84), "the PSN has wrapped");
}

#[test]
fn loss_reordering_and_duplicates_are_told_apart() {
    let frames = frames(spec(17, 3), 10);
    let mut receiver = Receiver::new(Some(0));
    for index in [2, 3, 0, 3, 7, 6, 9] {
        receiver.receive(Time(0), &frames[index]);
    }
    let flow = &receiver.report().flows[0];
    assert_eq!(flow.received, 7);
    assert_eq!(flow.lost, 4, "1, 4, 5 and 8 never came");
    assert_eq!(flow.reordered, 2, "0 and 6 came late");
    assert_eq!(flow.duplicates, 1, "3 came again");
    assert_eq!((flow.stale, flow.next_psn), (0, 10));
    let mut trusting = Receiver::new(None);
    trusting.receive(Time(0), &frames[4]);
    trusting.receive(Time(0), &frames[3]);
    let flow = &trusting.report().flows[0];
    assert_eq!((flow.lost, flow.stale, flow.next_psn), (0, 1, 5));
}

#[test]
fn a_gap_wider_than_the_window_is_lost_and_older_frames_are_stale() {
    let at = |psn| frames(FlowSpec { first_psn: psn, ..spec(17, 3) }, 1).remove(0);
    let mut receiver = Receiver::new(Some(0));
    for psn in [0, 200_000, 200_000 - 65_535, 200_000 - 65_536, 1] {
        receiver.receive(Time(0), &at(psn));
    }
    let flow = &receiver.report().flows[0];
    assert_eq!((flow.lost, flow.reordered, flow.stale), (199_999 - 1, 1, 2));
}

#[test]
fn damage_is_an_icrc_error_and_ce_is_not() {
    let mut frames = frames(spec(17, 3), 2);
    let mut receiver = Receiver::new(Some(0));
    mark_ce(&mut frames[0], L3Kind::V4, 0);
    assert!(matches!(receiver.receive(Time(0), &frames[0]), Received::Data { .. }));
    frames[1][100] ^= 1;
    assert_eq!(receiver.receive(Time(0), &frames[1]), Received::BadIcrc);
    assert_eq!(receiver.receive(Time(0), &[0; 60]), Received::Other);
    let report = receiver.report();
    assert_eq!((report.received, report.ce, report.icrc_errors, report.other_frames), (1, 1, 1, 1));
}

#[test]
fn a_paused_priority_stops_and_the_other_goes_on() {
    let mut sender = sender(vec![spec(1, 3), spec(2, 4)]);
    let mut pauses = idle();
    let mut sent = [0u64; 2];
    let mut count = |_: Time, flow: usize, _: &[u8]| sent[flow] += 1;
    let millisecond = Time(1_000_000);
    run(&mut sender, &pauses, Time(0), millisecond, &mut count);
    let quanta = [0, 0, 0, 2000, 0, 0, 0, 0];
    pauses.receive(millisecond, &MacControl::Pfc { enable: 0b1000, quanta });
    let before = sender.report();
    let resume = millisecond + Nanos(2000 * 512);
    let mut during = [0u64; 2];
    run(&mut sender, &pauses, millisecond, resume, |_, flow, _| during[flow] += 1);
    assert_eq!(during[0], 0, "priority 3 is paused until its time is over");
    assert!(during[1] > 110, "priority 4 has the link to itself: {during:?}");
    assert!(before[0].sent.abs_diff(before[1].sent) <= 1, "before they took turns");
    run(&mut sender, &pauses, resume, resume + Nanos(1_000_000), |_, flow, _| during[flow] += 1);
    assert!(during[0] > 50, "it goes on after the pause: {during:?}");
}

#[test]
fn rates_bound_each_flow_and_the_link_bounds_their_sum() {
    let slow = FlowSpec { rate: Rate::Bits("100M".parse().unwrap()), ..spec(1, 0) };
    let mut sender = sender(vec![slow, spec(2, 3)]);
    let mut wire_bits = [0u64; 2];
    run(&mut sender, &idle(), Time(0), Time(100_000_000), |_, flow, frame| {
        wire_bits[flow] += 8 * (frame.len() as u64 + 24);
    });
    let share = |bits: u64, of: u64| bits * 1000 / of;
    assert!((990..=1010).contains(&share(wire_bits[0], 10_000_000)), "{wire_bits:?}");
    let sum = wire_bits[0] + wire_bits[1];
    assert!((998..=1002).contains(&share(sum, 100_000_000)), "{wire_bits:?}");
}

#[test]
fn done_when_every_budget_is_spent_and_a_refused_frame_is_not_counted() {
    let budget = |qp, frames| FlowSpec { frames: Some(frames), ..spec(qp, 3) };
    let mut sender = sender(vec![budget(1, 3), budget(2, 0)]);
    let mut buf = [0; 2048];
    for _ in 0..3 {
        assert_eq!(sender.next(Time(u64::MAX / 2), &idle()), Next::Send(0));
        assert_eq!(sender.make(0, Time(u64::MAX / 2), &mut buf[..100]), None, "too small");
        assert_eq!(sender.make(0, Time(u64::MAX / 2), &mut buf), Some(1024));
    }
    assert_eq!(sender.next(Time(u64::MAX), &idle()), Next::Done);
    assert_eq!(sender.report()[0].sent, 0);
    sender.note_sent(0, 1024);
    assert_eq!((sender.report()[0].sent, sender.report()[0].next_psn), (1, 1));
}

#[test]
fn flows_that_can_not_be_are_refused() {
    let refused = |spec| Flow::new(spec, SLACK).err();
    let size = FlowSpec { sizes: vec![1024, 57], ..spec(1, 3) };
    let source = BuildError::TooShort { len: 57, min: 58 };
    assert_eq!(refused(size), Some(FlowError::Frame { size: 57, source }));
    let none = FlowSpec { sizes: Vec::new(), ..spec(1, 3) };
    assert_eq!(refused(none), Some(FlowError::NoSize { qp: 1 }));
    let priority = FlowSpec { priority: 8, ..spec(1, 3) };
    assert_eq!(refused(priority), Some(FlowError::Priority { priority: 8 }));
}
