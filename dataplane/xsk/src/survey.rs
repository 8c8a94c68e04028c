//! What `holdfast-dataplane --doctor` has to know: what this process may do, and what a netdev is.
//! Nothing is changed; what is made to try is closed at once.

use crate::bring_up::{OFF_AT_PEER, OFF_AT_PORT};
use crate::error::XskError;
use crate::ethtool::{Ethtool, Feature};
use crate::netns::{Netns, NetnsHandle};
use crate::open::netdev;
use crate::peer;
use crate::rtnetlink::Netdev;
use libbpf_rs::{MapType, ProgramType};
use nix::libc;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Makes an AF_XDP socket and closes it.
///
/// # Errors
/// What the kernel says: `EPERM` without CAP_NET_RAW, `EAFNOSUPPORT` without `CONFIG_XDP_SOCKETS`.
pub fn probe_socket() -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open and nobody else's; it is closed here.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

/// Loads a trivial XDP program and makes a map of AF_XDP sockets, and lets go of both: whether
/// the kernel, its policy and a container's filter let this process do that.
///
/// # Errors
/// What libbpf says where it couldn't try.
pub fn probe_bpf() -> Result<bool, String> {
    let tried = |result: libbpf_rs::Result<bool>| result.map_err(|error| error.to_string());
    Ok(tried(ProgramType::Xdp.is_supported())? && tried(MapType::Xskmap.is_supported())?)
}

/// A netdev as bring-up would find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The driver's name; empty where it doesn't say.
    pub driver: String,
    /// MTU, bytes.
    pub mtu: u32,
    /// Administratively up.
    pub admin_up: bool,
    /// With a carrier as well.
    pub up: bool,
    /// The link's speed, Mbit/s, where the driver knows it.
    pub megabits: Option<u32>,
    /// Offloads that bring-up switches off.
    pub will_switch_off: Vec<String>,
    /// Offloads that ought to be off and can't be.
    pub stays_on: Vec<String>,
    /// Whether 802.3x pause is on, which bring-up switches off.
    pub link_pause: bool,
    /// The other end, if this is a veth.
    pub peer: Option<SurveyedPeer>,
}

/// The other end of a veth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SurveyedPeer {
    /// It can't be reached from here.
    OutOfReach,
    /// Offloads that bring-up switches off there.
    WillSwitchOff(Vec<String>),
}

/// Looks at a netdev and changes nothing.
///
/// # Errors
/// [`XskError::Netns`] and [`XskError::NoDevice`]; [`XskError::Link`] if ethtool can't be asked.
pub fn survey(netns: &Netns, ifname: &str) -> Result<Survey, XskError> {
    let port = format!("{netns}/{ifname}");
    let netns = netns.open()?;
    let dev = netdev(&port, &netns, ifname)?;
    let failed = |source| XskError::Link { port: port.clone(), step: "ask ethtool", source };
    netns.run(|| at_port(&dev))?.map_err(failed).map(|mut found| {
        found.peer = dev.veth.then(|| at_peer(&netns, &dev));
        found
    })
}

fn at_port(dev: &Netdev) -> io::Result<Survey> {
    let ethtool = Ethtool::open(&dev.name)?;
    let (will_switch_off, stays_on) = wrong(&ethtool, &OFF_AT_PORT);
    Ok(Survey {
        driver: ethtool.driver().unwrap_or_default(),
        mtu: dev.mtu,
        admin_up: dev.admin_up,
        up: dev.up,
        megabits: ethtool.speed().ok().flatten(),
        will_switch_off,
        stays_on,
        link_pause: ethtool.pause().is_ok_and(|pause| pause.autoneg || pause.rx || pause.tx),
        peer: None,
    })
}

fn at_peer(netns: &NetnsHandle, dev: &Netdev) -> SurveyedPeer {
    let Some((there, peer)) = peer::find(netns, dev) else { return SurveyedPeer::OutOfReach };
    let work = || Ethtool::open(&peer.name).map(|ethtool| wrong(&ethtool, &OFF_AT_PEER).0);
    match there.run(work) {
        Ok(Ok(names)) => SurveyedPeer::WillSwitchOff(names),
        _ => SurveyedPeer::OutOfReach,
    }
}

/// Offloads of these that are on: those that can be switched, and those that can't.
fn wrong(ethtool: &Ethtool, names: &[&str]) -> (Vec<String>, Vec<String>) {
    let features = ethtool.features().unwrap_or_default();
    let on = features.into_iter().filter(|f| f.active && names.contains(&f.name.as_str()));
    let (can, fixed): (Vec<Feature>, Vec<Feature>) = on.partition(|feature| feature.available);
    let text = |features: Vec<Feature>| features.into_iter().map(|f| f.name).collect();
    (text(can), text(fixed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_surveyed_and_a_missing_netdev_named() {
        let lo = survey(&Netns::Own, "lo").unwrap();
        assert!(lo.mtu > 0 && lo.peer.is_none(), "{lo:?}");
        let error = survey(&Netns::Own, "no-such-netdev").unwrap_err();
        assert!(error.to_string().contains("own/no-such-netdev: no such netdev"), "{error}");
    }
}
