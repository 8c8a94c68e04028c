//! A deadlock over three switches in a ring, on real frames (SPEC 8): each flow crosses two links
//! of the ring, so that each switch waits for the next one. What is said of it, and what ends it;
//! and a chain of pauses that is none.
//!
//! The ring is s1 -> s2 -> s3 -> s1, each from its port `out` to the next one's port `in`. Nobody
//! floods in it: hosts have static entries, and receivers don't announce themselves.

use holdfast_api::message::{
    Call, Events, EventsReply, Occurrence, PortFilter, WaitsReply, WatchdogReply,
};
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabError, LabPlan, PortPlan, ProfilePlan, SwitchPlan, TestResult};
use serde_json::Value;
use std::process::Output;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
const RING: [&str; 3] = ["s1", "s2", "s3"];
/// Frames of a flow: five cells each, more than the ring's PGs take and less than the hosts'.
const FRAMES: u64 = 700;
/// Of links between switches. So slow that a pause lasts 1.7 s: it doesn't run out on a machine
/// that gives a switch no core for a second, or the ring would turn by a frame then. And so slow
/// that a switch may be late by half a second with its pause, before all that wait are through.
const SLOW: &str = "10M";
/// A switch without a core for less than that causes no storm, and loses nothing by one.
const WATCHDOG: &str = "[watchdog]\ndetection_time = \"2s\"\naction = \"drop\"\n";

fn plan(workers: u32) -> LabPlan {
    let ring = |number: u8, before: &str, next: &str| {
        let switch = SwitchPlan::new(&format!("s{number}"))
            .port(PortPlan::host(number))
            .port(PortPlan::link("in", before, "out").speed(SLOW))
            .port(PortPlan::link("out", next, "in").speed(SLOW));
        // Every other host lies ahead in the ring.
        let others = (1..=3).filter(|other| *other != number);
        others.fold(switch, |switch, other| switch.far_host(&format!("h{other}"), "out"))
    };
    LabPlan::of(vec![ring(1, "s3", "s2"), ring(2, "s1", "s3"), ring(3, "s2", "s1")])
        .each(|switch| pauses_early(switch, "in").workers(workers))
}

/// PG 3 of `port` pauses from 600 cells on, those of the others at 4096, as in `veth-lab-1g`. ECN
/// has to act before that.
fn pauses_early(switch: SwitchPlan, port: &str) -> SwitchPlan {
    let mut keys = format!("[port.{port}.pg.3]\nxoff = 600\nxon = 200\n");
    for port in &switch.ports {
        keys += &format!("[port.{}.queue.3.wred]\nkmin = 100\nkmax = 300\n", port.name);
    }
    switch.profile(ProfilePlan::shipped("veth-lab-1g").with(&keys))
}

/// All frames of a flow of the lossless class, and no more.
fn send(lab: &mut Lab, from: &str, to: &str, qp: u64) -> TestResult {
    let flow = format!("dscp=26,qp={qp},size=1024,rate=50M,count={FRAMES}");
    let report = lab.send(from, to, &[&flow], &["--speed", "1G"])?.report(SOON)?;
    assert_eq!(report["sent"], FRAMES, "{report}");
    Ok(())
}

fn until_xoff(lab: &mut Lab, switch: &str) -> TestResult {
    let switch = lab.switch(switch)?;
    wait_for("port in doesn't pause its peer", SOON, || {
        Ok(switch.pg("in", 3)?.xoff.then_some(()))
    })?;
    Ok(())
}

/// Frames of h3 for h2 fill s3's port out, which is held; those of h2 for h1 wait behind them,
/// until s3 pauses s2; behind these those of h1 for h3, until s2 pauses s1. When s3 is let go, s1
/// pauses it before the first frame of h2 has its turn: nobody can move any more.
fn close_the_ring(lab: &mut Lab) -> TestResult {
    lab.switch("s3")?.hold("out")?;
    send(lab, "h3", "h2", 0x32)?;
    send(lab, "h2", "h1", 0x21)?;
    until_xoff(lab, "s3")?;
    send(lab, "h1", "h3", 0x13)?;
    until_xoff(lab, "s2")?;
    lab.switch("s3")?.release("out")?;
    until_xoff(lab, "s1")
}

/// `holdfast deadlock` over these switches.
fn deadlock(lab: &mut Lab, switches: &[&str], more: &[&str]) -> Result<Output, LabError> {
    let mut arguments = vec!["deadlock".to_owned()];
    for switch in switches {
        arguments.push(lab.switch(switch)?.socket().display().to_string());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(more.to_vec()).collect();
    lab.switch(switches[0])?.cli(&arguments)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Waits until the three PGs are suspected.
fn until_suspected(lab: &mut Lab) -> TestResult {
    for name in RING {
        let switch = lab.switch(name)?;
        let all = || Call::ShowWaits(PortFilter::default());
        let waits = wait_for("the PG isn't suspected", SOON, || {
            let waits: WaitsReply = switch.call(all())?;
            let suspected = waits.pgs.iter().any(|pg| pg.suspected_at_ns.is_some());
            Ok(suspected.then_some(waits))
        })?;
        let queue = waits.queues.iter().find(|queue| queue.port == "out").ok_or("no queue")?;
        assert!(queue.paused && queue.stands_ns >= queue.detection_ns, "{name}: {queue:?}");
    }
    Ok(())
}

/// What each switch has sent over the ring.
fn sent(lab: &mut Lab) -> Result<Vec<u64>, LabError> {
    RING.iter().map(|name| Ok(lab.switch(name)?.port("out")?.tx_frames)).collect()
}

/// Senders are gone, and nothing moves: the three PGs of the ring are named, and nothing else.
fn assert_deadlocked(lab: &mut Lab) -> TestResult {
    until_suspected(lab)?;
    let before = sent(lab)?;
    let output = deadlock(lab, &RING, &["--json"])?;
    let report = json(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    let cycles = report["deadlocks"].as_array().ok_or("no deadlocks")?;
    let [cycle] = &cycles[..] else { return Err(report.to_string().into()) };
    let text = "s1 port in pg 3 -> s2 port in pg 3 -> s3 port in pg 3 -> s1 port in pg 3";
    assert_eq!(cycle["text"], text);
    assert_eq!(
        (&report["moving_cycles"], &report["unasked"]),
        (&Value::from(vec![0; 0]), &Value::from(vec![0; 0]))
    );
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(sent(lab)?, before, "something has moved");
    let output = deadlock(lab, &RING, &[])?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.starts_with(&format!("Deadlock: {text}\n")), "{told}");
    assert_eq!(output.status.code(), Some(1), "{told}");
    Ok(())
}

/// Without one of the three there is only a chain, and a switch that doesn't answer is named.
fn assert_one_missing_is_said(lab: &mut Lab) -> TestResult {
    let output = deadlock(lab, &["s1", "s2"], &[])?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let chain = "  s1 port in pg 3 -> s2 port in pg 3 -> queue 3 of port out, paused by ";
    assert!(told.contains(chain) && told.contains("a switch that wasn't asked"), "{told}");
    let output = deadlock(lab, &["s1", "s2"], &["/nowhere/s3.sock"])?;
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("/nowhere/s3.sock"), "{said}");
    Ok(())
}

/// The same profile with a watchdog, in force from now on.
fn watch(lab: &mut Lab) -> TestResult {
    for name in RING {
        let switch = lab.switch(name)?;
        let file = switch.profile_file();
        let text = std::fs::read_to_string(&file)?;
        let watched = file.with_extension("watched.toml");
        std::fs::write(&watched, format!("{text}\n{WATCHDOG}"))?;
        let output = switch.cli(&["apply", &watched.display().to_string()])?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// No PG of the ring is in XOFF or holds anything, and no queue is stormed any more.
fn until_recovered(lab: &mut Lab) -> TestResult {
    for name in RING {
        let switch = lab.switch(name)?;
        wait_for("the ring doesn't recover", SOON, || {
            let pg = switch.pg("in", 3)?;
            let watched: WatchdogReply = switch.call(Call::ShowWatchdog(Default::default()))?;
            let calm = watched.queues.iter().all(|queue| !queue.stormed);
            Ok((!pg.xoff && pg.occupancy.service == 0 && calm).then_some(()))
        })?;
    }
    Ok(())
}

/// What was dropped was dropped by the watchdog: at least one queue had to be.
fn assert_only_the_watchdog_dropped(lab: &mut Lab) -> TestResult {
    let mut dropped = 0;
    for name in RING {
        for port in lab.switch(name)?.ports()?.ports {
            assert_eq!(port.lossless_violations, 0, "{name}: {port:?}");
            let by_watchdog = port.drops.get("watchdog").copied().unwrap_or_default();
            assert_eq!(port.drops.values().sum::<u64>(), by_watchdog, "{name}: {port:?}");
            dropped += by_watchdog;
        }
    }
    assert!(dropped > 0);
    Ok(())
}

/// The journal of each switch has the suspicion with the port it waits for, and its end.
fn assert_told(lab: &mut Lab) -> TestResult {
    for name in RING {
        let switch = lab.switch(name)?;
        let of_ring = |what: &Occurrence| match what {
            Occurrence::DeadlockSuspected { port, pgs, waits_for, .. } if port == "in" => {
                assert_eq!(
                    (pgs.as_slice(), waits_for.as_slice()),
                    (&[3][..], &["out".to_owned()][..])
                );
                Some(true)
            }
            Occurrence::DeadlockResolved { port, .. } if port == "in" => Some(false),
            _ => None,
        };
        wait_for("the journal doesn't tell", SOON, || {
            let reply: EventsReply = switch.call(Call::Events(Events::default()))?;
            let told: Vec<bool> =
                reply.entries.iter().filter_map(|entry| of_ring(&entry.what)).collect();
            Ok((told.first() == Some(&true) && told.last() == Some(&false)).then_some(()))
        })?;
    }
    Ok(())
}

/// The three flows again, at once and whole.
fn assert_traffic_passes(lab: &mut Lab) -> TestResult {
    let mut receivers = Vec::new();
    for host in ["h1", "h2", "h3"] {
        let expect = ["receive", "--silent", "--expect", &FRAMES.to_string()];
        receivers.push(lab.endpoint(host, &expect)?);
    }
    // Two of them share each link.
    let flow = |qp: u64| format!("dscp=26,qp={qp},size=1024,rate=3M,count={FRAMES}");
    let ways = [("h3", "h2", 0x132), ("h2", "h1", 0x121), ("h1", "h3", 0x113)];
    let mut senders = Vec::new();
    for (from, to, qp) in ways {
        senders.push(lab.send(from, to, &[&flow(qp)], &["--speed", "1G"])?);
    }
    for sender in senders {
        assert_eq!(sender.report(SOON)?["sent"], FRAMES);
    }
    for receiver in receivers {
        let report = receiver.report(SOON)?;
        assert_eq!((&report["received"], &report["lost"]), (&FRAMES.into(), &0.into()), "{report}");
    }
    Ok(())
}

fn a_ring_deadlocks_is_named_and_the_watchdog_ends_it(workers: u32) -> TestResult {
    in_lab(&plan(workers), |lab| {
        close_the_ring(lab)?;
        assert_deadlocked(lab)?;
        assert_one_missing_is_said(lab)?;
        watch(lab)?;
        until_recovered(lab)?;
        let output = deadlock(lab, &RING, &[])?;
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
        assert_only_the_watchdog_dropped(lab)?;
        assert_told(lab)?;
        assert_traffic_passes(lab)
    })
}

#[test]
fn a_ring_deadlocks_is_named_and_the_watchdog_ends_it_one_worker() -> TestResult {
    a_ring_deadlocks_is_named_and_the_watchdog_ends_it(1)
}

#[test]
fn a_ring_deadlocks_is_named_and_the_watchdog_ends_it_two_workers() -> TestResult {
    a_ring_deadlocks_is_named_and_the_watchdog_ends_it(2)
}

/// h1 - s1 - s2 - h2, and h2 pauses: everybody waits, in the end for a host.
#[test]
fn a_chain_behind_a_paused_receiver_is_no_deadlock() -> TestResult {
    let link = |name, switch, port| PortPlan::link(name, switch, port).speed(SLOW);
    let s1 = SwitchPlan::new("s1").port(PortPlan::host(1)).port(link("up", "s2", "down"));
    let s2 = SwitchPlan::new("s2").port(link("down", "s1", "up"));
    let s2 = s2.port(PortPlan::host(2).speed(SLOW));
    let both = vec![
        pauses_early(s1, "h1").far_host("h2", "up"),
        pauses_early(s2, "down").far_host("h1", "down"),
    ];
    in_lab(&LabPlan::of(both), |lab| {
        let storm = ["storm", "--priorities", "3", "--speed", SLOW, "--seconds", "300", "--xon"];
        let storm = lab.endpoint("h2", &storm)?;
        let flow = format!("dscp=26,qp=0x12,size=1024,rate=50M,count={FRAMES}");
        let sender = lab.send("h1", "h2", &[&flow], &["--speed", "1G"])?;
        for (switch, port) in [("s2", "down"), ("s1", "h1")] {
            let switch = lab.switch(switch)?;
            wait_for("it doesn't wait", SOON, || {
                let waits: WaitsReply = switch.call(Call::ShowWaits(PortFilter::default()))?;
                let of = waits.pgs.iter().find(|pg| pg.port == port);
                Ok(of.is_some_and(|pg| pg.suspected_at_ns.is_some()).then_some(()))
            })?;
        }
        let output = deadlock(lab, &["s1", "s2"], &[])?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{told}");
        let chain = "  s1 port h1 pg 3 -> s2 port down pg 3 -> queue 3 of port h2, paused by \
                     02:00:00:00:00:02: a host, or a switch that wasn't asked\n";
        assert!(told.contains(chain), "{told}");
        let report = json(&deadlock(lab, &["s1", "s2"], &["--json"])?);
        assert_eq!(report["deadlocks"].as_array().map(Vec::len), Some(0), "{report}");
        assert_eq!(report["chains"].as_array().map(Vec::len), Some(1), "{report}");
        storm.stop()?;
        assert_eq!(sender.report(SOON)?["sent"], FRAMES);
        wait_for("something waits still", SOON, || {
            let output = deadlock(lab, &["s1", "s2"], &[])?;
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok(told.contains("no PG is in XOFF").then_some(()))
        })?;
        Ok(())
    })
}
