//! What can happen to a switch on a bad day, at random from a seed: its ports flap, vanish and come
//! back, its daemon is killed, its profile changes, its peers storm. h1 and h2 are spared; who uses
//! this checks that they lose nothing.

use crate::lab::{Lab, TestResult};
use crate::netns::HOST_IFNAME;
use crate::process::run;
use crate::wait::wait_for;
use crate::{Daemon, Endpoint, LabError, LabPlan, PortPlan, ProfilePlan, SwitchPlan};
use fastrand::Rng;
use holdfast_api::client::ClientError;
use holdfast_api::message::{
    Apply, BufferReply, Call, PortAdd, PortName, PortState, ShowBuffer, WatermarkFilter,
};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
/// Hosts and ports that all of it happens to.
const VICTIMS: [&str; 2] = ["h3", "h4"];
/// Pairs of entries that fill the switch's journal.
const JOURNAL: u32 = 600;
/// Shorter than the stall that a 1G port states.
const STOP: Duration = Duration::from_millis(15);

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happening {
    /// The switch's end of a veth goes down and up.
    LinkAtSwitch,
    /// The host's end does.
    LinkAtHost,
    /// A veth is removed and made anew.
    NetdevGone,
    /// Another MTU.
    Mtu,
    /// A network namespace is removed and made anew, of a port or of a host.
    NetnsGone,
    /// The egress of a port is stopped for a while.
    Hold,
    /// A port is removed from the switch and added again.
    RemoveAndAdd,
    /// `kill -9` of the daemon.
    DaemonKilled,
    /// Another profile.
    Applied,
    /// A profile that is refused.
    RefusedProfile,
    /// A peer pauses for longer than the watchdog waits, or not so long.
    Storm,
    /// The process of the switch stands still.
    Stopped,
    /// Somebody looks at everything.
    LookedAt,
}

impl Happening {
    /// All of it.
    pub const ALL: [Self; 13] = [
        Self::LinkAtSwitch,
        Self::LinkAtHost,
        Self::NetdevGone,
        Self::Mtu,
        Self::NetnsGone,
        Self::Hold,
        Self::RemoveAndAdd,
        Self::DaemonKilled,
        Self::Applied,
        Self::RefusedProfile,
        Self::Storm,
        Self::Stopped,
        Self::LookedAt,
    ];

    /// What happens to ports, and beside them: the first eight.
    pub fn flaps() -> &'static [Self] {
        Self::ALL.split_at(8).0
    }
}

/// A switch of four hosts, of which h3 and h4 are the victims; h4's port is in a namespace of its
/// own. Storms are ended by a watchdog.
pub fn plan(workers: u32) -> LabPlan {
    let profile = ProfilePlan::shipped("veth-lab-1g").with(
        "[watchdog]\ndetection_time = \"200ms\"\nrestoration_time = \"200ms\"\naction = \"drop\"",
    );
    let switch = SwitchPlan::star("sw", 3).port(PortPlan::host(4).apart()).profile(profile);
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

/// Resident memory of the switch process, KiB.
///
/// # Errors
/// [`LabError::File`] and [`LabError::Content`].
pub fn resident(lab: &mut Lab) -> Result<u64, LabError> {
    let path = format!("/proc/{}/status", lab.switch("sw")?.process().pid());
    let text = fs::read_to_string(&path)
        .map_err(|source| LabError::File { path: path.clone().into(), source })?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| LabError::Content { path: path.into(), why: "no VmRSS".to_owned() })
}

/// What the ports that are spared have lost; nothing, or what is known of it.
///
/// # Errors
/// What the switch says.
pub fn lost_by_the_spared(lab: &mut Lab) -> Result<Option<String>, LabError> {
    let reply = lab.switch("sw")?.ports()?;
    let spared = reply.ports.iter().filter(|port| !VICTIMS.contains(&port.port.as_str()));
    let lost = spared.filter(|port| port.lossless_violations > 0).map(|port| {
        format!(
            "{}: {} lossless frames, {} of them by the kernel, {:?}",
            port.port, port.lossless_violations, port.receive_overrun, port.drops
        )
    });
    let lost: Vec<String> = lost.collect();
    let gaps = reply.workers.iter().map(|worker| worker.longest_gap_ns / 1_000_000);
    let gaps: Vec<String> = gaps.map(|ms| format!("{ms} ms")).collect();
    let text = || format!("{}; workers stood for {}", lost.join("; "), gaps.join(", "));
    Ok((!lost.is_empty()).then(text))
}

/// Waits until all ports are up as they were.
///
/// # Errors
/// [`LabError::Late`].
pub fn all_up(lab: &mut Lab) -> TestResult {
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

/// Waits until nothing is charged, and each chunk is free or in a receiving ring (SPEC 3.7).
///
/// # Errors
/// [`LabError::Late`].
pub fn all_quiet(lab: &mut Lab) -> TestResult {
    wait_for("cells or chunks don't come back", SOON, || {
        let call = Call::ShowBuffer(ShowBuffer {});
        let now: BufferReply = lab.switch("sw")?.call(call)?;
        let idle = now.pools.iter().all(|pool| pool.lent == 0) && now.egress.lent == 0;
        Ok((idle && now.frame_chunks == 0).then_some(()))
    })?;
    for port in ["h1", "h2", "h3", "h4"] {
        for pg in 0..8 {
            let pg = lab.switch("sw")?.pg(port, pg)?;
            if pg.xoff || pg.xoff_edges != pg.xon_edges {
                let why = format!("port {port} pg {} stays in XOFF: {pg:?}", pg.pg);
                return Err(LabError::Content { path: "show pg".into(), why }.into());
            }
        }
    }
    Ok(())
}

/// Load between the victims, made anew whenever its hosts have lost their netdevs.
#[derive(Default)]
struct VictimLoad(Vec<Endpoint>);

impl VictimLoad {
    fn keep_up(&mut self, lab: &mut Lab) {
        for endpoint in &mut self.0 {
            if endpoint.has_ended().unwrap_or(true) {
                self.0.clear();
                break;
            }
        }
        if self.0.is_empty() {
            let flow = "dscp=26,qp=0x12,size=1024,rate=150M";
            let more = ["--seconds", "36000", "--speed", "1G"];
            for (from, to) in [("h3", "h4"), ("h4", "h3")] {
                self.0.extend(lab.send(from, to, &[flow], &more).ok());
            }
        }
    }
}

/// The one who makes it happen.
pub struct Unrest {
    random: Rng,
    daemon: Option<Daemon>,
    load: VictimLoad,
    profiles: [String; 2],
    /// How often each has happened.
    pub count: BTreeMap<Happening, u64>,
}

impl Unrest {
    /// The same in each run of the same seed.
    ///
    /// # Errors
    /// [`LabError::File`], if the switch's profile can't be read.
    pub fn new(lab: &mut Lab, seed: u64) -> Result<Self, LabError> {
        let path = lab.switch("sw")?.profile_file();
        let shipped =
            fs::read_to_string(&path).map_err(|source| LabError::File { path, source })?;
        let other =
            shipped.replace("xoff = 4096", "xoff = 3500").replace("kmin = 256", "kmin = 200");
        Ok(Self {
            random: Rng::with_seed(seed),
            daemon: None,
            load: VictimLoad::default(),
            profiles: [other, shipped],
            count: BTreeMap::new(),
        })
    }

    /// One of these, to one of the victims, and a while.
    ///
    /// # Errors
    /// What can't be done, and what the switch doesn't bear.
    pub fn one(
        &mut self,
        lab: &mut Lab,
        kinds: &[Happening],
    ) -> Result<Happening, Box<dyn std::error::Error>> {
        let victim = VICTIMS[self.random.usize(..VICTIMS.len())];
        let happening = kinds[self.random.usize(..kinds.len())];
        self.load.keep_up(lab);
        self.happen(lab, happening, victim)
            .map_err(|error| format!("{happening:?} {victim}: {error}"))?;
        *self.count.entry(happening).or_default() += 1;
        self.pause();
        Ok(happening)
    }

    /// What allocates something once; if memory is to be measured then, also a full journal.
    ///
    /// # Errors
    /// As [`Self::one`].
    pub fn warm_up(&mut self, lab: &mut Lab, journal: bool) -> TestResult {
        self.remove_and_add(lab, "h3")?;
        self.happen(lab, Happening::NetdevGone, "h3")?;
        for _ in 0..if journal { JOURNAL } else { 0 } {
            lab.switch("sw")?.hold("h3")?;
            lab.switch("sw")?.release("h3")?;
        }
        Ok(())
    }

    /// Ends the load of the victims.
    pub fn calm(&mut self) {
        self.load.0.clear();
    }

    fn pause(&mut self) {
        std::thread::sleep(Duration::from_millis(self.random.u64(0..120)));
    }

    fn happen(&mut self, lab: &mut Lab, happening: Happening, victim: &str) -> TestResult {
        match happening {
            Happening::LinkAtSwitch => self.flap(lab, owner(victim), victim)?,
            Happening::LinkAtHost => self.flap(lab, victim, HOST_IFNAME)?,
            Happening::NetdevGone => {
                ip(lab, owner(victim), &format!("link del {victim}"))?;
                self.pause();
                join_again(lab, victim)?;
            }
            Happening::Mtu => {
                let mtu = [1280, 1400, 1500][self.random.usize(..3)];
                ip(lab, owner(victim), &format!("link set {victim} mtu {mtu}"))?;
            }
            Happening::NetnsGone => self.netns_gone(lab, victim)?,
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
            Happening::Applied => self.apply(lab)?,
            Happening::RefusedProfile => self.refused(lab)?,
            Happening::Storm => self.storm(lab, victim)?,
            Happening::Stopped => {
                lab.switch("sw")?.process().signal(Signal::SIGSTOP);
                std::thread::sleep(STOP);
                lab.switch("sw")?.process().signal(Signal::SIGCONT);
            }
            Happening::LookedAt => self.look(lab)?,
        }
        Ok(())
    }

    fn flap(&mut self, lab: &Lab, owner: &str, ifname: &str) -> TestResult {
        ip(lab, owner, &format!("link set {ifname} down"))?;
        self.pause();
        ip(lab, owner, &format!("link set {ifname} up"))?;
        Ok(())
    }

    fn netns_gone(&mut self, lab: &mut Lab, victim: &str) -> TestResult {
        // Of the port itself, or of the host at its other end.
        let gone = if victim == "h4" { owner(victim) } else { victim };
        // A process in it would keep it.
        self.calm();
        lab.remove_netns(gone)?;
        self.pause();
        lab.make_netns_again(gone)?;
        join_again(lab, victim)
    }

    fn remove_and_add(&mut self, lab: &mut Lab, victim: &str) -> TestResult {
        let remove = Call::PortRemove(PortName { port: victim.to_owned() });
        lab.switch("sw")?.call::<Value>(remove)?;
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
            Ok(switch.call::<Value>(add.clone()).is_ok().then_some(()))
        })?;
        Ok(())
    }

    fn apply(&mut self, lab: &mut Lab) -> TestResult {
        self.profiles.swap(0, 1);
        let profile = self.profiles[0].clone();
        lab.switch("sw")?.call::<Value>(Call::Apply(Apply {
            profile,
            file: None,
            dry_run: false,
        }))?;
        Ok(())
    }

    fn refused(&mut self, lab: &mut Lab) -> TestResult {
        let profile = format!("{}\n[pg.3]\nxoff = 1\n", self.profiles[0]);
        let call = Call::Apply(Apply { profile, file: None, dry_run: false });
        match lab.switch("sw")?.call::<Value>(call) {
            Err(LabError::Control(error)) if matches!(*error, ClientError::Refused(_)) => Ok(()),
            other => Err(format!("a wrong profile wasn't refused: {other:?}").into()),
        }
    }

    fn storm(&mut self, lab: &mut Lab, victim: &str) -> TestResult {
        let ms = self.random.u64(50..700);
        let storm = ["storm", "--priorities", "3", "--speed", "1G"];
        let stormer = lab.endpoint(victim, &storm)?;
        std::thread::sleep(Duration::from_millis(ms));
        // Its netdev may have gone meanwhile.
        drop(stormer.stop());
        Ok(())
    }

    fn look(&mut self, lab: &mut Lab) -> TestResult {
        let filter = WatermarkFilter::default();
        lab.switch("sw")?.call::<Value>(Call::WatermarkClear(filter))?;
        for show in ["ports", "pg", "queue", "pfc", "buffer", "watchdog", "profile"] {
            let shown = lab.switch("sw")?.cli(&["--json", "show", show])?;
            if !shown.status.success() {
                return Err(format!("show {show}: {shown:?}").into());
            }
        }
        if let Some(daemon) = &self.daemon {
            daemon.metrics()?;
        }
        Ok(())
    }
}

fn join_again(lab: &Lab, victim: &str) -> TestResult {
    // What the kernel removes in the background goes before another one of its name comes.
    let joined =
        || Ok::<_, LabError>(lab.join_again(owner(victim), victim, 1500).is_ok().then_some(()));
    wait_for("the netdev can't be made again", SOON, joined)?;
    Ok(())
}
