//! `holdfast assert` on a running switch: a verdict that CI can go by (SPEC 11).

use holdfast_api::amount::{CellAmount, XoffAmount};
use holdfast_api::message::{Call, SetPg, SetReply, SetWred};
use holdfast_e2e::frames::{under_way, Ip, Roce};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, ProfilePlan, Switch, TestResult};
use holdfast_wire::Ecn;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
/// Frames that come after a pause all the same.
const LATE: u32 = 20;

/// Two hosts send to a third, which is held until the first is paused and has had late frames.
fn incast(lab: &mut Lab) -> TestResult {
    let total = (2_000 + u64::from(LATE)).to_string();
    let receiver = lab.endpoint("h3", &["receive", "--expect", &total])?;
    lab.switch("sw")?.hold("h3")?;
    let flow = |qp: &str| format!("dscp=26,qp={qp},size=1086,rate=200M,count=1000");
    let senders = [
        lab.send("h1", "h3", &[&flow("0x21")], &[])?,
        lab.send("h2", "h3", &[&flow("0x22")], &[])?,
    ];
    let switch = lab.switch("sw")?;
    wait_for("h1 isn't paused", SOON, || Ok(switch.pg("h1", 3)?.xoff.then_some(())))?;
    lab.inject("h1", &under_way(1, 3, 1086, LATE))?;
    let switch = lab.switch("sw")?;
    wait_for("the late frames aren't in Headroom", SOON, || {
        Ok((switch.pg("h1", 3)?.occupancy.headroom > 0).then_some(()))
    })?;
    switch.release("h3")?;
    for sender in senders {
        assert_eq!(sender.report(SOON)?["sent"], 1000);
    }
    assert_eq!(receiver.report(SOON)?["lost"], 0);
    Ok(())
}

/// The exit code of a verdict, and what it says.
fn verdict(switch: &Switch, arguments: &[&str]) -> Result<(Option<i32>, String), LabError> {
    let output = switch.cli(&[&["assert"], arguments].concat())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((output.status.code(), said + &String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn lossless_holds_after_an_incast_and_not_before() -> TestResult {
    in_lab(&LabPlan::star(3), |lab| {
        let (code, said) = verdict(lab.switch("sw")?, &["--lossless", "h1:3"])?;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("never in XOFF, no XON, Headroom never used"), "{said}");
        incast(lab)?;
        let switch = lab.switch("sw")?;
        wait_for("cells don't come back", SOON, || {
            let (code, _) = verdict(switch, &["--idle"])?;
            Ok((code == Some(0)).then_some(()))
        })?;
        let junit = lab.folder().join("verdict.xml").to_string_lossy().into_owned();
        let name = lab.switch("sw")?.call::<holdfast_api::message::ProfileReply>(
            Call::ShowProfile(holdfast_api::message::ShowProfile {}),
        )?;
        let all = [
            &["--lossless", "h1:3", "--lossless", "all", "--violations", "0", "--overrun", "0"][..],
            &["--xoff", "1", "--headroom-max", "100", "--drops", "headroom_overflow=0", "--idle"],
            &["--profile", &name.sha256, "--junit", &junit],
        ];
        let (code, said) = verdict(lab.switch("sw")?, &all.concat())?;
        assert_eq!(code, Some(0), "{said}");
        let written = std::fs::read_to_string(&junit)?;
        assert!(
            written.contains("failures=\"0\"") && written.contains("evidence h1:3"),
            "{written}"
        );
        Ok(())
    })
}

/// More than Guaranteed, limit and Headroom hold: the frames too many are lost, and it is said by
/// the verdict and in the journal.
#[test]
fn a_loss_fails_the_verdict_and_is_in_the_journal() -> TestResult {
    let profile = || ProfilePlan::shipped("veth-lab-1g").without_formula();
    in_lab(&LabPlan::star(3).each(|switch| switch.profile(profile())), |lab| {
        let cells = |n| Some(CellAmount::Cells(n));
        let wred = SetWred { queue: 3, kmin: cells(100), kmax: cells(600), ..SetWred::default() };
        let _: SetReply = lab.switch("sw")?.call(Call::SetWred(wred))?;
        let set = SetPg {
            port: Some("h1".to_owned()),
            pg: 3,
            xoff: Some(XoffAmount::At(CellAmount::Cells(1000))),
            xon: cells(300),
            limit: cells(1500),
            headroom: cells(512),
            ..SetPg::default()
        };
        let _: SetReply = lab.switch("sw")?.call(Call::SetPg(set))?;
        lab.switch("sw")?.hold("h3")?;
        let frame = |psn| Roce {
            from: 1,
            to: 3,
            ip: Ip::V4,
            dscp: 26,
            ecn: Ecn::Ect0,
            tags: &[],
            len: 64,
            psn,
        };
        let kept = 36 + 1500 + 512;
        let frames: Vec<_> = (0..kept + 7).map(|psn| frame(psn).bytes()).collect();
        let (fit, too_many) = frames.split_at(kept as usize);
        lab.inject("h1", fit)?;
        let switch = lab.switch("sw")?;
        // What came while the worker was late waits before it goes into Headroom.
        wait_for("the frames that fit aren't charged", SOON, || {
            let held = switch.pg("h1", 3)?.occupancy;
            Ok((held.guaranteed + held.service + held.headroom == kept).then_some(()))
        })?;
        lab.inject("h1", too_many)?;
        let switch = lab.switch("sw")?;
        wait_for("the frames too many aren't lost", SOON, || {
            Ok((switch.port("h1")?.lossless_violations == 7).then_some(()))
        })?;
        for (most, expected) in [("0", Some(1)), ("6", Some(1)), ("7", Some(0))] {
            let (code, said) = verdict(switch, &["--violations", most])?;
            assert_eq!(code, expected, "{said}");
        }
        let (code, _) = verdict(switch, &["--violations", "0", "--port", "h2"])?;
        assert_eq!(code, Some(0), "h2 has lost nothing");
        wait_for("the loss isn't in the journal", SOON, || {
            let output = switch.cli(&["events", "--severity", "error"])?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let told = text.lines().any(|line| {
                line.contains("error port h1: ") && line.contains(" lossless frames were lost")
            });
            Ok(told.then_some(()))
        })?;
        switch.release("h3")?;
        Ok(())
    })
}
