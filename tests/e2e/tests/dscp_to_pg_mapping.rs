//! DSCP and PCP, sent as frames, reach their class, PG and queue, counted exactly.

use holdfast_api::message::{Call, ClassifyReply, ClassifyStatus, PortFilter};
use holdfast_e2e::frames::{Ip, Roce};
use holdfast_e2e::{in_lab, Captured, Lab, LabError, LabPlan, TestResult};
use holdfast_wire::ethernet::{TPID_CUSTOMER, TPID_SERVICE};
use holdfast_wire::{Ecn, Tag};
use std::time::Duration;

/// One frame to send, and the class it must get.
struct Sent {
    bytes: Vec<u8>,
    cos: usize,
}

/// CoS of a DSCP in the shipped map `ac5p` (SPEC 2.4).
const fn cos_of_dscp(dscp: u8) -> usize {
    match dscp {
        24..=31 => 3,
        48 => 6,
        _ => 0,
    }
}

/// PG and queue of a CoS in the same map.
const fn place_of_cos(cos: usize) -> (u8, u8) {
    match cos {
        3 => (3, 3),
        6 => (0, 6),
        _ => (0, 0),
    }
}

fn frame(ip: Ip, dscp: u8, tags: &[Tag], psn: u32) -> Vec<u8> {
    // Without ECT nothing may change on the way.
    Roce { from: 1, to: 2, ip, dscp, ecn: Ecn::NotEct, tags, len: 100, psn }.bytes()
}

fn classify(lab: &mut Lab, port: &str) -> Result<ClassifyStatus, LabError> {
    let call = Call::ShowClassify(PortFilter { port: Some(port.to_owned()) });
    let reply: ClassifyReply = lab.switch("sw")?.call(call)?;
    let unknown = LabError::Unknown { kind: "port", name: port.to_owned() };
    reply.ports.into_iter().next().ok_or(unknown)
}

/// Sends all from h1 to h2; they arrive unchanged and in order within their class. Returns the
/// counters of h1.
fn send_and_count(
    lab: &mut Lab,
    frames: &[Sent],
) -> Result<ClassifyStatus, Box<dyn std::error::Error>> {
    let capture = lab.capture("h2", &[])?;
    let bytes: Vec<_> = frames.iter().map(|frame| frame.bytes.clone()).collect();
    lab.inject_slowly("h1", &bytes, Duration::from_micros(200))?;
    let total = frames.len() as u64;
    let switch = lab.switch("sw")?;
    holdfast_e2e::wait::wait_for("frames don't come out", Duration::from_secs(20), || {
        Ok((switch.port("h2")?.tx_frames == total).then_some(()))
    })?;
    let arrived = capture.stop()?;
    for cos in 0..8 {
        let sent: Vec<_> = frames.iter().filter(|f| f.cos == cos).map(|f| &f.bytes).collect();
        let got: Vec<_> = arrived.iter().filter(|f| sent.contains(&&f.bytes)).collect();
        let got: Vec<_> = got.into_iter().map(|frame: &Captured| &frame.bytes).collect();
        assert_eq!(got, sent, "CoS {cos}");
    }
    assert_eq!(arrived.len(), frames.len());
    for queue in 0..8 {
        let expected = frames.iter().filter(|frame| place_of_cos(frame.cos).1 == queue).count();
        let status = switch.queue("h2", queue)?;
        assert_eq!(status.tx_frames, expected as u64, "queue {queue}");
    }
    for pg in 0..8 {
        let expected = frames.iter().filter(|frame| place_of_cos(frame.cos).0 == pg).count();
        assert_eq!(switch.pg("h1", pg)?.rx_frames, expected as u64, "PG {pg}");
    }
    let status = classify(lab, "h1")?;
    for (cos, count) in status.cos_frames.iter().enumerate() {
        let expected = frames.iter().filter(|frame| frame.cos == cos).count();
        assert_eq!(*count, expected as u64, "CoS {cos}");
    }
    Ok(status)
}

fn dscp_of_both_ip_versions(workers: u32) -> TestResult {
    let plan = LabPlan::star(2).each(|switch| switch.workers(workers));
    in_lab(&plan, |lab| {
        let mut frames = Vec::new();
        for dscp in 0..64u8 {
            // Another count for each DSCP: a neighbour's counter would show.
            for psn in 0..u32::from(dscp % 5) + 1 {
                for ip in [Ip::V4, Ip::V6] {
                    let bytes = frame(ip, dscp, &[], psn);
                    frames.push(Sent { bytes, cos: cos_of_dscp(dscp) });
                }
            }
        }
        let status = send_and_count(lab, &frames)?;
        for (dscp, count) in status.dscp_frames.iter().enumerate() {
            assert_eq!(*count, 2 * (dscp as u64 % 5 + 1), "DSCP {dscp}");
        }
        assert_eq!(status.pcp_frames, [0; 8]);
        assert_eq!(status.unclassified_frames, 0);
        Ok(())
    })
}

#[test]
fn dscp_of_both_ip_versions_one_worker() -> TestResult {
    dscp_of_both_ip_versions(1)
}

#[test]
fn dscp_of_both_ip_versions_two_workers() -> TestResult {
    dscp_of_both_ip_versions(2)
}

fn tag(tpid: u16, pcp: u8, vid: u16) -> Tag {
    Tag { tpid, pcp, dei: false, vid }
}

/// Trust `pcp`: the DSCP, chosen to say something else, has no say. VID 0 is a priority tag.
fn pcp_of_tagged_frames(workers: u32) -> TestResult {
    let plan = LabPlan::star(2).each(|mut switch| {
        for port in &mut switch.ports {
            *port = port.clone().with("trust = \"pcp\"");
        }
        switch.workers(workers)
    });
    in_lab(&plan, |lab| {
        let mut frames = Vec::new();
        for pcp in 0..8u8 {
            let inner = tag(TPID_CUSTOMER, 7 - pcp, 200);
            let shapes = [
                vec![tag(TPID_CUSTOMER, pcp, 100)],
                vec![tag(TPID_CUSTOMER, pcp, 0)],
                vec![tag(TPID_SERVICE, pcp, 100), inner],
                vec![tag(TPID_CUSTOMER, pcp, 100), inner],
            ];
            for tags in shapes {
                for psn in 0..u32::from(pcp) + 1 {
                    let bytes = frame(Ip::V4, if pcp == 3 { 0 } else { 26 }, &tags, psn);
                    frames.push(Sent { bytes, cos: usize::from(pcp) });
                }
            }
        }
        // Without a tag: the port's default.
        frames.push(Sent { bytes: frame(Ip::V4, 26, &[], 0), cos: 0 });
        let status = send_and_count(lab, &frames)?;
        for (pcp, count) in status.pcp_frames.iter().enumerate() {
            assert_eq!(*count, 4 * (pcp as u64 + 1), "PCP {pcp}");
        }
        Ok(())
    })
}

#[test]
fn pcp_of_tagged_frames_one_worker() -> TestResult {
    pcp_of_tagged_frames(1)
}

#[test]
fn pcp_of_tagged_frames_two_workers() -> TestResult {
    pcp_of_tagged_frames(2)
}

/// Fault S7: where DSCP is trusted a PCP isn't obeyed, whatever it says, and an unmapped DSCP (9)
/// is CoS 0: not another queue, and no queue above or below that of PCP 1 or 0.
#[test]
fn a_pcp_has_no_say_where_dscp_is_trusted() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let mut frames = Vec::new();
        for pcp in 0..8u8 {
            for dscp in [0, 9, 26, 48, 63] {
                for vid in [0, 100] {
                    let bytes = frame(Ip::V4, dscp, &[tag(TPID_CUSTOMER, pcp, vid)], 0);
                    frames.push(Sent { bytes, cos: cos_of_dscp(dscp) });
                }
            }
        }
        let status = send_and_count(lab, &frames)?;
        assert_eq!(status.pcp_frames, [10; 8], "counted all the same");
        assert_eq!(status.dscp_frames[9], 16);
        Ok(())
    })
}
