//! A port that goes away under load, for whatever reason, and comes back by itself (SPEC 9, 14): it
//! is down with its reason, cells and chunks come back, who was paused because of it goes on, and
//! two other ports lose nothing meanwhile.

use holdfast_api::message::{
    BufferReply, Call, DownReason, FdbReply, Occurrence, PortState, ShowBuffer, ShowFdb,
};
use holdfast_e2e::endpoint::Endpoint;
use holdfast_e2e::frames::under_way;
use holdfast_e2e::process::run;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{in_lab, Lab, LabPlan, PortPlan, SwitchPlan, TestResult};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

/// h1 to h2 are to notice nothing; h4 sends to h3, whose port is the one that goes.
fn plan(workers: u32, victim: PortPlan) -> LabPlan {
    let switch = SwitchPlan::star("sw", 2).port(victim).port(PortPlan::host(4));
    LabPlan::of(vec![switch.workers(workers)])
}

/// Lossless load that must not notice anything.
struct Survivors {
    receiver: Endpoint,
    sender: Endpoint,
}

impl Survivors {
    fn start(lab: &mut Lab) -> Result<Self, Box<dyn std::error::Error>> {
        let receiver = lab.endpoint("h2", &["receive"])?;
        let flow = "dscp=26,qp=0x11,size=1024,rate=120M";
        let sender = lab.send("h1", "h2", &[flow], &["--seconds", "300", "--speed", "1G"])?;
        Ok(Self { receiver, sender })
    }

    fn assert_whole(self) -> TestResult {
        let sent = self.sender.stop()?;
        std::thread::sleep(Duration::from_millis(200));
        let received = self.receiver.stop()?;
        assert_eq!((&received["received"], &received["lost"]), (&sent["sent"], &0.into()));
        assert!(sent["sent"].as_u64() > Some(1_000), "{sent}");
        Ok(())
    }
}

/// h3's port is held and h4 is paused because of it; a station is known behind it.
fn congest(lab: &mut Lab) -> Result<Endpoint, Box<dyn std::error::Error>> {
    let mut strange = under_way(3, 4, 64, 1);
    strange.iter_mut().for_each(|frame| frame[6..12].copy_from_slice(&[2, 0xaa, 0, 0, 0, 1]));
    lab.inject("h3", &strange)?;
    lab.switch("sw")?.hold("h3")?;
    let flow = "dscp=26,qp=0x12,size=1024,rate=400M";
    let sender = lab.send("h4", "h3", &[flow], &["--seconds", "300", "--speed", "1G"])?;
    let switch = lab.switch("sw")?;
    wait_for("h4 isn't paused", SOON, || Ok(switch.pg("h4", 3)?.xoff.then_some(())))?;
    assert_eq!(learned(lab)?, 1);
    Ok(sender)
}

/// Stations that were learned behind h3's port.
fn learned(lab: &mut Lab) -> Result<usize, Box<dyn std::error::Error>> {
    let query = ShowFdb { port: Some("h3".to_owned()), ..ShowFdb::default() };
    let reply: FdbReply = lab.switch("sw")?.call(Call::ShowFdb(query))?;
    Ok(reply.entries.iter().filter(|entry| entry.mac.starts_with("02:aa")).count())
}

/// Down for this reason: nothing of it is charged any more, and nobody is paused because of it.
fn assert_down(lab: &mut Lab, reason: &str) -> TestResult {
    let switch = lab.switch("sw")?;
    wait_for("h3 isn't down", SOON, || {
        let port = switch.port("h3")?;
        let why = port.down_reason.clone().unwrap_or_default();
        Ok((port.state == PortState::Down && why.contains(reason)).then_some(()))
    })?;
    wait_for("cells don't come back", SOON, || {
        let (queue, pg) = (switch.queue("h3", 3)?, switch.pg("h4", 3)?);
        let held = pg.occupancy.guaranteed + pg.occupancy.service + pg.occupancy.headroom;
        Ok((queue.occupancy == 0 && held == 0 && !pg.xoff).then_some(()))
    })?;
    assert_eq!(learned(lab)?, 0);
    Ok(())
}

/// Up again: what h4 sends arrives at h3, all of it.
fn assert_forwards(lab: &mut Lab) -> TestResult {
    let switch = lab.switch("sw")?;
    wait_for("h3 doesn't come up", SOON, || {
        Ok((switch.port("h3")?.state != PortState::Down).then_some(()))
    })?;
    switch.release("h3")?;
    let receiver = lab.endpoint("h3", &["receive"])?;
    let flow = "dscp=26,qp=0x13,size=1024,rate=200M,count=5000";
    let sent = lab.send("h4", "h3", &[flow], &["--speed", "1G"])?.report(SOON)?;
    std::thread::sleep(Duration::from_millis(200));
    let received = receiver.stop()?;
    assert_eq!((&sent["sent"], &received["received"]), (&5000.into(), &5000.into()));
    Ok(())
}

/// Nothing is charged, each chunk is free or in a receiving ring, and no lossless frame was lost.
fn assert_clean(lab: &mut Lab) -> TestResult {
    let switch = lab.switch("sw")?;
    wait_for("cells or chunks don't come back", SOON, || {
        let now: BufferReply = switch.call(Call::ShowBuffer(ShowBuffer {}))?;
        let idle = now.pools.iter().all(|pool| pool.lent == 0) && now.egress.lent == 0;
        Ok((idle && now.frame_chunks == 0).then_some(()))
    })?;
    for port in switch.ports()?.ports {
        assert_eq!(port.lossless_violations, 0, "{port:?}");
    }
    Ok(())
}

/// One outage: `take` takes the port down for `reason`, `back` makes it possible again.
fn outage(
    plan: &LabPlan,
    reason: &str,
    take: impl FnOnce(&mut Lab) -> TestResult,
    back: impl FnOnce(&mut Lab) -> TestResult,
) -> TestResult {
    in_lab(plan, |lab| {
        let survivors = Survivors::start(lab)?;
        let sender = congest(lab)?;
        take(lab)?;
        assert_down(lab, reason)?;
        back(lab)?;
        drop(sender);
        assert_forwards(lab)?;
        survivors.assert_whole()?;
        assert_clean(lab)?;
        let journal = lab.switch("sw")?.journal()?;
        let down =
            |what: &Occurrence| matches!(what, Occurrence::PortDown { port, .. } if port == "h3");
        assert!(journal.iter().any(down), "{journal:?}");
        Ok(())
    })
}

/// Settings of h3's port that would have to be put back after a kill.
fn kept(lab: &mut Lab) -> Result<usize, Box<dyn std::error::Error>> {
    let file = lab.switch("sw")?.socket().with_extension("state").join("links.json");
    Ok(std::fs::read_to_string(file)?.matches("\"ifname\": \"h3\"").count())
}

fn ip(lab: &Lab, owner: &str, words: &str) -> TestResult {
    run(lab.netns(owner)?.ip().args(words.split(' ')))?;
    Ok(())
}

#[test]
fn a_link_goes_down_at_the_switch_and_comes_up() -> TestResult {
    outage(
        &plan(1, PortPlan::host(3)),
        "its link is down",
        |lab| ip(lab, "sw", "link set h3 down"),
        |lab| ip(lab, "sw", "link set h3 up"),
    )
}

#[test]
fn a_link_goes_down_at_the_host_and_comes_up() -> TestResult {
    outage(
        &plan(2, PortPlan::host(3)),
        "its link is down",
        |lab| ip(lab, "h3", "link set eth0 down"),
        |lab| ip(lab, "h3", "link set eth0 up"),
    )
}

#[test]
fn a_netdev_is_deleted_and_made_again() -> TestResult {
    outage(
        &plan(2, PortPlan::host(3)),
        "its netdev is gone",
        |lab| ip(lab, "sw", "link del h3"),
        |lab| {
            assert_eq!(kept(lab)?, 0, "there is nothing to put back any more");
            lab.join_again("sw", "h3", 1500)?;
            let opened = || Ok((kept(lab).unwrap_or_default() > 0).then_some(()));
            Ok(wait_for("what is to be put back isn't kept", SOON, opened)?)
        },
    )
}

#[test]
fn a_hosts_netns_is_deleted_and_made_again() -> TestResult {
    outage(
        &plan(1, PortPlan::host(3)),
        "its netdev is gone",
        |lab| Ok(lab.remove_netns("h3")?),
        |lab| {
            lab.make_netns_again("h3")?;
            Ok(lab.join_again("sw", "h3", 1500)?)
        },
    )
}

#[test]
fn a_ports_netns_is_deleted_and_made_again() -> TestResult {
    outage(
        &plan(2, PortPlan::host(3).apart()),
        "its network namespace is gone",
        |lab| Ok(lab.remove_netns("sw-h3")?),
        |lab| {
            // It really goes: nothing of the switch keeps it. With it goes the host's end.
            wait_for("the host's netdev stays", SOON, || {
                Ok(lab.settings("h3", "eth0").is_err().then_some(()))
            })?;
            lab.make_netns_again("sw-h3")?;
            Ok(lab.join_again("sw-h3", "h3", 1500)?)
        },
    )
}

/// A change after which the port is opened anew at once; `back` checks it and undoes it.
fn renewal(
    plan: &LabPlan,
    reason: DownReason,
    change: impl FnOnce(&mut Lab) -> TestResult,
    back: impl FnOnce(&mut Lab) -> TestResult,
) -> TestResult {
    in_lab(plan, |lab| {
        let survivors = Survivors::start(lab)?;
        let sender = congest(lab)?;
        change(lab)?;
        wait_for("h3 isn't opened again", SOON, || {
            let journal = lab.switch("sw")?.journal()?;
            let down = |what: &Occurrence| {
                matches!(what, Occurrence::PortDown { port, reason: why }
                    if port == "h3" && *why == reason)
            };
            let from = journal.iter().position(down);
            let opened = |what: &Occurrence| matches!(what, Occurrence::PortOpened { .. });
            Ok(from.filter(|from| journal[*from..].iter().any(opened)))
        })?;
        drop(sender);
        assert_forwards(lab)?;
        survivors.assert_whole()?;
        assert_clean(lab)?;
        back(lab)
    })
}

/// Frames of this payload that reach h3 of 100 that h4 sends.
fn reach(lab: &mut Lab, size: u32) -> Result<u64, Box<dyn std::error::Error>> {
    let receiver = lab.endpoint("h3", &["receive"])?;
    let flow = format!("dscp=26,qp=0x14,size={size},rate=20M,count=100");
    lab.send("h4", "h3", &[&flow], &["--speed", "1G"])?.report(SOON)?;
    std::thread::sleep(Duration::from_millis(200));
    Ok(receiver.stop()?["received"].as_u64().unwrap_or_default())
}

#[test]
fn an_mtu_is_made_smaller() -> TestResult {
    renewal(
        &plan(1, PortPlan::host(3)),
        DownReason::MtuChanged,
        |lab| ip(lab, "sw", "link set h3 mtu 1280"),
        |lab| {
            assert_eq!(lab.switch("sw")?.port("h3")?.mtu, 1280);
            ip(lab, "sw", "link set h3 mtu 1500")?;
            wait_for("not as it was", SOON, || {
                let port = lab.switch("sw")?.port("h3")?;
                Ok((port.mtu == 1500 && port.state == PortState::Up).then_some(()))
            })?;
            assert_eq!(reach(lab, 1400)?, 100);
            Ok(())
        },
    )
}

#[test]
fn an_mtu_is_made_larger() -> TestResult {
    let plan = plan(2, PortPlan::host(3)).mtu(1300);
    renewal(
        &plan,
        DownReason::MtuChanged,
        |lab| ip(lab, "sw", "link set h3 mtu 1500"),
        |lab| {
            assert_eq!(lab.switch("sw")?.port("h3")?.mtu, 1500);
            // Both hosts and h4's port, too: then longer frames come through.
            ip(lab, "sw", "link set h4 mtu 1500")?;
            ip(lab, "h3", "link set eth0 mtu 1500")?;
            ip(lab, "h4", "link set eth0 mtu 1500")?;
            wait_for("h4 isn't up", SOON, || {
                let port = lab.switch("sw")?.port("h4")?;
                Ok((port.mtu == 1500 && port.state == PortState::Up).then_some(()))
            })?;
            assert_eq!(reach(lab, 1400)?, 100);
            for (owner, netdev) in [("sw", "h3"), ("sw", "h4"), ("h3", "eth0"), ("h4", "eth0")] {
                ip(lab, owner, &format!("link set {netdev} mtu 1300"))?;
            }
            Ok(())
        },
    )
}

/// A netdev that comes back with more queues than memory was laid out for isn't opened until it has
/// as many as before; one that gets more while it is open goes down.
#[test]
fn rx_queues_are_changed() -> TestResult {
    let channels = |lab: &Lab, count: &str| -> TestResult {
        let words = ["-L", "h3", "rx", count, "tx", "1"];
        run(lab.netns("sw")?.command("ethtool").args(words))?;
        Ok(())
    };
    in_lab(&plan(1, PortPlan::host(3)), |lab| {
        let survivors = Survivors::start(lab)?;
        let sender = congest(lab)?;
        ip(lab, "sw", "link del h3")?;
        let host = lab.host("h3")?.name().to_owned();
        let (four, one) = ("numtxqueues 4 numrxqueues 4", "numtxqueues 1 numrxqueues 4");
        let peer = format!("type veth peer name eth0 {one} address 02:00:00:00:00:03 netns {host}");
        ip(lab, "sw", &format!("link add h3 {four} address 02:00:00:00:01:03 {peer}"))?;
        ip(lab, "h3", "link set eth0 up")?;
        assert_down(lab, "h3 has 4 RX queues, the memory is laid out for 1")?;
        channels(lab, "1")?;
        drop(sender);
        assert_forwards(lab)?;
        channels(lab, "2")?;
        assert_down(lab, "its RX queues were changed; can't be opened again yet: h3 has 2 RX")?;
        channels(lab, "1")?;
        assert_forwards(lab)?;
        survivors.assert_whole()?;
        assert_clean(lab)?;
        // As it was when the lab was made.
        ip(lab, "sw", "link del h3")?;
        lab.join_again("sw", "h3", 1500)?;
        assert_forwards(lab)
    })
}

/// The id of the link by which h3's XDP program is attached.
fn program_link(lab: &Lab) -> Result<Option<u64>, holdfast_e2e::LabError> {
    let read = |words: &[&str]| {
        let json = run(lab.netns("sw")?.command("bpftool").arg("-j").args(words))?;
        serde_json::from_str::<serde_json::Value>(&json).map_err(|error| {
            holdfast_e2e::LabError::Content { path: "bpftool".into(), why: error.to_string() }
        })
    };
    let net = read(&["net", "show", "dev", "h3"])?;
    let program = &net[0]["xdp"][0]["id"];
    let links = read(&["link", "show"])?;
    let mut links = links.as_array().into_iter().flatten();
    let link = links.find(|link| !program.is_null() && link["prog_id"] == *program);
    Ok(link.and_then(|link| link["id"].as_u64()))
}

#[test]
fn an_xdp_program_is_detached_by_somebody_else() -> TestResult {
    let detach = |lab: &mut Lab| -> TestResult {
        let id = program_link(lab)?.ok_or("no link")?.to_string();
        run(lab.netns("sw")?.command("bpftool").args(["link", "detach", "id", &id]))?;
        Ok(())
    };
    renewal(&plan(2, PortPlan::host(3)), DownReason::ProgramDetached, detach, |_| Ok(()))
}
