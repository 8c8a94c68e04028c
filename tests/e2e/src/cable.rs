//! A cable between the netdevs of two hosts that may keep frames to itself: what a NIC does that
//! swallows PFC on its way out or filters it on its way in, seen from both ends.

use crate::lab::daemon::inside;
use crate::netns::{Netns, HOST_IFNAME};
use crate::LabError;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{
    bind, recv, send, socket, AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Which way a frame goes: from the first host's end to the second's, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the first to the second.
    There,
    /// From the second to the first.
    Back,
}

/// A running cable. Dropping it cuts it.
#[derive(Debug)]
pub struct Cable {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Cable {
    /// Joins two hosts' netdevs; frames that `keeps` says yes to don't arrive.
    ///
    /// # Errors
    /// [`LabError::File`] if a packet socket can't be opened.
    pub fn join(
        one: &Netns,
        other: &Netns,
        keeps: impl Fn(Way, &[u8]) -> bool + Send + 'static,
    ) -> Result<Self, LabError> {
        let ends = [end(one)?, end(other)?];
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let carry = move || {
            while !stopped.load(Ordering::Relaxed) {
                let mut polled =
                    ends.each_ref().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN));
                // Whatever it says, the sockets are looked at without waiting.
                let _ = poll(&mut polled, PollTimeout::from(20u8));
                carry_all(&ends[0], &ends[1], |frame| keeps(Way::There, frame));
                carry_all(&ends[1], &ends[0], |frame| keeps(Way::Back, frame));
            }
        };
        Ok(Self { stop, thread: Some(std::thread::spawn(carry)) })
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A cable whose thread has panicked carries nothing: the test fails by that.
            let _ = thread.join();
        }
    }
}

/// Takes what came at one end to the other. What can't be sent is lost, as on a wire.
fn carry_all(from: &OwnedFd, to: &OwnedFd, keeps: impl Fn(&[u8]) -> bool) {
    let mut bytes = [0; 9216];
    while let Ok(len) = recv(from.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) {
        let frame = &bytes[..len];
        if !keeps(frame) {
            let _ = send(to.as_raw_fd(), frame, MsgFlags::empty());
        }
    }
}

/// A packet socket of all frames on a host's netdev. It doesn't see what it sends itself.
fn end(host: &Netns) -> Result<OwnedFd, LabError> {
    let failed = |errno: Errno| LabError::File {
        path: PathBuf::from(format!("packet socket of {}", host.name())),
        source: io::Error::from(errno),
    };
    inside(host.name(), || {
        let address = netdev().map_err(failed)?.ok_or_else(|| failed(Errno::ENODEV))?;
        let (packet, raw) = (AddressFamily::Packet, SockType::Raw);
        let fd = socket(packet, raw, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll);
        let fd = fd.map_err(failed)?;
        bind(fd.as_raw_fd(), &address).map_err(failed)?;
        Ok(fd)
    })
}

fn netdev() -> Result<Option<LinkAddr>, Errno> {
    let mut devices = getifaddrs()?.filter(|device| device.interface_name == HOST_IFNAME);
    Ok(devices.find_map(|device| device.address?.as_link_addr().copied()))
}
