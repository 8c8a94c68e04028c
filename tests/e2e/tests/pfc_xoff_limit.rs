//! XOFF, XON and Headroom to the cell, on real frames (SPEC 3.2 to 3.4).

#![allow(clippy::panic)]

use holdfast_api::amount::{CellAmount, XoffAmount};
use holdfast_api::message::{Call, Edge, SetPg, SetReply, SetWred};
use holdfast_api::profile_doc::XonModeDoc;
use holdfast_e2e::frames::{Ip, Roce};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, EdgeRecord, Lab, LabPlan, ProfilePlan, TestResult};
use holdfast_wire::Ecn;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
/// Values that a test's frames fill in a moment.
const GUARANTEED: u32 = 36;
const XOFF: u32 = 1000;
const XON: u32 = 300;
const LIMIT: u32 = 1500;
const HEADROOM: u32 = 512;

/// Headroom is set to less than the profile's formula asks for, to see its end.
fn plan(workers: u32) -> LabPlan {
    let profile = || ProfilePlan::shipped("veth-lab-1g").without_formula();
    LabPlan::star(3).each(|switch| switch.workers(workers).profile(profile()))
}

fn frames(from: u8, to: u8, len: usize, count: u32) -> Vec<Vec<u8>> {
    let frame = |psn| Roce { from, to, ip: Ip::V4, dscp: 26, ecn: Ecn::Ect0, tags: &[], len, psn };
    (0..count).map(|psn| frame(psn).bytes()).collect()
}

/// h1's lossless PG with small numbers; XON as an offset or as a level.
fn set_thresholds(lab: &mut Lab, mode: XonModeDoc) -> TestResult {
    let cells = |n| Some(CellAmount::Cells(n));
    // Marking must stay below the level at which the PG resumes.
    let wred = SetWred { queue: 3, kmin: cells(100), kmax: cells(600), ..SetWred::default() };
    let _: SetReply = lab.switch("sw")?.call(Call::SetWred(wred))?;
    let xon = if mode == XonModeDoc::Offset { XON } else { XOFF - XON };
    let set = SetPg {
        port: Some("h1".to_owned()),
        pg: 3,
        xoff: Some(XoffAmount::At(CellAmount::Cells(XOFF))),
        xon: cells(xon),
        xon_mode: Some(mode),
        limit: cells(LIMIT),
        headroom: cells(HEADROOM),
        ..SetPg::default()
    };
    let _: SetReply = lab.switch("sw")?.call(Call::SetPg(set))?;
    Ok(())
}

/// Waits until h1's PG holds so many cells; returns nothing if it never does.
fn wait_for_cells(lab: &mut Lab, cells: u32) -> TestResult {
    let switch = lab.switch("sw")?;
    wait_for("the PG doesn't hold what was sent", SOON, || {
        let held = switch.pg("h1", 3)?.occupancy;
        let held = held.guaranteed + held.service + held.headroom;
        Ok((held == cells).then_some(()))
    })?;
    Ok(())
}

fn drain(lab: &mut Lab, port: &str) -> TestResult {
    lab.switch("sw")?.release(port)?;
    wait_for_cells(lab, 0)?;
    let switch = lab.switch("sw")?;
    let queue = switch.queue(port, 3)?;
    assert_eq!((queue.occupancy, queue.frames), (0, 0));
    assert!(!switch.pg("h1", 3)?.xoff);
    Ok(())
}

fn assert_edges(edges: &[EdgeRecord], xoff_service: u32, step: u32) {
    let [xoff, xon] = edges else { panic!("one pause and one resume, not {edges:?}") };
    assert_eq!((xoff.edge, xoff.cause.as_str()), (Edge::Xoff, "mmu"));
    assert_eq!((xoff.guaranteed, xoff.service, xoff.headroom), (GUARANTEED, xoff_service, 0));
    assert_eq!((xon.edge, xon.cause.as_str()), (Edge::Xon, "mmu"));
    assert_eq!(xon.headroom, 0, "all of Headroom is free again");
    let resume = XOFF - XON;
    assert_eq!(xon.resume, resume);
    assert!((resume + 1 - step..=resume).contains(&xon.service), "{xon:?}");
}

fn xoff_and_xon(workers: u32, mode: XonModeDoc, len: usize, cells: u32) -> TestResult {
    in_lab(&plan(workers), |lab| {
        set_thresholds(lab, mode)?;
        lab.switch("sw")?.hold("h3")?;
        // SPEC 3.3: XOFF comes at floor(G/n)*n + ceil(XOFF/n)*n.
        let service = XOFF.div_ceil(cells) * cells;
        let before = (GUARANTEED / cells * cells + service) / cells - 1;
        lab.inject("h1", &frames(1, 3, len, before))?;
        wait_for_cells(lab, before * cells)?;
        assert_eq!(lab.switch("sw")?.edges("h1", 3)?, [], "one frame too early");
        lab.inject("h1", &frames(1, 3, len, 1 + 60))?;
        wait_for_cells(lab, (before + 61) * cells)?;
        assert_eq!(lab.switch("sw")?.pg("h1", 3)?.occupancy.headroom, 60 * cells);
        drain(lab, "h3")?;
        assert_edges(&lab.switch("sw")?.edges("h1", 3)?, service, cells);
        Ok(())
    })
}

#[test]
fn pfc_xoff_limit_and_xon_hysteresis_one_cell_one_worker() -> TestResult {
    xoff_and_xon(1, XonModeDoc::Offset, 64, 1)?;
    xoff_and_xon(1, XonModeDoc::Absolute, 64, 1)
}

#[test]
fn pfc_xoff_limit_and_xon_hysteresis_one_cell_two_workers() -> TestResult {
    xoff_and_xon(2, XonModeDoc::Offset, 64, 1)?;
    xoff_and_xon(2, XonModeDoc::Absolute, 64, 1)
}

#[test]
fn pfc_xoff_limit_and_xon_hysteresis_six_cells() -> TestResult {
    xoff_and_xon(1, XonModeDoc::Offset, 1500, 6)?;
    xoff_and_xon(2, XonModeDoc::Offset, 1500, 6)
}

fn hdrm_size(workers: u32) -> TestResult {
    in_lab(&plan(workers), |lab| {
        set_thresholds(lab, XonModeDoc::Offset)?;
        lab.switch("sw")?.hold("h3")?;
        let kept = GUARANTEED + LIMIT + HEADROOM;
        lab.inject("h1", &frames(1, 3, 64, kept))?;
        wait_for_cells(lab, kept)?;
        let switch = lab.switch("sw")?;
        assert_eq!(switch.port("h1")?.lossless_violations, 0);
        let held = switch.pg("h1", 3)?.occupancy;
        assert_eq!((held.guaranteed, held.service, held.headroom), (GUARANTEED, LIMIT, HEADROOM));
        lab.inject("h1", &frames(1, 3, 64, 1))?;
        let switch = lab.switch("sw")?;
        wait_for("the frame too many isn't dropped", SOON, || {
            Ok((switch.port("h1")?.lossless_violations == 1).then_some(()))
        })?;
        let drops = switch.port("h1")?.drops;
        assert_eq!(drops.get("headroom_overflow"), Some(&1), "{drops:?}");
        assert_eq!(drops.values().sum::<u64>(), 1, "{drops:?}");
        assert_eq!(switch.pg("h1", 3)?.lossless_violations, 1);
        assert_eq!(switch.port("h3")?.drops.values().sum::<u64>(), 0, "nothing at egress");
        drain(lab, "h3")?;
        assert_eq!(lab.switch("sw")?.port("h3")?.tx_frames, u64::from(kept));
        Ok(())
    })
}

#[test]
fn hdrm_size_one_worker() -> TestResult {
    hdrm_size(1)
}

#[test]
fn hdrm_size_two_workers() -> TestResult {
    hdrm_size(2)
}

/// Frames of one PG wait behind two egress ports, of which one stays held.
fn resumes_behind_one_held_queue(workers: u32) -> TestResult {
    in_lab(&plan(workers), |lab| {
        set_thresholds(lab, XonModeDoc::Offset)?;
        for port in ["h2", "h3"] {
            lab.switch("sw")?.hold(port)?;
        }
        let (held, free) = (250, 900);
        lab.inject("h1", &frames(1, 3, 64, held))?;
        lab.inject("h1", &frames(1, 2, 64, free))?;
        wait_for_cells(lab, held + free)?;
        assert!(lab.switch("sw")?.pg("h1", 3)?.xoff);
        lab.switch("sw")?.release("h2")?;
        wait_for_cells(lab, held)?;
        let switch = lab.switch("sw")?;
        assert!(!switch.pg("h1", 3)?.xoff, "{held} cells lie below the resume level");
        assert_eq!(switch.edges("h1", 3)?.len(), 2, "one pause, one resume");
        drain(lab, "h3")
    })
}

#[test]
fn xon_hysteresis_behind_one_held_queue_one_worker() -> TestResult {
    resumes_behind_one_held_queue(1)
}

#[test]
fn xon_hysteresis_behind_one_held_queue_two_workers() -> TestResult {
    resumes_behind_one_held_queue(2)
}
