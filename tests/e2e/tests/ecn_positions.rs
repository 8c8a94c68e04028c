//! Which frames of a burst are marked follows exactly from the rule of SPEC 5 (fault 28): the depth
//! in cells, the frame itself included, before it leaves or after it has joined.

use holdfast_api::amount::CellAmount;
use holdfast_api::message::{Call, SetReply, SetWred};
use holdfast_api::profile_doc::MarkAtDoc;
use holdfast_e2e::frames::{Ip, Roce};
use holdfast_e2e::long::slice_or;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, PortPlan, ProfilePlan, SwitchPlan, TestResult};
use holdfast_wire::Ecn;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
const CELL: usize = 256;
const ETHERNET: usize = 14;
const BOTH: [MarkAtDoc; 2] = [MarkAtDoc::Dequeue, MarkAtDoc::Enqueue];

/// h2 is so slow that no two frames are in its TX ring, and a worker that was late sends no second
/// one at once: the depth is what waits.
fn plan(workers: u32) -> LabPlan {
    let slow = PortPlan::host(2).speed("1M");
    let profile = ProfilePlan::shipped("veth-lab-1g").without_formula();
    let profile = profile.with("[scheduler]\ncatch_up = \"0us\"");
    let switch = SwitchPlan::new("sw").port(PortPlan::host(1)).port(slow);
    LabPlan::of(vec![switch.profile(profile).workers(workers)])
}

fn burst(len: usize, frames: u32, ecn: Ecn) -> Vec<Vec<u8>> {
    let frame = |psn| Roce { from: 1, to: 2, ip: Ip::V4, dscp: 26, ecn, tags: &[], len, psn };
    (0..frames).map(|psn| frame(psn).bytes()).collect()
}

fn line(lab: &mut Lab, mark_at: MarkAtDoc, (kmin, kmax): (u32, u32), pmax: f64) -> TestResult {
    let cells = |n| Some(CellAmount::Cells(n));
    let set = SetWred {
        port: Some("h2".to_owned()),
        queue: 3,
        kmin: cells(kmin),
        kmax: cells(kmax),
        pmax: Some(pmax),
        mark_at: Some(mark_at),
        ..SetWred::default()
    };
    let _: SetReply = lab.switch("sw")?.call(Call::SetWred(set))?;
    Ok(())
}

fn wait_for_frames(lab: &mut Lab, frames: u64) -> Result<(), LabError> {
    wait_for("the frames don't wait", SOON, || {
        Ok((lab.switch("sw")?.queue("h2", 3)?.frames == frames).then_some(()))
    })
}

/// Puts a burst into the blocked queue.
fn fill(lab: &mut Lab, frames: &[Vec<u8>]) -> TestResult {
    lab.switch("sw")?.hold("h2")?;
    let waiting = lab.switch("sw")?.queue("h2", 3)?.frames;
    lab.inject("h1", frames)?;
    Ok(wait_for_frames(lab, waiting + frames.len() as u64)?)
}

/// Lets the queue go, and says of each frame that leaves whether it is CE.
fn drain(lab: &mut Lab) -> Result<Vec<bool>, LabError> {
    let capture = lab.capture("h2", &["--ethertype", "0x0800"])?;
    lab.switch("sw")?.release("h2")?;
    wait_for("the frames don't leave", SOON, || {
        let queue = lab.switch("sw")?.queue("h2", 3)?;
        Ok((queue.frames == 0 && queue.occupancy == 0).then_some(()))
    })?;
    std::thread::sleep(Duration::from_millis(50));
    Ok(capture.stop()?.iter().map(|frame| frame.bytes[ETHERNET + 1] & 3 == 3).collect())
}

/// The depths at which frame after frame of a burst is looked at: falling as they leave, rising as
/// they join.
fn depths(mark_at: MarkAtDoc, frames: usize, cells: u32) -> Vec<u32> {
    let rising = (1..=frames as u32).map(|n| n * cells);
    match mark_at {
        MarkAtDoc::Enqueue => rising.collect(),
        MarkAtDoc::Dequeue => rising.rev().collect(),
    }
}

/// A step: with Pmax 1 and Kmax a cell above Kmin, exactly the frames at Kmax or deeper are CE. Of
/// any size, wherever the step lies, at both places.
fn positions_follow_from_the_rule(workers: u32) -> TestResult {
    in_lab(&plan(workers), |lab| {
        for mark_at in BOTH {
            let all = [(64_usize, 101), (257, 60), (256, 60), (1024, 101), (1514, 40)];
            for (len, frames) in all.into_iter().take(slice_or(2, 5)) {
                let cells = len.div_ceil(CELL) as u32;
                let all = frames as u32 * cells;
                // Below, in and above the burst; the reported one is half of 101 frames.
                for kmax in [2, all / 4, 51 * all / 101, all, all + 1] {
                    line(lab, mark_at, (kmax - 1, kmax), 1.0)?;
                    fill(lab, &burst(len, frames as u32, Ecn::Ect0))?;
                    let marked = drain(lab)?;
                    let due: Vec<bool> =
                        depths(mark_at, frames, cells).iter().map(|depth| *depth >= kmax).collect();
                    assert_eq!(marked, due, "{mark_at:?}, {len} bytes, Kmax {kmax}");
                }
            }
        }
        Ok(())
    })
}

#[test]
fn positions_follow_from_the_rule_one_worker() -> TestResult {
    positions_follow_from_the_rule(1)
}

#[test]
fn positions_follow_from_the_rule_two_workers() -> TestResult {
    positions_follow_from_the_rule(2)
}

/// The reported line: Kmin 50 and Kmax 51 frames' worth, 101 frames. Marked are the first 51 that
/// leave, or the last 51 that joined.
#[test]
fn the_reported_burst_of_101() -> TestResult {
    in_lab(&plan(1), |lab| {
        for (mark_at, due) in [(MarkAtDoc::Dequeue, 0..51), (MarkAtDoc::Enqueue, 50..101)] {
            line(lab, mark_at, (50 * 4, 51 * 4), 1.0)?;
            fill(lab, &burst(1024, 101, Ecn::Ect1))?;
            let marked = drain(lab)?;
            let places: Vec<usize> = (0..101).filter(|place| marked[*place]).collect();
            assert_eq!(places, due.collect::<Vec<_>>(), "{mark_at:?}");
        }
        Ok(())
    })
}

/// Between Kmin and Kmax it is the line: the share of marks is what the depths ask for, within 3
/// sigma, at both places.
#[test]
fn the_share_of_marks_is_that_of_the_line() -> TestResult {
    const KMIN: u32 = 500;
    const KMAX: u32 = 2000;
    const PMAX: f64 = 0.05;
    const ROUNDS: u32 = 8;
    const FRAMES: u32 = 1990;
    let fast = PortPlan::host(2).speed("20M");
    let profile = ProfilePlan::shipped("veth-lab-1g").without_formula();
    let switch = SwitchPlan::new("sw").port(PortPlan::host(1)).port(fast).profile(profile);
    in_lab(&LabPlan::of(vec![switch]), |lab| {
        for mark_at in BOTH {
            line(lab, mark_at, (KMIN, KMAX), PMAX)?;
            let mut marks = 0;
            for _ in 0..ROUNDS {
                fill(lab, &burst(64, FRAMES, Ecn::Ect0))?;
                marks += drain(lab)?.iter().filter(|marked| **marked).count();
            }
            let p = |depth: u32| {
                let above = f64::from(depth.saturating_sub(KMIN));
                PMAX * above / f64::from(KMAX - KMIN)
            };
            let rounds = f64::from(ROUNDS);
            let mean = rounds * (1..=FRAMES).map(p).sum::<f64>();
            let variance = rounds * (1..=FRAMES).map(|d| p(d) * (1.0 - p(d))).sum::<f64>();
            let off = (marks as f64 - mean).abs() / variance.sqrt();
            assert!(off <= 3.0, "{mark_at:?}: {marks} marks, {mean:.0} due, {off:.1} sigma off");
        }
        Ok(())
    })
}

/// A changed line acts on the very next decision: at enqueue on the next frame that joins, at
/// dequeue on the next one that leaves.
#[test]
fn a_changed_line_acts_on_the_next_decision() -> TestResult {
    let (all, none) = ((1, 2), (3_000, 3_001));
    in_lab(&plan(2), |lab| {
        let frames = burst(1024, 30, Ecn::Ect0);
        for (line_of, due) in
            [([all, none, all], [true, false, true]), ([none, all, none], [false, true, false])]
        {
            for line_now in line_of {
                line(lab, MarkAtDoc::Enqueue, line_now, 1.0)?;
                fill(lab, &frames)?;
            }
            let due: Vec<bool> = due.iter().flat_map(|marked| [*marked; 30]).collect();
            assert_eq!(drain(lab)?, due, "at enqueue");
        }
        for (first, second, marked) in [(all, none, true), (none, all, false)] {
            line(lab, MarkAtDoc::Dequeue, first, 1.0)?;
            let sent = lab.switch("sw")?.queue("h2", 3)?.tx_frames;
            fill(lab, &burst(1024, 100, Ecn::Ect0))?;
            let capture = lab.capture("h2", &["--ethertype", "0x0800"])?;
            lab.switch("sw")?.release("h2")?;
            wait_for("the queue doesn't begin to leave", SOON, || {
                let queue = lab.switch("sw")?.queue("h2", 3)?;
                Ok((queue.tx_frames > sent + 20).then_some(()))
            })?;
            lab.switch("sw")?.hold("h2")?;
            line(lab, MarkAtDoc::Dequeue, second, 1.0)?;
            let before = (lab.switch("sw")?.queue("h2", 3)?.tx_frames - sent) as usize;
            assert!(before < 100, "it was held in time");
            let rest = drain(lab)?;
            let got = capture.stop()?;
            let got: Vec<bool> =
                got.iter().map(|frame| frame.bytes[ETHERNET + 1] & 3 == 3).collect();
            let due: Vec<bool> = (0..100).map(|place| (place < before) == marked).collect();
            assert_eq!(got, due, "at dequeue, changed after {before}");
            assert_eq!(rest.len(), 100 - before);
        }
        Ok(())
    })
}
