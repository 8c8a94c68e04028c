//! Back-pressure over two switches: h1 - sw1 - sw2 - h2, the last link much slower than the rest.

use holdfast_e2e::frames::under_way;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabPlan, PortPlan, ProfilePlan, SwitchPlan, TestResult};
use serde_json::Value;
use std::time::Duration;

const FRAMES: u64 = 1242;
const LENGTH: u64 = 8000;
/// Frames that h1 had under way when it was paused.
const LATE: u32 = 4;
const QP: u64 = 0x21;
/// 9.9 MB at 200 Mb/s take 0.4 s.
const SOON: Duration = Duration::from_secs(60);

fn plan(workers: u32) -> LabPlan {
    let sw1 =
        SwitchPlan::new("sw1").port(PortPlan::host(1)).port(PortPlan::link("up", "sw2", "down"));
    let sw2 = SwitchPlan::new("sw2")
        .port(PortPlan::link("down", "sw1", "up"))
        .port(PortPlan::host(2).speed("200M"));
    let both = vec![sw1.far_host("h2", "up"), sw2.far_host("h1", "down")];
    LabPlan::of(both)
        .mtu(9000)
        .each(|switch| switch.workers(workers).profile(ProfilePlan::shipped("veth-lab-1g-jumbo")))
}

/// A switch paused its upstream at `port`, let it go, lost nothing and holds nothing.
fn assert_paused(lab: &mut Lab, switch: &str, port: &str) -> TestResult {
    let switch = lab.switch(switch)?;
    let sent = switch.pfc(port)?.priorities[3].transmitted;
    assert!(sent.xoff > 0 && sent.xon > 0, "{port}: {sent:?}");
    let pg = switch.pg(port, 3)?;
    assert_eq!((pg.occupancy.service, pg.occupancy.headroom), (0, 0), "{pg:?}");
    for port in switch.ports()?.ports {
        assert_eq!(port.lossless_violations, 0, "{port:?}");
        assert_eq!(port.receive_overrun, 0, "{port:?}");
        assert_eq!(port.drops.values().sum::<u64>(), 0, "{port:?}");
    }
    Ok(())
}

/// With h2 held, the pause reaches h1 and stays; what it had under way goes to sw1's Headroom.
fn hold_until_h1_is_paused(lab: &mut Lab) -> TestResult {
    let switch = lab.switch("sw1")?;
    wait_for("the pause doesn't reach h1", SOON, || Ok(switch.pg("h1", 3)?.xoff.then_some(())))?;
    lab.inject("h1", &under_way(1, 2, LENGTH as usize, LATE))?;
    let switch = lab.switch("sw1")?;
    wait_for("what was under way isn't in Headroom", SOON, || {
        Ok((switch.pg("h1", 3)?.occupancy.headroom > 0).then_some(()))
    })?;
    Ok(())
}

/// What h2 got of the one flow of h1, and what the switches say of it: bytes out equal bytes in.
fn assert_nothing_is_missing(
    lab: &mut Lab,
    (sent, received): (&Value, &Value),
    bytes: u64,
) -> TestResult {
    assert_eq!(sent["sent"], FRAMES);
    assert_eq!(received["received_bytes"], bytes);
    for fault in ["lost", "reordered", "duplicates", "icrc_errors", "socket_drops"] {
        assert_eq!(received[fault], 0, "{fault}: {received}");
    }
    let flows = received["flows_received"].as_array().ok_or("no flows")?;
    let flow = flows.iter().find(|flow| flow["qp"] == QP).ok_or("no flow of the sender")?;
    assert_eq!(sent["flows_sent"][0]["next_psn"], flow["next_psn"]);
    let first = lab.switch("sw1")?;
    assert_eq!(first.port("h1")?.rx_bytes, bytes);
    let heard = first.pfc("up")?.priorities[3].received;
    assert!(heard.xoff > 0 && heard.xon > 0, "sw1 heard sw2: {heard:?}");
    assert_eq!(lab.switch("sw2")?.port("h2")?.tx_bytes, bytes);
    assert!(sent["xoff"][3].as_u64() > Some(0), "h1 was paused: {sent}");
    assert_paused(lab, "sw1", "h1")?;
    assert_paused(lab, "sw2", "down")
}

/// h1 sends at full speed; `held` says whether h2 is held until the pause has reached h1.
fn bytes_out_equal_bytes_in(workers: u32, held: bool) -> TestResult {
    in_lab(&plan(workers), |lab| {
        let frames = FRAMES + if held { u64::from(LATE) } else { 0 };
        let receiver = lab.endpoint("h2", &["receive", "--expect", &frames.to_string()])?;
        if held {
            lab.switch("sw2")?.hold("h2")?;
        }
        let flow = format!("dscp=26,qp={QP},size={LENGTH},rate=max,count={FRAMES}");
        let sender = lab.send("h1", "h2", &[&flow], &["--speed", "1G"])?;
        if held {
            hold_until_h1_is_paused(lab)?;
            lab.switch("sw2")?.release("h2")?;
        }
        let (sent, received) = (sender.report(SOON)?, receiver.report(SOON)?);
        assert_nothing_is_missing(lab, (&sent, &received), frames * LENGTH)?;
        if held {
            let peak = lab.switch("sw1")?.pg("h1", 3)?.watermark.user.headroom;
            assert!(peak > 0, "no frame came after XOFF");
        }
        Ok(())
    })
}

#[test]
fn bytes_out_equal_bytes_in_one_worker() -> TestResult {
    bytes_out_equal_bytes_in(1, false)
}

#[test]
fn bytes_out_equal_bytes_in_two_workers() -> TestResult {
    bytes_out_equal_bytes_in(2, false)
}

#[test]
fn frames_under_way_when_the_pause_arrives_are_kept_one_worker() -> TestResult {
    bytes_out_equal_bytes_in(1, true)
}

#[test]
fn frames_under_way_when_the_pause_arrives_are_kept_two_workers() -> TestResult {
    bytes_out_equal_bytes_in(2, true)
}
