//! A netdev as it is now, while the switch runs on it: somebody may have changed what bring-up had
//! put right. Nothing is changed.

use crate::bring_up::{OFF_AT_PEER, OFF_AT_PORT};
use crate::error::XskError;
use crate::ethtool::{Channels, Ethtool};
use crate::netns::{Netns, NetnsHandle};
use crate::open::netdev;
use crate::peer;
use crate::rtnetlink::Netdev;
use std::io;

/// What a netdev's settings are now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The driver's name; empty where it doesn't say.
    pub driver: String,
    /// Offloads that are on and that a port must not have, by the names of `ethtool -k`.
    pub offloads: Vec<String>,
    /// RX queues that frames can come in on.
    pub channels: u32,
    /// The link's speed, Mbit/s, where the driver says one.
    pub megabits: Option<u32>,
    /// The other end, if this is a veth.
    pub peer: Option<InspectedPeer>,
}

/// The other end of a veth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InspectedPeer {
    /// It can't be reached from here.
    OutOfReach,
    /// Offloads that are on and that a peer must not have.
    Offloads(Vec<String>),
}

/// Reads the settings of a netdev and of its veth peer. The kernel may hold whoever asks while a
/// netdev is being removed: ask on a thread that may wait.
///
/// # Errors
/// [`XskError::Netns`] and [`XskError::NoDevice`]; [`XskError::Link`] if ethtool can't be asked.
pub fn inspect(netns: &Netns, ifname: &str) -> Result<Inspection, XskError> {
    let port = format!("{netns}/{ifname}");
    let netns = netns.open()?;
    let dev = netdev(&port, &netns, ifname)?;
    let failed = |source| XskError::Link { port: port.clone(), step: "ask ethtool", source };
    let mut found = netns.run(|| at_port(&dev))?.map_err(failed)?;
    found.peer = dev.veth.then(|| at_peer(&netns, &dev));
    Ok(found)
}

fn at_port(dev: &Netdev) -> io::Result<Inspection> {
    let ethtool = Ethtool::open(&dev.name)?;
    Ok(Inspection {
        driver: ethtool.driver().unwrap_or_default(),
        offloads: on(&ethtool, &OFF_AT_PORT)?,
        // A netdev without channels has one queue.
        channels: ethtool.channels().map_or(1, Channels::receiving),
        megabits: ethtool.speed().ok().flatten(),
        peer: None,
    })
}

fn at_peer(netns: &NetnsHandle, dev: &Netdev) -> InspectedPeer {
    let Some((there, peer)) = peer::find(netns, dev) else { return InspectedPeer::OutOfReach };
    let work = || Ethtool::open(&peer.name).and_then(|ethtool| on(&ethtool, &OFF_AT_PEER));
    match there.run(work) {
        Ok(Ok(offloads)) => InspectedPeer::Offloads(offloads),
        _ => InspectedPeer::OutOfReach,
    }
}

/// Those of these offloads that are on, whether they can be switched or not.
fn on(ethtool: &Ethtool, names: &[&str]) -> io::Result<Vec<String>> {
    let on = ethtool.features()?.into_iter().filter(|feature| feature.active);
    Ok(on.map(|feature| feature.name).filter(|name| names.contains(&name.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_inspected_and_a_missing_netdev_named() {
        let lo = inspect(&Netns::Own, "lo").unwrap();
        assert!(lo.peer.is_none() && lo.channels > 0, "{lo:?}");
        let error = inspect(&Netns::Own, "no-such-netdev").unwrap_err();
        assert!(error.to_string().contains("own/no-such-netdev: no such netdev"), "{error}");
    }
}
