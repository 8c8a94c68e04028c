use super::super::lab::{pg, Rig};
use super::*;
use holdfast_core::drop::DropReason;
use holdfast_core::units::{Cells, FrameLen};

fn drop_at(trace: &mut Trace, time: u64, len: u16) {
    let port = PortId::new(0).unwrap();
    let kind =
        EventKind::Drop { reason: DropReason::Parse, pg: None, queue: None, len: FrameLen(len) };
    trace.record(Time(time), port, kind);
}

/// The rings of two workers: odd times at one, even times at the other.
fn rings(count: u64, capacity: usize) -> [Trace; 2] {
    let mut rings = [Trace::new(capacity), Trace::new(capacity)];
    for ring in &mut rings {
        ring.set_mask(TraceMask::DROPS);
    }
    for time in 0..count {
        drop_at(&mut rings[(time % 2) as usize], time, time as u16);
    }
    rings
}

fn page(board: &Board, traces: &[Trace], query: &EventQuery, cut: u64) -> TraceReply {
    let rings: Vec<RingEvents> = traces
        .iter()
        .enumerate()
        .map(|(worker, trace)| RingEvents::take(trace, worker, query, Time(cut)))
        .collect();
    trace_reply(board, query, &rings)
}

fn lengths(reply: &TraceReply) -> Vec<u32> {
    let len = |event: &ApiEvent| match event {
        ApiEvent::Drop { bytes, .. } => *bytes,
        other => panic!("{other:?}"),
    };
    reply.events.iter().map(len).collect()
}

#[test]
fn pages_hold_every_event_once_and_in_order() {
    let (_rig, _workers, board) = Rig::start(2, 1);
    let traces = rings(1_001, 4_096);
    for max in [1, 2, 7, 500, 4_000] {
        let mut query = EventQuery { max: Some(max), ..EventQuery::default() };
        let mut seen = Vec::new();
        loop {
            let reply = page(&board, &traces, &query, u64::MAX);
            assert_eq!(reply.lost, 0);
            if reply.events.is_empty() {
                break;
            }
            assert!(reply.events.len() <= max as usize);
            seen.extend(lengths(&reply));
            query.since = Some(reply.next);
        }
        assert_eq!(seen, (0..1_001).collect::<Vec<u32>>(), "max {max}");
    }
}

#[test]
fn what_was_overwritten_after_the_cursor_is_lost() {
    let (_rig, _workers, board) = Rig::start(2, 1);
    let traces = rings(100, 10);
    let all = EventQuery::default();
    let reply = page(&board, &traces, &all, u64::MAX);
    assert_eq!((reply.lost, reply.events.len()), (0, 20), "without a cursor nothing was missed");
    let query = EventQuery { since: Some(vec![30, 40]), ..all };
    let reply = page(&board, &traces, &query, u64::MAX);
    assert_eq!((reply.lost, reply.events.len()), (10, 20));
    let again = EventQuery { since: Some(reply.next), ..query };
    let reply = page(&board, &traces, &again, u64::MAX);
    assert_eq!((reply.lost, reply.events.len()), (0, 0));
}

#[test]
fn a_page_ends_at_the_cut_and_the_next_begins_there() {
    let (_rig, _workers, board) = Rig::start(2, 1);
    let traces = rings(100, 100);
    let mut query = EventQuery::default();
    let first = page(&board, &traces, &query, 49);
    query.since = Some(first.next.clone());
    let second = page(&board, &traces, &query, u64::MAX);
    let seen: Vec<u32> = lengths(&first).into_iter().chain(lengths(&second)).collect();
    assert_eq!(seen, (0..100).collect::<Vec<u32>>());
    assert_eq!(first.events.len(), 50);
}

#[test]
fn filters_pass_over_events_without_coming_back_to_them() {
    let (_rig, _workers, board) = Rig::start(2, 2);
    let traces = rings(50, 100);
    let kinds = Some(vec![ApiKind::Edge]);
    let query = EventQuery { kinds, ..EventQuery::default() };
    let reply = page(&board, &traces, &query, u64::MAX);
    assert_eq!((reply.events.len(), reply.next), (0, vec![25, 25]));
    let port = PortId::new(1);
    let reply = page(&board, &traces, &EventQuery { port, ..EventQuery::default() }, u64::MAX);
    assert_eq!((reply.events.len(), reply.next), (0, vec![25, 25]));
}

#[test]
fn a_page_fits_into_a_line() {
    let (_rig, _workers, board) = Rig::start(1, 1);
    let mut trace = Trace::new(10_000);
    let edge = Edge {
        port: PortId::new(0).unwrap(),
        pg: pg(3),
        kind: EdgeKind::Xoff,
        guaranteed: Cells(2_000_000),
        service: Cells(2_000_000),
        headroom: Cells(2_000_000),
        limit: Cells(2_000_000),
        resume: Cells(2_000_000),
        xoff: Cells(2_000_000),
    };
    for time in 0..10_000 {
        let kind = EventKind::Edge(edge);
        trace.record(Time(u64::MAX / 2 + time), edge.port, kind);
    }
    let mut board = board;
    board.ports[0].as_mut().unwrap().name = "x".repeat(200);
    let reply = page(&board, &[trace], &EventQuery::default(), u64::MAX);
    let bytes = serde_json::to_vec(&reply).unwrap().len();
    assert!(bytes < holdfast_api::line::MAX_LINE, "{bytes}");
    assert!(reply.events.len() > 1_000 && reply.next == vec![reply.events.len() as u64]);
}

#[test]
fn kinds_and_masks_agree() {
    assert_eq!(kinds_of(mask_of(&[])), ALWAYS);
    let all = [ApiKind::PfcOut, ApiKind::Mark, ApiKind::Drop];
    let kinds = kinds_of(mask_of(&all));
    assert!(all.iter().all(|kind| kinds.contains(kind)));
}
