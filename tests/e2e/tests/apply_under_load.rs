//! Profiles that take over while lossless frames are under way (fault 26 of the public reports):
//! nothing is lost, nothing leaks, and what is refused changes nothing.

use holdfast_api::client::ClientError;
use holdfast_api::message::{
    Apply, ApplyReply, BufferReply, Call, ProfileReply, ShowBuffer, ShowProfile,
};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, Switch, TestResult};
use std::fs;
use std::time::Duration;

const APPLIES: u32 = 100;
const SOON: Duration = Duration::from_secs(60);
/// Between two applies: some thousand frames.
const APART: Duration = Duration::from_millis(40);

/// The other profile: every kind of change at once, growing and shrinking.
fn other(shipped: &str) -> String {
    let changes = [
        ("headroom = 3072", "headroom = 3200"),
        ("xoff = 4096", "xoff = 3500"),
        ("xon = 1024", "xon = 1200"),
        ("kmin = 256", "kmin = 200"),
        ("kmax = 1536", "kmax = 1800"),
        ("guaranteed = 36", "guaranteed = 12"),
        ("weight = 15", "weight = 9"),
        ("pause_quanta = 32768", "pause_quanta = 65535"),
        ("size = 16384", "size = 15000"),
    ];
    changes.into_iter().fold(shipped.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "the profile doesn't say {from}");
        text.replace(from, to)
    })
}

fn apply(switch: &mut Switch, profile: &str) -> Result<ApplyReply, LabError> {
    let profile = profile.to_owned();
    switch.call(Call::Apply(Apply { profile, file: None, dry_run: false }))
}

fn in_force(switch: &mut Switch) -> Result<ProfileReply, LabError> {
    switch.call(Call::ShowProfile(ShowProfile {}))
}

/// A hundred in turn, and after every tenth one that is wrong in its last line.
fn alternate(lab: &mut Lab) -> TestResult {
    let switch = lab.switch("sw")?;
    let shipped = fs::read_to_string(switch.profile_file())?;
    let profiles = [other(&shipped), shipped];
    let before = in_force(switch)?.generation;
    for round in 0..APPLIES {
        let reply = apply(switch, &profiles[round as usize % 2])?;
        assert!(reply.applied && reply.changed.len() > 20, "{reply:?}");
        if round % 10 == 9 {
            let running = in_force(switch)?.sha256;
            let wrong = format!("{}\n[port.h9.pg.3]\nxoff = 1\n", profiles[0]);
            let refused = apply(switch, &wrong);
            let refusal = match &refused {
                Err(LabError::Control(error)) => matches!(**error, ClientError::Refused(_)),
                _ => false,
            };
            assert!(refusal, "{refused:?}");
            assert_eq!(in_force(switch)?.sha256, running);
        }
        std::thread::sleep(APART);
    }
    assert_eq!(in_force(switch)?.generation, before + u64::from(APPLIES));
    Ok(())
}

/// After the last frame: every cell and every chunk is back, no PG is in XOFF.
fn assert_clean(switch: &mut Switch, before: &BufferReply) -> TestResult {
    wait_for("cells or chunks don't come back", SOON, || {
        let now: BufferReply = switch.call(Call::ShowBuffer(ShowBuffer {}))?;
        let idle = now.pools.iter().all(|pool| pool.lent == 0) && now.egress.lent == 0;
        Ok((idle && now.free_chunks == before.free_chunks).then_some(()))
    })?;
    for port in ["h1", "h2", "h3"] {
        for pg in 0..8 {
            let pg = switch.pg(port, pg)?;
            let held = pg.occupancy;
            assert_eq!((held.guaranteed, held.service, held.headroom), (0, 0, 0), "{pg:?}");
            assert!(!pg.xoff && pg.xoff_edges == pg.xon_edges, "{pg:?}");
        }
        assert_eq!(switch.port(port)?.lossless_violations, 0, "{port}");
    }
    Ok(())
}

/// `rate` of each of two hosts into the third one's 1G.
fn a_hundred_applies(workers: u32, rate: &str, congested: bool) -> TestResult {
    in_lab(&LabPlan::star(3).each(|switch| switch.workers(workers)), |lab| {
        let before: BufferReply = lab.switch("sw")?.call(Call::ShowBuffer(ShowBuffer {}))?;
        let receiver = lab.endpoint("h3", &["receive"])?;
        let mut senders = Vec::new();
        for (host, qp) in [("h1", 0x11), ("h2", 0x12)] {
            let flow = format!("dscp=26,qp={qp},size=1024,rate={rate}");
            senders.push(lab.send(host, "h3", &[&flow], &["--seconds", "60", "--speed", "1G"])?);
        }
        alternate(lab)?;
        let mut sent = Vec::new();
        for sender in senders {
            sent.push(sender.stop()?);
        }
        let frames: u64 = sent.iter().filter_map(|report| report["sent"].as_u64()).sum();
        let switch = lab.switch("sw")?;
        assert_clean(switch, &before)?;
        let pfc = [switch.pfc("h1")?, switch.pfc("h2")?];
        let xoff: u64 = pfc.iter().map(|port| port.priorities[3].transmitted.xoff).sum();
        assert!(!congested || xoff > 0, "never congested");
        let received = receiver.stop()?;
        assert_eq!((&received["received"], &received["lost"]), (&frames.into(), &0.into()));
        assert!(frames > 50_000, "{frames}");
        Ok(())
    })
}

#[test]
fn a_hundred_applies_at_half_the_ports_rate_lose_nothing() -> TestResult {
    a_hundred_applies(1, "250M", false)
}

#[test]
fn a_hundred_applies_while_paused_and_charged_lose_nothing() -> TestResult {
    a_hundred_applies(2, "700M", true)
}

/// What was applied last is in force after a restart, and so it is when the file has become wrong.
#[test]
fn a_restart_boots_what_was_in_force() -> TestResult {
    in_lab(&LabPlan::star(2), |lab| {
        let switch = lab.switch("sw")?;
        let file = switch.profile_file();
        let shipped = fs::read_to_string(&file)?;
        let first = in_force(switch)?;
        let applied = apply(switch, &other(&shipped))?;
        assert_eq!(applied.not_kept, None);
        let running = in_force(switch)?;
        switch.restart()?;
        let booted = in_force(switch)?;
        // An automatic total is made anew for what there is; all else is as it was applied.
        assert_eq!((&booted.ports, &booted.pools), (&running.ports, &running.pools));
        assert_eq!(booted.generation, 1);
        assert!(booted.notes[0].contains("applied after"), "{:?}", booted.notes);
        fs::write(&file, "name = 3\n")?;
        switch.restart()?;
        assert_eq!(in_force(switch)?.sha256, booted.sha256);
        // A good file that was written since is what the operator wants.
        fs::write(&file, shipped)?;
        switch.restart()?;
        assert_eq!(in_force(switch)?.sha256, first.sha256);
        Ok(())
    })
}

/// A profile whose PG 3 has `headroom` cells of Headroom, with PFC on priority 3 or without.
fn step(shipped: &str, headroom: bool, pfc: bool) -> String {
    let (before, after) = shipped.split_once("[pg.3]\n").unwrap_or((shipped, ""));
    let own = if pfc { "" } else { "lossless = false\n" };
    let mut text = format!("{before}[pg.3]\n{own}{after}");
    if !headroom {
        text = text.replace("headroom = 3072\n", "");
    }
    if !pfc {
        // What only a lossless PG has.
        text = text.replace("xoff = 4096\n", "").replace("xon = 1024\n", "");
        text = text.replace("[pfc]\n", "[pfc]\nenabled = []\n");
    }
    text
}

/// Enabling PFC and Headroom in two steps, in either order, under load: a lossless PG without
/// Headroom and Headroom without PFC are refused by name and change nothing; with both the PG is
/// lossless from then on, and from then on nothing is lost.
#[test]
fn pfc_and_headroom_in_two_steps_in_either_order() -> TestResult {
    in_lab(&LabPlan::star(3), |lab| {
        let before: BufferReply = lab.switch("sw")?.call(Call::ShowBuffer(ShowBuffer {}))?;
        let shipped = fs::read_to_string(lab.switch("sw")?.profile_file())?;
        let lossless = in_force(lab.switch("sw")?)?.sha256;
        let receiver = lab.endpoint("h3", &["receive"])?;
        let mut senders = Vec::new();
        for (host, qp) in [("h1", 0x11), ("h2", 0x12)] {
            let flow = format!("dscp=26,qp={qp},size=1024,rate=400M");
            senders.push(lab.send(host, "h3", &[&flow], &["--seconds", "60", "--speed", "1G"])?);
        }
        for pfc_first in [true, false, true, false] {
            let switch = lab.switch("sw")?;
            let off = apply(switch, &step(&shipped, false, false))?;
            assert!(off.applied, "{off:?}");
            assert!(!switch.pg("h1", 3)?.lossless && !switch.pfc("h1")?.priorities[3].enabled);
            let half = step(&shipped, !pfc_first, pfc_first);
            let refused = apply(switch, &half).map(|reply| reply.name);
            let Err(LabError::Control(error)) = refused else { panic!("{refused:?}") };
            let ClientError::Refused(body) = *error else { panic!("{error}") };
            let key = body.place.clone().unwrap_or_default();
            assert!(key.contains("pg.3"), "{key}: {body}");
            assert_eq!(in_force(switch)?.sha256, off.sha256);
            let on = apply(switch, &step(&shipped, true, true))?;
            assert_eq!((on.applied, &on.sha256), (true, &lossless));
            std::thread::sleep(APART);
            // The lossy time is over: what is queued now is lossless, and a stall shows it.
            switch.hold("h3")?;
            wait_for("XOFF doesn't come", SOON, || {
                let switch = lab.switch("sw")?;
                Ok((switch.pg("h1", 3)?.xoff && switch.pg("h2", 3)?.xoff).then_some(()))
            })?;
            lab.switch("sw")?.release("h3")?;
        }
        for sender in senders {
            sender.stop()?;
        }
        assert_clean(lab.switch("sw")?, &before)?;
        receiver.stop()?;
        Ok(())
    })
}
