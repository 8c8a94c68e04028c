//! Every chunk of frame memory comes back, whatever became of its frame.

use holdfast_api::message::{BufferReply, Call, ShowBuffer};
use holdfast_e2e::frames::{host_mac, Ip, Roce};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, PortPlan, ProfilePlan, SwitchPlan, TestResult};
use holdfast_wire::Ecn;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

fn buffer(lab: &mut Lab) -> Result<BufferReply, LabError> {
    lab.switch("sw")?.call(Call::ShowBuffer(ShowBuffer {}))
}

/// Frames of three chunks and of one: admitted, refused, flooded, of reserved groups.
fn mixture() -> Vec<Vec<u8>> {
    let roce = |to, dscp, len| {
        let ecn = Ecn::NotEct;
        Roce { from: 1, to, ip: Ip::V4, dscp, ecn, tags: &[], len, psn: 0 }.bytes()
    };
    let mut frames = Vec::new();
    for _ in 0..10 {
        frames.extend([roce(2, 0, 9000), roce(2, 0, 64), roce(2, 26, 4096), roce(0x77, 0, 1000)]);
        let mut reserved = roce(2, 0, 200);
        reserved[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]);
        let mut broadcast = roce(2, 0, 5000);
        broadcast[..6].copy_from_slice(&[0xff; 6]);
        let mut own = roce(1, 0, 300);
        own[..6].copy_from_slice(&host_mac(1).0);
        frames.extend([reserved, broadcast, own]);
    }
    frames
}

/// Fault S9: more frames than there are chunks, most of them dropped. What was free before is
/// free again, and the switch still forwards.
fn chunks_come_back_after_drops(workers: u32) -> TestResult {
    let switch = SwitchPlan::new("sw")
        .port(PortPlan::host(1))
        .port(PortPlan::host(2).speed("50M"))
        .port(PortPlan::host(3))
        .profile(ProfilePlan::shipped("veth-lab-1g-jumbo"))
        .workers(workers);
    in_lab(&LabPlan::of(vec![switch]).mtu(9000), |lab| {
        let before = buffer(lab)?;
        let frames = mixture();
        // More frames than chunks: those of even one kind would be missed if they were lost.
        lab.inject_repeatedly("h1", &frames, 1 + before.chunks / frames.len() as u64)?;
        let switch = lab.switch("sw")?;
        let port = switch.port("h1")?;
        for reason in ["lossy_ingress", "reserved_group", "same_port"] {
            assert!(port.drops.get(reason) > Some(&0), "{reason}: {:?}", port.drops);
        }
        let after = wait_for("not every chunk comes back", SOON, || {
            let after: BufferReply = switch.call(Call::ShowBuffer(ShowBuffer {}))?;
            Ok((after.free_chunks == before.free_chunks).then_some(after))
        })?;
        assert!(after.pools.iter().all(|pool| pool.lent == 0), "{after:?}");
        assert_eq!((after.flood_copies, after.egress.lent), (0, 0));
        let capture = lab.capture("h3", &[])?;
        let ecn = Ecn::NotEct;
        let frame = Roce { from: 1, to: 3, ip: Ip::V4, dscp: 0, ecn, tags: &[], len: 9000, psn: 1 };
        lab.inject("h1", &[frame.bytes()])?;
        std::thread::sleep(Duration::from_millis(300));
        let arrived = capture.stop()?;
        assert!(arrived.iter().any(|got| got.bytes == frame.bytes()), "{} came", arrived.len());
        Ok(())
    })
}

#[test]
fn chunks_come_back_after_drops_one_worker() -> TestResult {
    chunks_come_back_after_drops(1)
}

#[test]
fn chunks_come_back_after_drops_two_workers() -> TestResult {
    chunks_come_back_after_drops(2)
}
