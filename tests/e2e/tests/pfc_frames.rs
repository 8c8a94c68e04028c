//! The PFC frames that the switch sends, as another decoder reads them, and the ones it obeys.

use holdfast_e2e::frames::{pfc, under_way, Ip, Roce};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, tshark, Captured, Lab, LabPlan, PortPlan, SwitchPlan, TestResult};
use holdfast_wire::Ecn;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
const MAC_CONTROL: [&str; 2] = ["--ethertype", "0x8808"];
/// 1000 frames of 5 cells: more than Guaranteed + XOFF of the profile. Slow enough not to pause by
/// RX backlog before that.
const FLOW: &str = "dscp=26,qp=0x21,size=1086,rate=200M,count=1000";
/// Frames that come after the pause all the same.
const LATE: u32 = 20;

/// h1 fills its PG behind a hold of h3 until it is paused and refreshed; some frames are late and
/// go to Headroom; then h3 is released.
fn pause_and_resume(lab: &mut Lab) -> TestResult {
    let total = 1000 + u64::from(LATE);
    let receiver = lab.endpoint("h3", &["receive", "--expect", &total.to_string()])?;
    lab.switch("sw")?.hold("h3")?;
    let sender = lab.send("h1", "h3", &[FLOW], &[])?;
    let switch = lab.switch("sw")?;
    wait_for("h1 isn't paused and refreshed", SOON, || {
        let (pg, sent) = (switch.pg("h1", 3)?, switch.pfc("h1")?.priorities[3].transmitted);
        Ok((pg.xoff && sent.refresh >= 3).then_some(()))
    })?;
    lab.inject("h1", &under_way(1, 3, 1086, LATE))?;
    let switch = lab.switch("sw")?;
    wait_for("the late frames aren't in Headroom", SOON, || {
        Ok((switch.pg("h1", 3)?.occupancy.headroom >= 5 * LATE).then_some(()))
    })?;
    switch.release("h3")?;
    let (sent, received) = (sender.report(SOON)?, receiver.report(SOON)?);
    assert_eq!(sent["sent"], 1000);
    assert_eq!((&received["received"], &received["lost"]), (&total.into(), &0.into()));
    let flows = received["flows_received"].as_array().ok_or("no flows")?;
    let flow =
        flows.iter().find(|flow| flow["qp"] == 0x21).ok_or("the sender's flow is missing")?;
    assert_eq!(sent["flows_sent"][0]["next_psn"], flow["next_psn"]);
    // The sender too, with its own parser, saw the pause and its end.
    assert!(sent["xoff"][3].as_u64() > Some(0) && sent["xon"][3].as_u64() > Some(0), "{sent}");
    Ok(())
}

fn assert_decoded(lab: &mut Lab, frames: &[Captured]) -> TestResult {
    let times: Vec<_> = (0..8).map(|n| format!("macc.cbfc.pause_time.c{n}")).collect();
    let fields = ["eth.dst", "eth.src", "frame.len", "macc.opcode", "macc.cbfc.enbv"];
    let fields: Vec<_> = fields.into_iter().chain(times.iter().map(String::as_str)).collect();
    let rows = tshark::decode(frames, &fields, lab.folder())?;
    let port = lab.switch("sw")?.port("h1")?;
    let quanta = lab.switch("sw")?.pfc("h1")?.pause_quanta.to_string();
    let mut sequence = Vec::new();
    for row in &rows {
        assert_eq!(row[0], "01:80:c2:00:00:01");
        assert_eq!(row[1], port.mac, "the source is the port's own address");
        assert_eq!(row[2], "60");
        assert_eq!(row[3].trim_start_matches("0x"), "0101");
        assert_eq!(row[4].trim_start_matches("0x"), "0008", "only priority 3");
        let others = (5..13).filter(|field| *field != 8);
        others.for_each(|field| assert!(row[field] == "0" || row[field].is_empty(), "{row:?}"));
        sequence.push(row[8].as_str());
    }
    assert!(sequence.iter().all(|time| *time == "0" || *time == quanta), "{sequence:?}");
    assert_eq!(sequence.first(), Some(&quanta.as_str()));
    assert_eq!(sequence.last(), Some(&"0"), "XON follows XOFF: {sequence:?}");
    assert!(sequence.windows(2).all(|pair| pair != ["0", "0"]), "XON twice: {sequence:?}");
    // Nothing behind the eight times but padding.
    assert!(frames.iter().all(|frame| frame.bytes[34..].iter().all(|byte| *byte == 0)));
    let counted = lab.switch("sw")?.pfc("h1")?.priorities[3].transmitted;
    let ends = sequence.iter().filter(|time| **time == "0").count() as u64;
    assert_eq!((counted.xoff, counted.xon), (ends, ends));
    assert_eq!(counted.refresh, sequence.len() as u64 - 2 * ends);
    Ok(())
}

fn pfc_frames_are_what_tshark_expects(workers: u32) -> TestResult {
    let plan = LabPlan::star(3).each(|switch| switch.workers(workers));
    in_lab(&plan, |lab| {
        let here = lab.capture("h1", &MAC_CONTROL)?;
        let elsewhere = [lab.capture("h2", &MAC_CONTROL)?, lab.capture("h3", &MAC_CONTROL)?];
        pause_and_resume(lab)?;
        let frames = here.stop()?;
        assert_decoded(lab, &frames)?;
        for capture in elsewhere {
            assert_eq!(capture.stop()?, [], "PFC stays on the link it was meant for");
        }
        let switch = lab.switch("sw")?;
        let pg = switch.pg("h1", 3)?;
        assert!(pg.watermark.persistent.headroom > 0, "{pg:?}");
        assert_eq!(pg.lossless_violations, 0);
        Ok(())
    })
}

#[test]
fn pfc_frames_are_what_tshark_expects_one_worker() -> TestResult {
    pfc_frames_are_what_tshark_expects(1)
}

#[test]
fn pfc_frames_are_what_tshark_expects_two_workers() -> TestResult {
    pfc_frames_are_what_tshark_expects(2)
}

/// A pause of 65535 quanta at 10 Mb/s lasts 3.36 s; time 0 ends it at once.
#[test]
fn a_pause_is_cut_short_by_time_zero() -> TestResult {
    let switch = SwitchPlan::new("sw").port(PortPlan::host(1).speed("10M")).port(PortPlan::host(2));
    in_lab(&LabPlan::of(vec![switch]), |lab| {
        let mut quanta = [0; 8];
        quanta[3] = u16::MAX;
        let capture = lab.capture("h1", &["--ethertype", "0x0800"])?;
        lab.inject("h1", &[pfc(1, 1 << 3, &quanta)])?;
        let frame = |psn| {
            let roce = Roce {
                from: 2,
                to: 1,
                ip: Ip::V4,
                dscp: 26,
                ecn: Ecn::Ect0,
                tags: &[],
                len: 100,
                psn,
            };
            roce.bytes()
        };
        lab.inject("h2", &(0..10).map(frame).collect::<Vec<_>>())?;
        let switch = lab.switch("sw")?;
        let queue = wait_for("the frames don't wait", SOON, || {
            let queue = switch.queue("h1", 3)?;
            Ok((queue.frames == 10).then_some(queue))
        })?;
        assert!(queue.paused && queue.tx_frames == 0, "{queue:?}");
        lab.inject("h1", &[pfc(1, 1 << 3, &[0; 8])])?;
        let switch = lab.switch("sw")?;
        wait_for("the frames don't leave", SOON, || {
            Ok((switch.queue("h1", 3)?.tx_frames == 10).then_some(()))
        })?;
        let received = switch.pfc("h1")?.priorities[3].received;
        assert_eq!((received.xoff, received.refresh, received.xon), (1, 0, 1));
        let whole = 65_535 * 512 * 100;
        assert!(received.paused_ns < whole, "waited for the end: {received:?}");
        assert_eq!(capture.stop()?.len(), 10);
        Ok(())
    })
}

/// Fault S18: PFC frames, sent and received, count as PFC and as nothing else: not as frames of the
/// port, of a class, of a PG or queue, and not as drops; also where they are invalid.
#[test]
fn pfc_counts_as_pfc_and_nothing_else() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let daemon = lab.daemon("sw", &[])?;
        // Resumes of every priority, so that nothing waits; and an empty vector.
        let frames: Vec<_> =
            (0..8).map(|n| pfc(1, 1 << n, &[0; 8])).chain([pfc(1, 0, &[9; 8])]).collect();
        lab.inject_repeatedly("h1", &frames, 20)?;
        let switch = lab.switch("sw")?;
        let heard = wait_for("they aren't counted", SOON, || {
            let heard = switch.pfc("h1")?;
            Ok((heard.invalid.get("empty_vector") == Some(&20)).then_some(heard))
        })?;
        assert!(heard.priorities.iter().all(|priority| priority.received.xon == 20), "{heard:?}");
        // And sent: h2 pauses nobody, so the switch is made to pause h1.
        switch.hold("h2")?;
        let before = lab.send("h1", "h2", &["dscp=26,size=1086,rate=200M,count=1000"], &[])?;
        let switch = lab.switch("sw")?;
        wait_for("h1 isn't paused", SOON, || Ok(switch.pg("h1", 3)?.xoff.then_some(())))?;
        switch.release("h2")?;
        assert_eq!(before.report(SOON)?["sent"], 1000);
        let switch = lab.switch("sw")?;
        wait_for("not all leaves", SOON, || {
            Ok((switch.port("h2")?.tx_frames == 1000).then_some(()))
        })?;
        let sent = switch.pfc("h1")?.priorities[3].transmitted;
        assert!(sent.xoff > 0 && sent.xon > 0, "{sent:?}");
        let port = switch.port("h1")?;
        assert_eq!((port.rx_frames, port.tx_frames), (1000, 0), "{port:?}");
        assert_eq!(port.drops.values().sum::<u64>(), 0, "{port:?}");
        let frames: u64 = (0..8).map(|pg| switch.pg("h1", pg).map_or(0, |pg| pg.rx_frames)).sum();
        assert_eq!(frames, 1000);
        // Published every 10 ms.
        let series =
            |direction: &str| format!("holdfast_port_{direction}_frames_total{{port=\"h1\"}}");
        let metrics = wait_for("the metrics don't say so", SOON, || {
            let metrics = daemon.metrics()?;
            Ok((metrics[&series("received")] == 1000.0).then_some(metrics))
        })?;
        assert_eq!(metrics[&series("transmitted")], 0.0);
        let dropped = "holdfast_port_dropped_frames_total{port=\"h1\"";
        let reasons: Vec<_> =
            metrics.iter().filter(|(name, _)| name.starts_with(dropped)).collect();
        assert!(reasons.len() > 10 && reasons.iter().all(|(_, frames)| **frames == 0.0));
        Ok(())
    })
}
