//! CE marking behind VLAN tags and over both IP versions: the right bits, and no other byte.

use holdfast_api::amount::CellAmount;
use holdfast_api::message::{Call, ClassifyReply, PortFilter, SetReply, SetWred};
use holdfast_api::profile_doc::NotEctDoc;
use holdfast_e2e::frames::{cases, Case};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, TestResult};
use holdfast_wire::{parse, ParseError};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
/// Where a class has no frames the marking line is of no account.
const QUEUES: [u8; 3] = [0, 3, 6];

/// Every frame is over Kmax, however alone it is.
fn mark_everything(lab: &mut Lab) -> Result<(), LabError> {
    for queue in QUEUES {
        let set = SetWred {
            queue,
            kmin: Some(CellAmount::Cells(1)),
            kmax: Some(CellAmount::Cells(1)),
            pmax: Some(1.0),
            not_ect: Some(NotEctDoc::Pass),
            ..SetWred::default()
        };
        lab.switch("sw")?.call::<SetReply>(Call::SetWred(set))?;
    }
    Ok(())
}

/// Sends frames one by one from h1 to h2; what arrived, in the same order.
fn pass(lab: &mut Lab, frames: &[Case]) -> Result<Vec<Vec<u8>>, LabError> {
    let capture = lab.capture("h2", &[])?;
    for frame in frames {
        lab.inject("h1", std::slice::from_ref(&frame.bytes))?;
    }
    let switch = lab.switch("sw")?;
    wait_for("not every frame is sent", SOON, || {
        Ok((switch.port("h2")?.tx_frames == frames.len() as u64).then_some(()))
    })?;
    Ok(capture.stop()?.into_iter().map(|frame| frame.bytes).collect())
}

/// Positions at which two frames differ.
fn changes(a: &[u8], b: &[u8]) -> Vec<usize> {
    assert_eq!(a.len(), b.len());
    (0..a.len()).filter(|at| a[*at] != b[*at]).collect()
}

/// Checks one frame against what came out of it; true if it was marked.
fn assert_marked_or_whole(case: &Case, after: &[u8]) -> Result<bool, ParseError> {
    let name = &case.name;
    let (before, now) = (parse(&case.bytes)?, parse(after)?);
    let changed = changes(&case.bytes, after);
    let (Some(before), Some(now)) = (before.l3.ip(), now.l3.ip()) else {
        assert!(changed.is_empty(), "{name}: {changed:?}");
        return Ok(false);
    };
    let (at, ecn_before, ecn_now) = (usize::from(before.offset), before.ecn.bits(), now.ecn.bits());
    if ecn_before == 0 || ecn_before == 3 {
        assert!(changed.is_empty(), "{name}: {changed:?}");
        return Ok(false);
    }
    assert_eq!(ecn_now, 3, "{name} isn't CE");
    if case.bytes[at] >> 4 == 4 {
        let allowed = [at + 1, at + 10, at + 11];
        assert!(changed.iter().all(|byte| allowed.contains(byte)), "{name}: {changed:?}");
        assert!(holdfast_wire::ip::ipv4_checksum_valid(&after[at..]), "{name}");
    } else {
        assert_eq!(changed, [at + 1], "{name}");
        assert_eq!(case.bytes[at + 1] & 0xcf, after[at + 1] & 0xcf, "{name}: only the ECN bits");
    }
    Ok(true)
}

/// Fault 9: under one, two and three tags.
#[test]
fn ce_is_marked_at_every_tag_depth() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        mark_everything(lab)?;
        let frames = cases("09_vlan_qinq_ecn.hex")?;
        let arrived = pass(lab, &frames)?;
        assert_eq!(arrived.len(), frames.len());
        let mut marked = 0;
        for (case, after) in frames.iter().zip(&arrived) {
            marked += u64::from(assert_marked_or_whole(case, after)?);
        }
        let expected = frames.iter().filter(|case| case.name.contains("_ect")).count();
        assert_eq!((marked, expected), (10, 10));
        let mut counted = 0;
        for queue in QUEUES {
            counted += lab.switch("sw")?.ecn("h2", queue)?.marked;
        }
        assert_eq!(counted, marked);
        Ok(())
    })
}

/// Fault 32: the IPv6 traffic class straddles two bytes. The class is that of the DSCP in the
/// case's name, and the flow label stays.
#[test]
fn ipv6_traffic_class_is_read_and_marked_whole() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        mark_everything(lab)?;
        let frames = cases("32_ipv6_traffic_class.hex")?;
        let arrived = pass(lab, &frames)?;
        assert_eq!(arrived.len(), frames.len());
        for (case, after) in frames.iter().zip(&arrived) {
            let ecn = case.name.split("ecn").nth(1).and_then(|text| text.chars().next());
            let marked = assert_marked_or_whole(case, after)?;
            assert_eq!(marked, matches!(ecn, Some('1' | '2')), "{}", case.name);
        }
        let filter = PortFilter { port: Some("h1".to_owned()) };
        let reply: ClassifyReply = lab.switch("sw")?.call(Call::ShowClassify(filter))?;
        for (dscp, count) in reply.ports[0].dscp_frames.iter().enumerate() {
            let name = format!("dscp{dscp:02} ");
            let expected = frames.iter().filter(|case| case.name.starts_with(&name)).count();
            assert_eq!(*count, expected as u64, "DSCP {dscp}");
        }
        Ok(())
    })
}
