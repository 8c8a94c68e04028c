//! Puts a netdev right for lossless forwarding, says what it changed, and puts it back (SPEC 9).

use crate::error::XskError;
use crate::ethtool::{Channels, Ethtool, Feature, Pause};
use crate::netns::NetnsHandle;
use crate::peer;
use crate::rtnetlink::{Netdev, Rtnetlink};
use crate::undo::{Known, NetdevMark, Original, Setting, UndoLog};
use nix::libc;
use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Offloads that change frames between the wire and the XDP program: a tag that is taken out, or
/// several frames glued into one.
pub(crate) const OFF_AT_PORT: [&str; 9] = [
    "rx-vlan-hw-parse",
    "rx-vlan-stag-hw-parse",
    "tx-vlan-hw-insert",
    "tx-vlan-stag-hw-insert",
    "rx-lro",
    "rx-gro",
    "rx-gro-hw",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
];

/// Offloads of a veth peer that leave work to hardware which isn't there: its checksums would
/// stay blank, its tags beside the frame, its large segments uncut.
pub(crate) const OFF_AT_PEER: [&str; 7] = [
    "tx-checksum-ipv4",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv6",
    "tx-checksum-fcoe-crc",
    "tx-checksum-sctp",
    "tx-vlan-hw-insert",
    "tx-vlan-stag-hw-insert",
];

/// One thing that bring-up changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The netdev, with its namespace.
    pub device: String,
    /// The setting, as `ethtool` or `ip` name it.
    pub what: String,
    /// What it was.
    pub from: String,
    /// What it is now.
    pub to: String,
}

/// What was done to a port and its peer; undone when dropped.
pub(crate) struct BringUp {
    done: Vec<Original>,
    log: UndoLog,
    pub(crate) changes: Vec<Change>,
    pub(crate) notes: Vec<String>,
    pub(crate) driver: String,
    /// RX queues to bind.
    pub(crate) queues: u32,
    /// Keeps the netdev promiscuous; the kernel ends it with the socket, however that closes.
    promiscuous: Option<OwnedFd>,
    /// Descriptors that [`Self::restore`] gives back and uses: a process that has no more of them
    /// can put its links back all the same.
    reserve: Vec<File>,
}

/// Descriptors that are open at once while a setting is put back: its namespace, rtnetlink,
/// ethtool; or where that is looked for, two folders, the namespace and a socket.
const RESERVE: usize = 4;

/// What the config asks of a netdev.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) queues: Option<u32>,
    pub(crate) mtu: Option<u32>,
}

impl BringUp {
    /// Puts a netdev right.
    pub(crate) fn start(
        port: &str,
        netns: &NetnsHandle,
        dev: &Netdev,
        wanted: Wanted,
        log: UndoLog,
    ) -> Result<Self, XskError> {
        let mut up = Self {
            done: Vec::new(),
            log,
            changes: Vec::new(),
            notes: Vec::new(),
            driver: String::new(),
            queues: wanted.queues.unwrap_or(1),
            promiscuous: None,
            reserve: reserve().map_err(|source| XskError::Link {
                port: port.to_owned(),
                step: "keep descriptors to put it back with",
                source,
            })?,
        };
        netns.run(|| up.at_port(port, netns, dev, wanted))??;
        if dev.veth {
            up.at_peer(netns, dev);
        }
        Ok(up)
    }

    fn at_port(
        &mut self,
        port: &str,
        netns: &NetnsHandle,
        dev: &Netdev,
        wanted: Wanted,
    ) -> Result<(), XskError> {
        let failed = |step| {
            let port = port.to_owned();
            move |source| XskError::Link { port, step, source }
        };
        let netlink = Rtnetlink::open().map_err(failed("ask rtnetlink"))?;
        let ethtool = Ethtool::open(&dev.name).map_err(failed("ask ethtool"))?;
        self.driver = ethtool.driver().unwrap_or_default();
        self.set_mtu(port, netns, dev, wanted.mtu, &netlink)?;
        self.set_queues(port, netns, dev, wanted.queues, &ethtool)?;
        self.switch_off(netns, dev, &ethtool, &OFF_AT_PORT);
        self.end_autoneg(netns, dev, &ethtool);
        if !dev.admin_up {
            let shown = ("link", "down".to_owned(), "up".to_owned());
            self.change(netns, dev, Setting::AdminDown, shown, || netlink.set_up(dev.index, true))
                .map_err(failed("set the link up"))?;
        }
        self.promiscuous =
            Some(promiscuous(dev.index).map_err(failed("make the netdev promiscuous"))?);
        Ok(())
    }

    /// Frames of a host behind a veth must come with checksums and tags in them.
    fn at_peer(&mut self, netns: &NetnsHandle, dev: &Netdev) {
        let Some((there, peer)) = peer::find(netns, dev) else {
            self.notes.push(format!(
                "the veth peer of {} can't be reached: \
                 switch tx and txvlan off there by ethtool -K",
                dev.name
            ));
            return;
        };
        let work = || {
            let ethtool = Ethtool::open(&peer.name)?;
            self.switch_off(&there, &peer, &ethtool, &OFF_AT_PEER);
            Ok::<(), io::Error>(())
        };
        let result = there.run(work).map_err(|e| e.to_string());
        if let Err(e) = result.and_then(|done| done.map_err(|e| e.to_string())) {
            self.notes.push(format!("offloads of the veth peer {}: {e}", peer.name));
        }
    }

    /// Changes one setting; `was` is in the log before. `shown` is its name, its old value and the
    /// new one.
    fn change(
        &mut self,
        netns: &NetnsHandle,
        dev: &Netdev,
        was: Setting,
        (what, from, to): (&str, String, String),
        work: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let original = Original { netdev: NetdevMark::new(netns, dev), was };
        self.log.add(std::slice::from_ref(&original));
        if let Err(error) = work() {
            self.log.remove(&[original]);
            return Err(error);
        }
        self.done.push(original);
        let device = format!("{}/{}", netns.name(), dev.name);
        self.changes.push(Change { device, what: what.to_owned(), from, to });
        Ok(())
    }

    fn set_mtu(
        &mut self,
        port: &str,
        netns: &NetnsHandle,
        dev: &Netdev,
        wanted: Option<u32>,
        netlink: &Rtnetlink,
    ) -> Result<(), XskError> {
        let Some(mtu) = wanted.filter(|mtu| *mtu != dev.mtu) else {
            return Ok(());
        };
        let port = port.to_owned();
        let shown = ("mtu", dev.mtu.to_string(), mtu.to_string());
        self.change(netns, dev, Setting::Mtu(dev.mtu), shown, || netlink.set_mtu(dev.index, mtu))
            .map_err(|source| XskError::Mtu { port, mtu, source })
    }

    /// Brings the number of RX queues to the number that will be bound. RSS follows it.
    fn set_queues(
        &mut self,
        port: &str,
        netns: &NetnsHandle,
        dev: &Netdev,
        wanted: Option<u32>,
        ethtool: &Ethtool,
    ) -> Result<(), XskError> {
        let Ok(now) = ethtool.channels() else {
            // A netdev without channels has one queue.
            return match wanted {
                Some(asked) if asked != 1 => {
                    Err(XskError::Queues { port: port.to_owned(), asked, present: 1 })
                }
                _ => Ok(()),
            };
        };
        let present = now.receiving();
        let asked = wanted.unwrap_or(present);
        self.queues = asked;
        if asked == present {
            return Ok(());
        }
        let want = if now.max_combined > 0 {
            Channels { combined: asked.saturating_sub(now.rx), ..now }
        } else {
            Channels { rx: asked, ..now }
        };
        let shown = ("channels", present.to_string(), asked.to_string());
        let set = || ethtool.set_channels(want);
        match self.change(netns, dev, Setting::channels(now), shown, set) {
            Ok(()) => {}
            Err(_) if asked == 0 || asked > present => {
                return Err(XskError::Queues { port: port.to_owned(), asked, present });
            }
            Err(e) => self.notes.push(format!(
                "{present} RX queues, {asked} bound, and the rest can't be removed ({e}): \
                 frames on it are left to the kernel"
            )),
        }
        Ok(())
    }

    /// Switches offloads off; says so where one stays on.
    fn switch_off(&mut self, netns: &NetnsHandle, dev: &Netdev, ethtool: &Ethtool, names: &[&str]) {
        let on = |features: Vec<Feature>| -> Vec<Feature> {
            let wrong = |f: &Feature| f.active && names.contains(&f.name.as_str());
            features.into_iter().filter(wrong).collect()
        };
        let Ok(features) = ethtool.features() else {
            self.notes.push(format!("{}: offloads can't be read", dev.name));
            return;
        };
        let (switchable, fixed): (Vec<_>, Vec<_>) =
            on(features).into_iter().partition(|f| f.available);
        let netdev = NetdevMark::new(netns, dev);
        let original = |f: &Feature| {
            let was = Setting::Offload(f.name.clone());
            Original { netdev: netdev.clone(), was }
        };
        self.log.add(&switchable.iter().map(original).collect::<Vec<_>>());
        let result = ethtool.switch(&switchable, false);
        let still = ethtool.features().map(on).unwrap_or_default();
        let (stay, off): (Vec<_>, Vec<_>) =
            switchable.iter().partition(|one| still.iter().any(|f| f.index == one.index));
        self.log.remove(&stay.into_iter().map(original).collect::<Vec<_>>());
        for feature in off {
            self.done.push(original(feature));
            self.changes.push(Change {
                device: format!("{}/{}", netns.name(), dev.name),
                what: feature.name.clone(),
                from: "on".to_owned(),
                to: "off".to_owned(),
            });
        }
        for feature in &still {
            let why = match &result {
                Err(e) => format!(" ({e})"),
                Ok(()) if fixed.contains(feature) => " (fixed)".into(),
                Ok(()) => String::new(),
            };
            self.notes.push(format!("{}: {} stays on{why}", dev.name, feature.name));
        }
    }

    /// 802.3x by autonegotiation would let the link partner stop whole links.
    fn end_autoneg(&mut self, netns: &NetnsHandle, dev: &Netdev, ethtool: &Ethtool) {
        // Only NICs have these settings.
        let Ok(now) = ethtool.pause() else { return };
        let off = Pause { autoneg: false, rx: false, tx: false };
        if now == off {
            return;
        }
        let from = format!("autoneg {} rx {} tx {}", now.autoneg, now.rx, now.tx);
        let shown = ("pause", from, "off".to_owned());
        let set = || ethtool.set_pause(off);
        if let Err(e) = self.change(netns, dev, Setting::pause(now), shown, set) {
            self.notes.push(format!("{}: 802.3x pause stays on ({e})", dev.name));
        }
    }

    /// Puts back what was changed, last first. A netdev or namespace that is gone needs nothing.
    /// What can't be put back stays in the log.
    pub(crate) fn restore(&mut self) {
        self.promiscuous = None;
        self.reserve.clear();
        let mut back = Vec::new();
        for original in std::mem::take(&mut self.done).into_iter().rev() {
            match original.put_back(Known::ByIndex) {
                Ok(_) => back.push(original),
                Err(e) => log::warn!("{original} can't be put back: {e}"),
            }
        }
        self.log.remove(&back);
        self.changes.clear();
    }
}

impl Drop for BringUp {
    fn drop(&mut self) {
        self.restore();
    }
}

fn reserve() -> io::Result<Vec<File>> {
    (0..RESERVE).map(|_| File::open("/dev/null")).collect()
}

/// A packet socket that makes a netdev promiscuous and receives nothing itself.
fn promiscuous(ifindex: u32) -> io::Result<OwnedFd> {
    let fd = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
    let request = libc::packet_mreq {
        mr_ifindex: ifindex as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    // SAFETY: the pointer and the length are those of `request`, which the kernel only reads.
    let done = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            std::ptr::from_ref(&request).cast(),
            size_of::<libc::packet_mreq>() as libc::socklen_t,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(fd)
}
