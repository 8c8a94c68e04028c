//! A running lab: namespaces, switches, hosts.

pub mod daemon;
pub mod leftover;
pub mod plan;
pub mod switch;

use crate::endpoint::{Capture, Endpoint};
use crate::frames::{host_mac, to_hex};
use crate::netns::{connect, Netns, VethEnd, HOST_IFNAME};
use crate::LabError;
use daemon::Daemon;
use plan::{host_name, host_number, LabPlan, Peer, PortPlan};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use switch::Switch;
use tempfile::TempDir;

/// What a test gives back.
pub type TestResult = Result<(), Box<dyn Error>>;

/// Longest replay of a file of frames.
const REPLAY: Duration = Duration::from_secs(60);

/// A running lab. Dropping it removes everything.
#[derive(Debug)]
pub struct Lab {
    // In the order of removal: processes before the namespaces they are in.
    switches: BTreeMap<String, Switch>,
    settings: Vec<Setting>,
    hosts: BTreeMap<String, Netns>,
    switch_netns: BTreeMap<String, Netns>,
    folder: TempDir,
    started: u32,
}

/// A netdev and its settings before the switch came.
#[derive(Debug)]
struct Setting {
    /// Host or switch.
    owner: String,
    ifname: String,
    text: String,
}

/// Runs `body` in a lab. If it fails the logs of the switches are printed; if not, everything
/// must leave as it came ([`Lab::finish`]).
///
/// # Errors
/// What the lab or the body failed with.
pub fn in_lab(plan: &LabPlan, body: impl FnOnce(&mut Lab) -> TestResult) -> TestResult {
    let mut lab = Lab::start(plan)?;
    match catch_unwind(AssertUnwindSafe(|| body(&mut lab))) {
        Ok(Ok(())) => Ok(lab.finish()?),
        Ok(Err(error)) => {
            lab.print_logs();
            Err(error)
        }
        Err(panic) => {
            lab.print_logs();
            drop(lab);
            resume_unwind(panic)
        }
    }
}

impl Lab {
    /// Makes namespaces and links, starts the switches and waits until they answer.
    ///
    /// # Errors
    /// Whatever fails first; what was made by then is removed.
    pub fn start(plan: &LabPlan) -> Result<Self, LabError> {
        let prefix = unique_prefix(&plan.prefix);
        let folder = tempfile::Builder::new().prefix(&format!("{prefix}-")).tempdir();
        let folder =
            folder.map_err(|source| LabError::File { path: std::env::temp_dir(), source })?;
        let mut lab = Self {
            switches: BTreeMap::new(),
            settings: Vec::new(),
            hosts: BTreeMap::new(),
            switch_netns: BTreeMap::new(),
            folder,
            started: 0,
        };
        for switch in &plan.switches {
            let netns = Netns::create(&format!("{prefix}-{}", switch.name))?;
            lab.switch_netns.insert(switch.name.clone(), netns);
        }
        let ports = plan.switches.iter().enumerate().flat_map(|(number, switch)| {
            switch.ports.iter().enumerate().map(move |(port, p)| (number, &switch.name, port, p))
        });
        for (number, switch, index, port) in ports {
            if port.apart {
                let name = format!("{switch}-{}", port.name);
                let netns = Netns::create(&format!("{prefix}-{name}"))?;
                lab.switch_netns.insert(name, netns);
            }
            lab.wire(&prefix, plan.mtu, (switch, port), &port_mac(number, index))?;
        }
        lab.note_settings(plan)?;
        for switch in &plan.switches {
            let netns = in_map(&lab.switch_netns, "switch", &switch.name)?;
            let running = Switch::start(switch, netns, lab.folder.path())?;
            lab.switches.insert(switch.name.clone(), running);
        }
        Ok(lab)
    }

    /// Makes the veth of one port. A link between ports is made by the end that comes first.
    fn wire(
        &mut self,
        prefix: &str,
        mtu: u16,
        (switch, port): (&str, &PortPlan),
        mac: &str,
    ) -> Result<(), LabError> {
        match &port.peer {
            Peer::Host(n) => {
                let name = host_name(*n);
                let host = Netns::create(&format!("{prefix}-{name}"))?;
                let netns = in_map(&self.switch_netns, "switch", &owner_of(switch, port))?;
                let near = VethEnd { netns, ifname: &port.name, mac };
                let far_mac = host_mac(*n).to_string();
                let far = VethEnd { netns: &host, ifname: HOST_IFNAME, mac: &far_mac };
                connect([near, far], mtu)?;
                self.hosts.insert(name, host);
            }
            Peer::Port { switch: other, port: other_port }
                if (switch, port.name.as_str()) < (other.as_str(), other_port.as_str()) =>
            {
                let netns = in_map(&self.switch_netns, "switch", switch)?;
                let near = VethEnd { netns, ifname: &port.name, mac };
                let netns = in_map(&self.switch_netns, "switch", other)?;
                // Nobody else has this address: that of the near end, marked.
                let far_mac = mac.replacen("02:", "06:", 1);
                let far = VethEnd { netns, ifname: other_port, mac: &far_mac };
                connect([near, far], mtu)?;
            }
            Peer::Port { .. } => {}
        }
        Ok(())
    }

    fn note_settings(&mut self, plan: &LabPlan) -> Result<(), LabError> {
        let ports = plan.switches.iter().flat_map(|switch| {
            switch.ports.iter().map(|port| (owner_of(&switch.name, port), port.name.clone()))
        });
        let hosts = self.hosts.keys().map(|host| (host.clone(), HOST_IFNAME.to_owned()));
        let all: Vec<_> = ports.chain(hosts).collect();
        for (owner, ifname) in all {
            let text = self.settings(&owner, &ifname)?;
            self.settings.push(Setting { owner, ifname, text });
        }
        Ok(())
    }

    /// The namespace of a host or of a switch's ports.
    ///
    /// # Errors
    /// [`LabError::Unknown`].
    pub fn netns(&self, owner: &str) -> Result<&Netns, LabError> {
        let host = self.hosts.get(owner);
        host.map_or_else(|| in_map(&self.switch_netns, "switch", owner), Ok)
    }

    /// The namespace of a host.
    ///
    /// # Errors
    /// [`LabError::Unknown`].
    pub fn host(&self, name: &str) -> Result<&Netns, LabError> {
        in_map(&self.hosts, "host", name)
    }

    /// A switch by its name.
    ///
    /// # Errors
    /// [`LabError::Unknown`].
    pub fn switch(&mut self, name: &str) -> Result<&mut Switch, LabError> {
        let unknown = || LabError::Unknown { kind: "switch", name: name.to_owned() };
        self.switches.get_mut(name).ok_or_else(unknown)
    }

    /// What a switch may change at a netdev of a host or a switch, as it is now.
    ///
    /// # Errors
    /// [`LabError::Unknown`], or what `ethtool` or `ip` says.
    pub fn settings(&self, owner: &str, ifname: &str) -> Result<String, LabError> {
        self.netns(owner)?.link_settings(ifname)
    }

    /// Joins a host to its port anew, by a veth of the same names and addresses, after the old one
    /// went. `port_owner` is whose namespace the port is in.
    ///
    /// # Errors
    /// [`LabError::Unknown`], or what `ip` says.
    pub fn join_again(&self, port_owner: &str, host: &str, mtu: u16) -> Result<(), LabError> {
        let number = host_number(host).unwrap_or_default();
        let (near_mac, far_mac) =
            (port_mac(0, usize::from(number) - 1), host_mac(number).to_string());
        let near = VethEnd { netns: self.netns(port_owner)?, ifname: host, mac: &near_mac };
        let far = VethEnd { netns: self.host(host)?, ifname: HOST_IFNAME, mac: &far_mac };
        connect([near, far], mtu)
    }

    /// Removes a namespace of the lab, with the netdevs in it.
    ///
    /// # Errors
    /// [`LabError::Unknown`], or what `ip` says.
    pub fn remove_netns(&self, owner: &str) -> Result<(), LabError> {
        Netns::remove(self.netns(owner)?.name())
    }

    /// Makes one again that was removed, without netdevs.
    ///
    /// # Errors
    /// [`LabError::Unknown`], or what `ip` says.
    pub fn make_netns_again(&self, owner: &str) -> Result<(), LabError> {
        // The lab has one of this name already, which removes it.
        std::mem::forget(Netns::create(self.netns(owner)?.name())?);
        Ok(())
    }

    /// The folder of logs and other files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn next_name(&mut self, host: &str) -> String {
        self.started += 1;
        format!("{host}-{}", self.started)
    }

    /// Starts `holdfast-endpoint` on a host: a verb and its arguments, without `--interface`.
    ///
    /// # Errors
    /// [`LabError::Unknown`], or as [`Endpoint::start`].
    pub fn endpoint(&mut self, host: &str, arguments: &[&str]) -> Result<Endpoint, LabError> {
        let name = self.next_name(host);
        Endpoint::start(&name, self.host(host)?, arguments, self.folder.path())
    }

    /// Starts a RoCEv2 sender on a host towards another, with these flows and further arguments.
    ///
    /// # Errors
    /// As [`Self::endpoint`].
    pub fn send(
        &mut self,
        from: &str,
        to: &str,
        flows: &[&str],
        more: &[&str],
    ) -> Result<Endpoint, LabError> {
        let number = |name: &str| host_number(name).unwrap_or_default();
        let to_mac = host_mac(number(to)).to_string();
        let (to_ip, from_ip) =
            (format!("10.0.0.{}", number(to)), format!("10.0.0.{}", number(from)));
        let mut arguments =
            vec!["send", "--to-mac", &to_mac, "--to-ip", &to_ip, "--from-ip", &from_ip];
        flows.iter().for_each(|flow| arguments.extend(["--flow", *flow]));
        arguments.extend(more);
        self.endpoint(from, &arguments)
    }

    /// Starts `holdfastd` beside a switch, with further arguments.
    ///
    /// # Errors
    /// [`LabError::Unknown`], or as [`Self::endpoint`].
    pub fn daemon(&mut self, switch: &str, more: &[&str]) -> Result<Daemon, LabError> {
        let name = self.next_name("holdfastd");
        let socket = self.switch(switch)?.socket().to_path_buf();
        let netns = in_map(&self.switch_netns, "switch", switch)?;
        Daemon::start(&name, netns, &socket, more, self.folder.path())
    }

    /// The namespace of a switch.
    ///
    /// # Errors
    /// [`LabError::Unknown`].
    pub fn switch_netns(&self, switch: &str) -> Result<&Netns, LabError> {
        in_map(&self.switch_netns, "switch", switch)
    }

    /// Starts a capture of what arrives at a host.
    ///
    /// # Errors
    /// [`LabError::Unknown`], or as [`Capture::start`].
    pub fn capture(&mut self, host: &str, filter: &[&str]) -> Result<Capture, LabError> {
        let name = self.next_name(host);
        Capture::start(&name, self.host(host)?, filter, self.folder.path())
    }

    /// Sends frames from a host, byte by byte, and waits until they are out.
    ///
    /// # Errors
    /// As [`Self::endpoint`]; [`LabError::File`].
    pub fn inject(&mut self, host: &str, frames: &[Vec<u8>]) -> Result<(), LabError> {
        self.replay(host, frames, &[])
    }

    /// As [`Self::inject`], with so much time between two frames.
    ///
    /// # Errors
    /// As [`Self::inject`].
    pub fn inject_slowly(
        &mut self,
        host: &str,
        frames: &[Vec<u8>],
        gap: Duration,
    ) -> Result<(), LabError> {
        self.replay(host, frames, &["--gap", &gap.as_micros().to_string()])
    }

    /// As [`Self::inject`], all frames so many times over.
    ///
    /// # Errors
    /// As [`Self::inject`].
    pub fn inject_repeatedly(
        &mut self,
        host: &str,
        frames: &[Vec<u8>],
        times: u64,
    ) -> Result<(), LabError> {
        self.replay(host, frames, &["--repeat", &times.to_string()])
    }

    /// Sends frames from a host over and over, as fast as it can, until the endpoint is stopped.
    ///
    /// # Errors
    /// As [`Self::inject`].
    pub fn flood(&mut self, host: &str, frames: &[Vec<u8>]) -> Result<Endpoint, LabError> {
        self.start_replay(host, frames, &["--repeat", "0"])
    }

    fn replay(&mut self, host: &str, frames: &[Vec<u8>], more: &[&str]) -> Result<(), LabError> {
        self.start_replay(host, frames, more)?.report(REPLAY).map(|_| ())
    }

    fn start_replay(
        &mut self,
        host: &str,
        frames: &[Vec<u8>],
        more: &[&str],
    ) -> Result<Endpoint, LabError> {
        let path = self.folder.path().join(format!("{host}-{}.hex", self.started + 1));
        let mut text = String::new();
        for frame in frames {
            // Writing to a String can't fail.
            let _ = writeln!(text, "frame : {}", to_hex(frame));
        }
        fs::write(&path, text).map_err(|source| LabError::File { path: path.clone(), source })?;
        let path = path.to_string_lossy().into_owned();
        let arguments = [&["replay", "--hex", &path], more].concat();
        self.endpoint(host, &arguments)
    }

    /// Prints the end of each switch's log.
    pub fn print_logs(&mut self) {
        for switch in self.switches.values_mut() {
            eprintln!("--- log of {}\n{}", switch.name().to_owned(), switch.process().log_tail());
        }
    }

    /// Ends the lab in order: each switch leaves with exit code 0 and the links as they were, and
    /// no namespace stays.
    ///
    /// # Errors
    /// [`LabError::Failed`], [`LabError::Late`], [`LabError::LeftBehind`].
    pub fn finish(mut self) -> Result<(), LabError> {
        for switch in self.switches.values_mut() {
            switch.stop()?;
        }
        for before in &self.settings {
            let after = self.settings(&before.owner, &before.ifname)?;
            let changed = before.text.lines().zip(after.lines()).filter(|(old, new)| old != new);
            let changed: Vec<_> = changed.map(|(old, new)| format!("{old} -> {new}")).collect();
            if !changed.is_empty() {
                let place = format!("{} {}", before.owner, before.ifname);
                return Err(LabError::LeftBehind(format!("{place}: {}", changed.join(", "))));
            }
        }
        let all = self.hosts.values().chain(self.switch_netns.values());
        let names: Vec<_> = all.map(|netns| netns.name().to_owned()).collect();
        drop(self);
        match names.iter().find(|name| Netns::exists(name)) {
            Some(name) => Err(LabError::LeftBehind(format!("netns {name}"))),
            None => Ok(()),
        }
    }
}

fn in_map<'a, T>(
    map: &'a BTreeMap<String, T>,
    kind: &'static str,
    name: &str,
) -> Result<&'a T, LabError> {
    map.get(name).ok_or_else(|| LabError::Unknown { kind, name: name.to_owned() })
}

/// Whose namespace a port is in: the switch's, or one of its own.
fn owner_of(switch: &str, port: &PortPlan) -> String {
    if port.apart {
        format!("{switch}-{}", port.name)
    } else {
        switch.to_owned()
    }
}

/// The process id keeps test processes apart, the counter the labs within one.
fn unique_prefix(prefix: &str) -> String {
    static LABS: AtomicU32 = AtomicU32::new(0);
    let lab = LABS.fetch_add(1, Ordering::Relaxed);
    let pid = std::process::id();
    if lab == 0 {
        format!("{prefix}-{pid}")
    } else {
        format!("{prefix}-{pid}-{lab}")
    }
}

/// The address of a switch's port, which no host has.
fn port_mac(switch: usize, port: usize) -> String {
    format!("02:00:00:00:{:02x}:{:02x}", switch + 1, port + 1)
}
