//! Finds the other end of a veth, in whatever network namespace it is that can be reached.

use crate::netns::{NetnsHandle, NAMED};
use crate::rtnetlink::{Netdev, Rtnetlink, Which};
use std::collections::HashSet;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Processes that are looked at for namespaces without a name.
const PROCESS_LIMIT: usize = 65_536;

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
    let mut found = Vec::new();
    let mut add = |path: PathBuf, name: String| {
        if fs::metadata(&path).is_ok_and(|file| seen.insert(file.ino())) {
            found.push((path, name));
        }
    };
    for entry in fs::read_dir(NAMED).into_iter().flatten().flatten() {
        add(entry.path(), entry.file_name().to_string_lossy().into_owned());
    }
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten().take(PROCESS_LIMIT) {
        let name = entry.file_name();
        let process = name.to_string_lossy();
        if process.bytes().all(|byte| byte.is_ascii_digit()) {
            let path = Path::new("/proc").join(&name).join("ns/net");
            add(path.clone(), path.display().to_string());
        }
    }
    found
}
