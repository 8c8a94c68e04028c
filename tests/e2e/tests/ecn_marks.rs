//! Which frames leave as CE, and what else of them changes: nothing (SPEC 5).

#![allow(clippy::expect_used)]

use holdfast_api::amount::CellAmount;
use holdfast_api::message::{Call, Event, EventKind, SetReply, SetWred, Trace, TraceReply};
use holdfast_api::profile_doc::MarkAtDoc;
use holdfast_e2e::frames::{Ip, Roce};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabPlan, TestResult};
use holdfast_wire::ip::ipv4_checksum_valid;
use holdfast_wire::roce::RoceView;
use holdfast_wire::Ecn;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
const FRAMES: u64 = 101;
const KMIN: u32 = 200;
const KMAX: u32 = 204;
const ETHERNET: usize = 14;

fn sent(ip: Ip) -> Vec<Vec<u8>> {
    let frame =
        |psn| Roce { from: 1, to: 3, ip, dscp: 26, ecn: Ecn::Ect0, tags: &[], len: 1024, psn };
    (0..FRAMES as u32).map(|psn| frame(psn).bytes()).collect()
}

fn set_wred(lab: &mut Lab, mark_at: MarkAtDoc) -> TestResult {
    let cells = |n| Some(CellAmount::Cells(n));
    let set = SetWred {
        port: Some("h3".to_owned()),
        queue: 3,
        kmin: cells(KMIN),
        kmax: cells(KMAX),
        pmax: Some(1.0),
        mark_at: Some(mark_at),
        ..SetWred::default()
    };
    let _: SetReply = lab.switch("sw")?.call(Call::SetWred(set))?;
    let record = Trace { record: Some(vec![EventKind::Mark]), ..Trace::default() };
    let _: TraceReply = lab.switch("sw")?.call(Call::Trace(record))?;
    Ok(())
}

/// The depth of each mark, in the order they were made.
fn depths(lab: &mut Lab) -> Result<Vec<u32>, holdfast_e2e::LabError> {
    let query = Trace { kinds: Some(vec![EventKind::Mark]), ..Trace::default() };
    let reply: TraceReply = lab.switch("sw")?.call(Call::Trace(query))?;
    let depth = |event: &Event| match event {
        Event::Mark { depth, queue: 3, .. } => Some(*depth),
        _ => None,
    };
    Ok(reply.events.iter().filter_map(depth).collect())
}

/// Bytes of the frame that marking may change: IPv4 TOS and checksum, IPv6 traffic class.
fn allowed(ip: Ip) -> &'static [usize] {
    match ip {
        Ip::V4 => &[ETHERNET + 1, ETHERNET + 10, ETHERNET + 11],
        Ip::V6 => &[ETHERNET + 1],
    }
}

fn ecn_of(bytes: &[u8], ip: Ip) -> u8 {
    match ip {
        Ip::V4 => bytes[ETHERNET + 1] & 3,
        Ip::V6 => bytes[ETHERNET + 1] >> 4 & 3,
    }
}

fn assert_unharmed(before: &[u8], after: &[u8], ip: Ip) {
    assert_eq!(before.len(), after.len());
    for (place, (was, is)) in before.iter().zip(after).enumerate() {
        assert!(was == is || allowed(ip).contains(&place), "byte {place} changed");
    }
    if ip == Ip::V4 {
        assert!(ipv4_checksum_valid(&after[ETHERNET..]));
    }
    let roce = RoceView::find(after).expect("still RoCEv2");
    assert!(roce.icrc_valid(after), "iCRC masks what marking changes");
}

fn marks(workers: u32, mark_at: MarkAtDoc, ip: Ip) -> TestResult {
    in_lab(&LabPlan::star(3).each(|switch| switch.workers(workers)), |lab| {
        set_wred(lab, mark_at)?;
        lab.switch("sw")?.hold("h3")?;
        let frames = sent(ip);
        let capture = lab.capture("h3", &[])?;
        lab.inject("h1", &frames)?;
        let switch = lab.switch("sw")?;
        wait_for("the frames don't wait", SOON, || {
            Ok((switch.queue("h3", 3)?.frames == FRAMES).then_some(()))
        })?;
        switch.release("h3")?;
        wait_for("the frames don't leave", SOON, || {
            let queue = switch.queue("h3", 3)?;
            Ok((queue.tx_frames == FRAMES && queue.occupancy == 0).then_some(()))
        })?;
        let marked = switch.ecn("h3", 3)?.marked;
        let received = capture.stop()?;
        assert_eq!(received.len() as u64, FRAMES);
        let mut positions = Vec::new();
        for (place, (before, after)) in frames.iter().zip(&received).enumerate() {
            assert_unharmed(before, &after.bytes, ip);
            if ecn_of(&after.bytes, ip) == 3 {
                positions.push(place);
            }
        }
        assert_eq!(positions.len() as u64, marked);
        assert!((50..=53).contains(&positions.len()), "{} marks", positions.len());
        assert!(positions.windows(2).all(|pair| pair[1] == pair[0] + 1), "{positions:?}");
        let edge = if mark_at == MarkAtDoc::Dequeue { 0 } else { positions.len() - 1 };
        let due = if mark_at == MarkAtDoc::Dequeue { 0 } else { FRAMES as usize - 1 };
        assert_eq!(positions[edge], due, "{positions:?}");
        let depths = depths(lab)?;
        assert_eq!(depths.len(), positions.len(), "each mark has its record");
        assert!(depths.iter().all(|depth| *depth > KMIN), "{depths:?}");
        Ok(())
    })
}

#[test]
fn ecn_marking_at_dequeue() -> TestResult {
    marks(1, MarkAtDoc::Dequeue, Ip::V4)?;
    marks(2, MarkAtDoc::Dequeue, Ip::V6)
}

#[test]
fn ecn_marking_at_enqueue() -> TestResult {
    marks(1, MarkAtDoc::Enqueue, Ip::V6)?;
    marks(2, MarkAtDoc::Enqueue, Ip::V4)
}
