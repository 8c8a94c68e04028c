//! Ports that flap, vanish and come back in any order, under load: two others lose nothing, and at
//! the end every cell and every chunk is where it was.
//!
//! Ten events; two hundred with `HOLDFAST_LONG=1`. The seed is printed, `HOLDFAST_SEED` sets it.

use fastrand::Rng;
use holdfast_api::message::{BufferReply, Call, PortAdd, PortName, PortState, ShowBuffer};
use holdfast_e2e::long::slice_or;
use holdfast_e2e::netns::HOST_IFNAME;
use holdfast_e2e::process::run;
use holdfast_e2e::wait::wait_for;
use holdfast_e2e::{
    in_lab, Daemon, Endpoint, Lab, LabError, LabPlan, PortPlan, SwitchPlan, TestResult,
};
use std::fs;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
/// What the switch process may grow by, KiB.
const GROWTH: u64 = 1024;
/// Pairs of entries that fill the switch's journal.
const JOURNAL: u32 = 600;
const VICTIMS: [&str; 2] = ["h3", "h4"];

/// What can happen to a port, or beside it.
#[derive(Clone, Copy, Debug)]
enum Happening {
    LinkAtSwitch,
    LinkAtHost,
    NetdevGone,
    Mtu,
    NetnsGone,
    Hold,
    RemoveAndAdd,
    DaemonKilled,
}

const ALL: [Happening; 8] = [
    Happening::LinkAtSwitch,
    Happening::LinkAtHost,
    Happening::NetdevGone,
    Happening::Mtu,
    Happening::NetnsGone,
    Happening::Hold,
    Happening::RemoveAndAdd,
    Happening::DaemonKilled,
];

/// h1 and h2 are the survivors; h4's port is in a namespace of its own.
fn plan(workers: u32) -> LabPlan {
    let switch = SwitchPlan::star("sw", 3).port(PortPlan::host(4).apart());
    // A trace that is soon full: it must not look like memory that gets lost.
    LabPlan::of(vec![switch.workers(workers).spare_ports(1).trace_events(64)])
}

/// Whose namespace a victim's port is in.
fn owner(victim: &str) -> &'static str {
    if victim == "h4" {
        "sw-h4"
    } else {
        "sw"
    }
}

fn ip(lab: &Lab, owner: &str, words: &str) -> Result<String, LabError> {
    run(lab.netns(owner)?.ip().args(words.split(' ')))
}

fn buffer(lab: &mut Lab) -> Result<BufferReply, LabError> {
    lab.switch("sw")?.call(Call::ShowBuffer(ShowBuffer {}))
}

/// Resident memory of the switch process, KiB.
fn resident(lab: &mut Lab) -> Result<u64, LabError> {
    let path = format!("/proc/{}/status", lab.switch("sw")?.process().pid());
    let text = fs::read_to_string(&path)
        .map_err(|source| LabError::File { path: path.clone().into(), source })?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| LabError::Content { path: path.into(), why: "no VmRSS".to_owned() })
}

/// Load between the victims, made anew whenever its hosts have lost their netdevs.
#[derive(Default)]
struct VictimLoad(Vec<Endpoint>);

impl VictimLoad {
    fn keep_up(&mut self, lab: &mut Lab) -> TestResult {
        for endpoint in &mut self.0 {
            if endpoint.has_ended().unwrap_or(true) {
                self.0.clear();
                break;
            }
        }
        if self.0.is_empty() {
            let flow = "dscp=26,qp=0x12,size=1024,rate=150M";
            let more = ["--seconds", "3600", "--speed", "1G"];
            for (from, to) in [("h3", "h4"), ("h4", "h3")] {
                self.0.extend(lab.send(from, to, &[flow], &more).ok());
            }
        }
        Ok(())
    }
}

struct Flaps {
    random: Rng,
    daemon: Option<Daemon>,
    load: VictimLoad,
}

impl Flaps {
    fn pause(&mut self) {
        std::thread::sleep(Duration::from_millis(self.random.u64(0..120)));
    }

    fn join_again(&self, lab: &Lab, victim: &str) -> TestResult {
        // What the kernel removes in the background goes before another one of its name comes.
        let joined =
            || Ok::<_, LabError>(lab.join_again(owner(victim), victim, 1500).is_ok().then_some(()));
        wait_for("the netdev can't be made again", SOON, joined)?;
        Ok(())
    }

    fn one(&mut self, lab: &mut Lab) -> TestResult {
        let victim = VICTIMS[self.random.usize(..VICTIMS.len())];
        let happening = ALL[self.random.usize(..ALL.len())];
        println!("{happening:?} {victim}");
        self.load.keep_up(lab)?;
        match happening {
            Happening::LinkAtSwitch => self.flap(lab, owner(victim), victim)?,
            Happening::LinkAtHost => self.flap(lab, victim, HOST_IFNAME)?,
            Happening::NetdevGone => {
                ip(lab, owner(victim), &format!("link del {victim}"))?;
                self.pause();
                self.join_again(lab, victim)?;
            }
            Happening::Mtu => {
                let mtu = [1280, 1400, 1500][self.random.usize(..3)];
                ip(lab, owner(victim), &format!("link set {victim} mtu {mtu}"))?;
            }
            Happening::NetnsGone => {
                // Of the port itself, or of the host at its other end.
                let gone = if victim == "h4" { owner(victim) } else { victim };
                // A process in it would keep it.
                self.load.0.clear();
                lab.remove_netns(gone)?;
                self.pause();
                lab.make_netns_again(gone)?;
                self.join_again(lab, victim)?;
            }
            Happening::Hold => {
                lab.switch("sw")?.hold(victim)?;
                self.pause();
                lab.switch("sw")?.release(victim)?;
            }
            Happening::RemoveAndAdd => self.remove_and_add(lab, victim)?,
            Happening::DaemonKilled => {
                // Dropping it kills it.
                self.daemon = None;
                self.daemon = Some(lab.daemon("sw", &[])?);
            }
        }
        self.pause();
        Ok(())
    }

    fn flap(&mut self, lab: &Lab, owner: &str, ifname: &str) -> TestResult {
        ip(lab, owner, &format!("link set {ifname} down"))?;
        self.pause();
        ip(lab, owner, &format!("link set {ifname} up"))?;
        Ok(())
    }

    fn remove_and_add(&mut self, lab: &mut Lab, victim: &str) -> TestResult {
        let remove = Call::PortRemove(PortName { port: victim.to_owned() });
        lab.switch("sw")?.call::<serde_json::Value>(remove)?;
        self.pause();
        let add = Call::PortAdd(PortAdd {
            port: victim.to_owned(),
            netns: Some(lab.netns(owner(victim))?.name().to_owned()),
            ifname: victim.to_owned(),
            speed: "1G".parse()?,
            mtu: None,
            queues: None,
            trust: None,
            vlans: Vec::new(),
            pvid: None,
            allow_slow_refresh: false,
            link_pause: false,
        });
        let switch = lab.switch("sw")?;
        wait_for("it can't be added again", SOON, || {
            Ok(switch.call::<serde_json::Value>(add.clone()).is_ok().then_some(()))
        })?;
        Ok(())
    }
}

fn all_up(lab: &mut Lab) -> TestResult {
    for victim in VICTIMS {
        ip(lab, owner(victim), &format!("link set {victim} mtu 1500"))?;
    }
    let switch = lab.switch("sw")?;
    wait_for("a port doesn't come up", SOON, || {
        let ports = switch.ports()?.ports;
        let well = ports.iter().all(|port| port.state == PortState::Up && port.mtu == 1500);
        Ok((well && ports.len() == 4).then_some(()))
    })?;
    Ok(())
}

/// Nothing is charged, and each chunk is free or in a receiving ring.
fn assert_quiet(lab: &mut Lab) -> TestResult {
    wait_for("cells or chunks don't come back", SOON, || {
        let now = buffer(lab)?;
        let idle = now.pools.iter().all(|pool| pool.lent == 0) && now.egress.lent == 0;
        Ok((idle && now.frame_chunks == 0).then_some(()))
    })?;
    Ok(())
}

fn flaps(workers: u32) -> TestResult {
    // In a long run memory is measured when the journal is full and every kind has happened.
    let (first, count) = slice_or((0, 10), (60, 200));
    let given = std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| u64::from(std::process::id()));
    println!("{count} events, {workers} workers, HOLDFAST_SEED={seed}");
    in_lab(&plan(workers), |lab| {
        let receiver = lab.endpoint("h2", &["receive"])?;
        let flow = "dscp=26,qp=0x11,size=1024,rate=100M";
        let sender = lab.send("h1", "h2", &[flow], &["--seconds", "3600", "--speed", "1G"])?;
        let mut flaps =
            Flaps { random: Rng::with_seed(seed), daemon: None, load: VictimLoad::default() };
        // Once each, so that what is allocated once is there when it is measured.
        flaps.remove_and_add(lab, "h3")?;
        ip(lab, "sw", "link del h3")?;
        flaps.join_again(lab, "h3")?;
        for _ in 0..slice_or(0, JOURNAL) {
            lab.switch("sw")?.hold("h3")?;
            lab.switch("sw")?.release("h3")?;
        }
        for _ in 0..first {
            flaps.one(lab)?;
        }
        all_up(lab)?;
        let before = resident(lab)?;
        for event in 1..=count {
            flaps.one(lab)?;
            if event % 20 == 0 {
                println!("{event} events: {} KiB resident", resident(lab)?);
            }
        }
        flaps.load.0.clear();
        all_up(lab)?;
        let sent = sender.stop()?;
        std::thread::sleep(Duration::from_millis(200));
        let received = receiver.stop()?;
        // Frames for stations that were forgotten are flooded, to h2 too.
        let flows = received["flows_received"].as_array().ok_or("no flows")?;
        let flow = flows.iter().find(|flow| flow["qp"] == 0x11).ok_or("h1's flow is missing")?;
        assert_eq!((&flow["received"], &flow["lost"]), (&sent["sent"], &0.into()), "{flow}");
        assert!(sent["sent"].as_u64() > Some(1_000), "{sent}");
        assert_quiet(lab)?;
        for port in lab.switch("sw")?.ports()?.ports {
            assert_eq!(port.lossless_violations, 0, "{}", port.port);
        }
        let after = resident(lab)?;
        println!("{before} KiB resident before, {after} KiB after");
        assert!(after <= before + GROWTH, "{before} KiB -> {after} KiB");
        Ok(())
    })
}

#[test]
fn random_flaps_one_worker() -> TestResult {
    flaps(1)
}

#[test]
fn random_flaps_two_workers() -> TestResult {
    flaps(2)
}
