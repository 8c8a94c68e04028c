//! Bursts that don't divide by the batch, egress open and blocked in turn (fault 2), through the
//! real switch: no chunk and no slot is lost, and the last pass is as quick as the first. The
//! batches of the reported plan are tried one by one in `dataplane/xsk/tests/netns/forwarding.rs`.

use holdfast_api::message::{BufferReply, Call, ShowBuffer};
use holdfast_e2e::frames::{Ip, Roce};
use holdfast_e2e::long::slice_or;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, TestResult};
use holdfast_wire::Ecn;
use std::path::Path;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(60);

fn buffer(lab: &mut Lab) -> Result<BufferReply, LabError> {
    lab.switch("sw")?.call(Call::ShowBuffer(ShowBuffer {}))
}

/// `frames_in_pass` and `passes` of the reported plan.
fn reported() -> Result<(u32, usize), LabError> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cases/02_tx_batch_plan.csv");
    let file = |source| LabError::File { path: path.clone(), source };
    let text = std::fs::read_to_string(&path).map_err(file)?;
    let line = text.lines().nth(1).unwrap_or_default();
    let number = |place: usize| line.split(',').nth(place).and_then(|text| text.parse().ok());
    let wrong = || LabError::Content { path: path.clone(), why: line.to_owned() };
    let (frames, passes): (Option<u32>, Option<u32>) = (number(0), number(2));
    Ok((frames.ok_or_else(wrong)?, passes.ok_or_else(wrong)? as usize))
}

/// With frames of these lengths, in turn.
fn passes(workers: u32, mtu: u16, lengths: &[usize]) -> TestResult {
    let (frames, passes) = reported()?;
    let passes = slice_or(passes / 2, 6 * passes);
    let profile = if mtu > 1500 { "veth-lab-1g-jumbo" } else { "veth-lab-1g" };
    let plan = LabPlan::star(2).mtu(mtu).each(|mut switch| {
        switch.profile = holdfast_e2e::ProfilePlan::shipped(profile);
        switch.workers(workers)
    });
    in_lab(&plan, |lab| {
        let before = buffer(lab)?;
        let burst: Vec<Vec<u8>> = (0..frames)
            .map(|psn| {
                let len = lengths[psn as usize % lengths.len()];
                let (ip, ecn) = (Ip::V4, Ecn::NotEct);
                Roce { from: 1, to: 2, ip, dscp: 26, ecn, tags: &[], len, psn }.bytes()
            })
            .collect();
        let mut times = Vec::new();
        for pass in 0..passes {
            let blocked = pass % 2 == 0;
            if blocked {
                lab.switch("sw")?.hold("h2")?;
            }
            let begin = Instant::now();
            lab.inject("h1", &burst)?;
            let sent = (pass as u64 + 1) * u64::from(frames);
            if blocked {
                wait_for("the burst doesn't wait", SOON, || {
                    let waiting = lab.switch("sw")?.queue("h2", 3)?.frames;
                    Ok((waiting == u64::from(frames)).then_some(()))
                })?;
                let held = buffer(lab)?;
                assert!(held.free_chunks < before.free_chunks, "chunks are in the queue");
                lab.switch("sw")?.release("h2")?;
            }
            wait_for("the burst doesn't leave", SOON, || {
                Ok((lab.switch("sw")?.port("h2")?.tx_frames == sent).then_some(()))
            })?;
            times.push(begin.elapsed());
            wait_for("chunks don't come back", SOON, || {
                let (now, port) = (buffer(lab)?, lab.switch("sw")?.port("h2")?);
                let idle = now.free_chunks == before.free_chunks && port.tx_in_ring_bytes == 0;
                Ok(idle.then_some(()))
            })?;
        }
        let quarter = passes / 4;
        let sum = |part: &[Duration]| part.iter().sum::<Duration>();
        let (first, last) = (sum(&times[..quarter]), sum(&times[passes - quarter..]));
        assert!(last < first * 10, "the first quarter took {first:?}, the last {last:?}");
        Ok(())
    })
}

#[test]
fn bursts_of_179_leave_nothing_behind_one_worker() -> TestResult {
    passes(1, 1500, &[64])
}

#[test]
fn bursts_of_179_leave_nothing_behind_two_workers() -> TestResult {
    passes(2, 1500, &[64, 1514, 512])
}

/// Frames of several chunks: a batch may end in the middle of one.
#[test]
fn bursts_of_179_jumbo_frames_leave_nothing_behind() -> TestResult {
    passes(1, 9000, &[9000, 64, 4170])
}
