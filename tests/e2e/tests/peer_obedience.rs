//! Whether the host behind a port obeys PFC is shown as it is (SPEC 4.3).

use holdfast_api::message::Peer;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, PortPlan, SwitchPlan, TestResult};
use std::time::{Duration, Instant};

const FLOW: &str = "dscp=26,size=1024,rate=max";
const SOON: Duration = Duration::from_secs(60);

/// The port to h2 is slower than its sender, so that h1 is paused most of the time.
fn plan(workers: u32) -> LabPlan {
    let slow = PortPlan::host(2).speed("400M");
    LabPlan::of(vec![SwitchPlan::new("sw").port(PortPlan::host(1)).port(slow).workers(workers)])
}

fn peer(lab: &mut Lab, port: &str) -> Result<Peer, LabError> {
    Ok(lab.switch("sw")?.port(port)?.peer)
}

fn wait_for_peer(lab: &mut Lab, wanted: Peer) -> Result<(), LabError> {
    let what = format!("the peer isn't shown as {wanted:?}");
    wait_for(&what, SOON, || Ok((peer(lab, "h1")? == wanted).then_some(())))
}

#[test]
fn a_host_that_obeys_is_shown_to() -> TestResult {
    in_lab(&plan(1), |lab| {
        assert_eq!(peer(lab, "h1")?, Peer::Unknown);
        let sender = lab.send("h1", "h2", &[FLOW], &["--seconds", "120"])?;
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end {
            // Paused and let go in turn.
            assert_ne!(peer(lab, "h1")?, Peer::Deaf);
        }
        lab.switch("sw")?.hold("h2")?;
        wait_for_peer(lab, Peer::Obeys)?;
        lab.switch("sw")?.release("h2")?;
        sender.stop()?;
        assert!(lab.switch("sw")?.pfc("h1")?.priorities[3].transmitted.xoff > 0);
        assert_eq!(peer(lab, "h1")?, Peer::Obeys);
        assert_eq!(peer(lab, "h2")?, Peer::Unknown, "nobody paused it");
        Ok(())
    })
}

#[test]
fn a_host_that_ignores_pfc_is_shown_as_deaf() -> TestResult {
    in_lab(&plan(2), |lab| {
        let sender = lab.send("h1", "h2", &[FLOW], &["--seconds", "120", "--pfc", "none"])?;
        wait_for_peer(lab, Peer::Deaf)?;
        sender.stop()?;
        wait_for("what the deaf host sent doesn't leave", SOON, || {
            let port = lab.switch("sw")?.port("h1")?;
            Ok((port.rx_backlog == 0).then_some(()))
        })?;
        // The next one obeys.
        let sender = lab.send("h1", "h2", &[FLOW], &["--seconds", "120"])?;
        lab.switch("sw")?.hold("h2")?;
        wait_for_peer(lab, Peer::Obeys)?;
        lab.switch("sw")?.release("h2")?;
        sender.stop()?;
        Ok(())
    })
}
