//! Network namespaces and veth pairs that end with their owner.

use crate::process::run;
use crate::LabError;
use std::path::Path;
use std::process::Command;

/// Where named network namespaces lie (ip-netns(8)).
pub const FOLDER: &str = "/run/netns";

/// The netdev that a host has.
pub const HOST_IFNAME: &str = "eth0";

/// A network namespace with a name. Dropping it removes it, with the netdevs in it.
#[derive(Debug)]
pub struct Netns {
    name: String,
}

impl Netns {
    /// Makes it, silent: without IPv6 the kernel sends nothing of its own on a new netdev.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn create(name: &str) -> Result<Self, LabError> {
        run(Command::new("ip").args(["netns", "add", name]))?;
        let netns = Self { name: name.to_owned() };
        let silence = "for f in all default; do \
                       echo 1 > /proc/sys/net/ipv6/conf/$f/disable_ipv6; done";
        run(netns.command("sh").args(["-c", silence]))?;
        run(netns.ip().args(["link", "set", "lo", "up"]))?;
        Ok(netns)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `ip` on it.
    pub fn ip(&self) -> Command {
        let mut command = Command::new("ip");
        command.args(["-n", &self.name]);
        command
    }

    /// A program in it. By `nsenter`: `ip netns exec` also remounts /sys, for which / must be a
    /// mount point, and in a chroot it isn't.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={FOLDER}/{}", self.name)).arg("--").arg(program);
        command
    }

    /// Whether a namespace of that name exists.
    pub fn exists(name: &str) -> bool {
        Path::new(FOLDER).join(name).exists()
    }

    /// Removes the namespace of that name, with the netdevs in it.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn remove(name: &str) -> Result<(), LabError> {
        run(Command::new("ip").args(["netns", "del", name])).map(|_| ())
    }

    /// What a switch may change at a netdev: offloads, rings, MTU, promiscuity, XDP.
    ///
    /// # Errors
    /// What `ethtool` or `ip` says.
    pub fn link_settings(&self, ifname: &str) -> Result<String, LabError> {
        let offloads = run(self.command("ethtool").args(["-k", ifname]))?;
        let link = run(self.ip().args(["-d", "-o", "link", "show", "dev", ifname]))?;
        let promiscuity = link.split("promiscuity ").nth(1).and_then(|t| t.split(' ').next());
        let mtu = link.split(" mtu ").nth(1).and_then(|text| text.split(' ').next());
        let xdp = link.contains("xdp");
        Ok(format!("{offloads}promiscuity: {promiscuity:?}\nmtu: {mtu:?}\nxdp: {xdp}\n"))
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        // Nobody is left to tell, and a second removal isn't a fault.
        let _ = Self::remove(&self.name);
    }
}

/// One end of a veth pair.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// Where it lies.
    pub netns: &'a Netns,
    /// Its name there.
    pub ifname: &'a str,
    /// Its address.
    pub mac: &'a str,
}

/// Makes a veth pair of one queue each way, both ends up.
///
/// # Errors
/// What `ip` says.
pub fn connect(ends: [VethEnd<'_>; 2], mtu: u16) -> Result<(), LabError> {
    let [a, b] = ends;
    let mtu = mtu.to_string();
    let one_queue = ["numtxqueues", "1", "numrxqueues", "1"];
    run(a
        .netns
        .ip()
        .args(["link", "add", "name", a.ifname, "mtu", &mtu, "address", a.mac])
        .args(one_queue)
        .args(["type", "veth", "peer", "name", b.ifname, "mtu", &mtu, "address", b.mac])
        .args(one_queue)
        .args(["netns", b.netns.name()]))?;
    for end in ends {
        run(end.netns.ip().args(["link", "set", "dev", end.ifname, "up"]))?;
    }
    Ok(())
}
