//! Finds the other end of a veth, in whatever network namespace it is that can be reached.

use crate::netns::{inode, places, NetnsHandle};
use crate::rtnetlink::{Netdev, Rtnetlink, Which};
use std::collections::HashSet;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// The other end of `dev`, which is a veth in `netns`. `None` if it can't be reached.
pub(crate) fn find(netns: &NetnsHandle, dev: &Netdev) -> Option<(NetnsHandle, Netdev)> {
    let (index, elsewhere) = dev.peer?;
    let is_peer = |found: &Netdev| found.veth && found.peer.map(|p| p.0) == Some(dev.index);
    let Some(id) = elsewhere else {
        let peer = netdev_in(netns, index)?;
        return is_peer(&peer).then(|| (netns.clone(), peer));
    };
    candidates().into_iter().find_map(|(path, name)| {
        let other = NetnsHandle::open(&path, name).ok()?;
        let known_as = netns.run(|| Rtnetlink::open()?.namespace_id(other.as_fd())).ok()?.ok()?;
        if known_as != Some(id) {
            return None;
        }
        let peer = netdev_in(&other, index)?;
        is_peer(&peer).then_some((other, peer))
    })
}

fn netdev_in(netns: &NetnsHandle, index: u32) -> Option<Netdev> {
    netns.run(|| Rtnetlink::open()?.netdev(Which::Index(index))).ok()?.ok()
}

/// Namespaces with a name, then those of processes, each once.
fn candidates() -> Vec<(PathBuf, String)> {
    let mut seen = HashSet::new();
    let new = |(path, _): &(PathBuf, String)| inode(path).is_some_and(|inode| seen.insert(inode));
    places().filter(new).collect()
}
