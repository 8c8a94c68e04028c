//! Opens a port: namespace, link, program, sockets, in this order, undone in reverse on failure.

use crate::bring_up::{BringUp, Change, Wanted};
use crate::error::XskError;
use crate::ethtool::{Channels, Ethtool};
use crate::link::LinkState;
use crate::link_watch::{LinkEvent, LinkWatch};
use crate::loader::{self, Attached, Loaded, LosslessMap, LosslessWriter, XdpMode, XdpPreference};
use crate::memory::Memory;
use crate::netns::{inode, Netns, NetnsHandle, NetnsMark};
use crate::port::XskPort;
use crate::rtnetlink::{Netdev, Rtnetlink, Which};
use crate::sizing::{RingSizes, SHARED_RING};
use crate::socket::{Step, XskSocket, UNUSED_RING};
use crate::undo::UndoLog;
use holdfast_core::link_errors::LinkErrors;
use holdfast_wire::MacAddr;
use nix::libc;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Largest MTU whose frames fit one page beside what the kernel keeps there (facts of veth).
pub const ONE_PAGE_MTU: u32 = 3498;
/// How long a queue stays busy after its socket was closed, at most, and how often to try.
pub(crate) const BUSY_TRIES: u32 = 40;
pub(crate) const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Whether frames are copied between the driver and our memory. All ports share one registration
/// of the memory and with it one mode, which is copy: see the crate's README.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyPreference {
    /// Zero-copy where it can be had, else copy (SPEC 9): copy today.
    #[default]
    Auto,
    /// Copy.
    Copy,
    /// Zero-copy or not at all: refused by [`XskError::ZeroCopy`].
    ZeroCopy,
}

/// What a port is to be.
#[derive(Clone, Debug, Default)]
pub struct PortConfig {
    /// Where its netdev is.
    pub netns: Netns,
    /// Its netdev's name there.
    pub ifname: String,
    /// RX queues to bind, `None` for those that the netdev has.
    pub queues: Option<u32>,
    /// Entries of its rings.
    pub rings: RingSizes,
    /// The MTU to set, `None` to leave it.
    pub mtu: Option<u32>,
    /// Where the XDP program may run.
    pub xdp: XdpPreference,
    /// Whether zero-copy may be used.
    pub copy: CopyPreference,
    /// Which frames the XDP program spares under `rx_pressure`.
    pub lossless: LosslessMap,
    /// Where it is noted what will have to be put back.
    pub undo: UndoLog,
}

/// What a port has become: for `show ports`.
#[derive(Clone, Debug)]
pub struct PortStatus {
    /// Its netdev's name.
    pub ifname: String,
    /// Its netdev's index in its namespace.
    pub ifindex: u32,
    /// The driver.
    pub driver: String,
    /// Where the XDP program runs.
    pub xdp: XdpMode,
    /// Whether frames go without a copy between driver and memory: never today.
    pub zero_copy: bool,
    /// Whether frames longer than a page are carried.
    pub jumbo: bool,
    /// RX queues that are bound.
    pub queues: u32,
    /// The MTU at the time of opening.
    pub mtu: u32,
    /// The MAC address: source of its PFC frames.
    pub mac: MacAddr,
    /// Ring sizes.
    pub rings: RingSizes,
    /// What bring-up changed, here and at a veth peer.
    pub changes: Vec<Change>,
    /// What isn't as it should be, and what to do.
    pub notes: Vec<String>,
}

/// What the control side keeps of a port. Dropping it detaches the XDP program and puts the
/// link's settings back; the port's worker closes the [`XskPort`] before.
pub struct PortGuard {
    status: PortStatus,
    attached: Option<Attached>,
    bring_up: BringUp,
    lossless: LosslessWriter,
    watch: LinkWatch,
    link: Arc<LinkState>,
    /// The namespace, if it can be deleted: not the process's own.
    netns: Option<NetnsMark>,
}

impl PortGuard {
    /// What the port has become.
    pub fn status(&self) -> &PortStatus {
        &self.status
    }

    /// Readable when there is news of the link: see [`PortGuard::take_link_events`].
    pub fn link_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    /// Takes the news of the link, which the worker sees by `is_up` from now on.
    pub fn take_link_events(&mut self) -> Vec<LinkEvent> {
        let events = self.watch.take();
        tell_worker(&self.link, &events);
        events
    }

    /// Errors of the link since the port was opened, and what the kernel sends no news of, asked of
    /// the kernel: it may take the time of a system call that waits for others, so no worker may
    /// ask.
    ///
    /// # Errors
    /// [`XskError::Link`], where the netdev is gone.
    pub fn look(&mut self) -> Result<(&LinkErrors, Vec<LinkEvent>), XskError> {
        let (errors, events) = self.watch.look().map_err(|source| XskError::Link {
            port: self.status.ifname.clone(),
            step: "read its errors",
            source,
        })?;
        tell_worker(&self.link, &events);
        Ok((errors, events))
    }

    /// [`LinkEvent::NetnsGone`], if the name or path by which the namespace was opened leads to it
    /// no more. As long as the port is open the namespace can't go, nor the netdev in it.
    pub fn look_at_netns(&mut self) -> Option<LinkEvent> {
        let is_there = |mark: &NetnsMark| inode(Path::new(&mark.path)) == Some(mark.inode);
        if self.netns.as_ref().is_none_or(is_there) {
            return None;
        }
        tell_worker(&self.link, &[LinkEvent::NetnsGone]);
        Some(LinkEvent::NetnsGone)
    }

    /// Whether the link is usable.
    pub fn link(&self) -> &Arc<LinkState> {
        &self.link
    }

    /// Tells the XDP program which frames are lossless: after a profile change.
    pub const fn lossless(&self) -> &LosslessWriter {
        &self.lossless
    }

    /// Detaches the XDP program and puts the link's settings back.
    pub fn restore(&mut self) {
        self.attached = None;
        self.bring_up.restore();
    }
}

/// What a worker sees of the news: whether it may use the link.
fn tell_worker(link: &LinkState, events: &[LinkEvent]) {
    for event in events {
        match event {
            LinkEvent::Up(up) => link.set_up(*up),
            LinkEvent::Gone | LinkEvent::NetnsGone => link.set_gone(),
            LinkEvent::Mtu(_)
            | LinkEvent::Queues(_)
            | LinkEvent::ProgramGone
            | LinkEvent::Missed => {}
        }
    }
}

impl Drop for PortGuard {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Opens a port. Its fill ring is empty and no frame comes in before the first `refill`.
///
/// # Errors
/// [`XskError`], with what to do; nothing stays changed then.
pub fn open_port(memory: &Memory, config: &PortConfig) -> Result<(XskPort, PortGuard), XskError> {
    let port = format!("{}/{}", config.netns, config.ifname);
    config.rings.check(&port)?;
    if config.copy == CopyPreference::ZeroCopy {
        return Err(XskError::ZeroCopy { port });
    }
    let netns = config.netns.open()?;
    let before = netdev(&port, &netns, &config.ifname)?;
    let wanted = Wanted { queues: config.queues, mtu: config.mtu };
    let bring_up = BringUp::start(&port, &netns, &before, wanted, config.undo.clone())?;
    let dev = netdev(&port, &netns, &config.ifname)?;
    let loaded = loader::load(&port)?;
    let bound = netns.run(|| bind_all(memory, config, &port, &dev, bring_up.queues, &loaded))??;
    let Bound { attached, sockets, watch, multi } = bound;
    let Loaded { port: port_maps, lossless, .. } = loaded;
    lossless.set(config.lossless).map_err(|source| XskError::Link {
        port: port.clone(),
        step: "tell the XDP program what is lossless",
        source,
    })?;
    let Some(reserved) = memory.0.take_control() else {
        let slots = crate::sizing::CONTROL_CHUNKS;
        return Err(XskError::ControlSlots { port, slots });
    };
    let link = Arc::new(LinkState::new(watch.is_up()));
    let rings = (config.rings.rx, config.rings.tx);
    let xsk = XskPort::new(memory, sockets, rings, reserved, Arc::clone(&link), port_maps);
    let notes = bring_up.notes.iter().cloned().chain(attached.note.clone()).collect();
    let status = PortStatus {
        ifname: dev.name,
        ifindex: dev.index,
        driver: bring_up.driver.clone(),
        xdp: attached.mode,
        zero_copy: false,
        jumbo: multi,
        queues: bring_up.queues,
        mtu: dev.mtu,
        mac: dev.mac,
        rings: RingSizes { fill: SHARED_RING, completion: SHARED_RING, ..config.rings },
        changes: bring_up.changes.clone(),
        notes,
    };
    let attached = Some(attached);
    let own = config.netns == Netns::Own;
    let mark = (!own).then(|| netns.mark());
    Ok((xsk, PortGuard { status, attached, bring_up, lossless, watch, link, netns: mark }))
}

/// What a netdev is before anything is done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its MTU.
    pub mtu: u32,
    /// The RX queues it has.
    pub queues: u32,
    /// The RX queues it can be made to have.
    pub most_queues: u32,
    /// Whether it is administratively up.
    pub admin_up: bool,
}

/// Looks at a netdev and changes nothing.
///
/// # Errors
/// [`XskError::Netns`] and [`XskError::NoDevice`]; [`XskError::Link`] if ethtool can't be asked.
pub fn look(netns: &Netns, ifname: &str) -> Result<Seen, XskError> {
    let port = format!("{netns}/{ifname}");
    let netns = netns.open()?;
    let dev = netdev(&port, &netns, ifname)?;
    let failed = |source| XskError::Link { port: port.clone(), step: "ask ethtool", source };
    let ethtool = netns.run(|| Ethtool::open(ifname))?.map_err(failed)?;
    // A netdev without channels has one queue.
    let channels = netns.run(|| ethtool.channels())?.ok();
    let queues = channels.map_or(1, Channels::receiving);
    let most_queues =
        channels.map_or(1, |now| queues.max(now.rx + now.max_combined).max(now.max_rx));
    Ok(Seen { mtu: dev.mtu, queues, most_queues, admin_up: dev.admin_up })
}

pub(crate) fn netdev(port: &str, netns: &NetnsHandle, ifname: &str) -> Result<Netdev, XskError> {
    let found = netns.run(|| Rtnetlink::open()?.netdev(Which::Name(ifname)))?;
    found.map_err(|source| XskError::NoDevice { port: port.to_owned(), source })
}

/// What was made inside the port's namespace.
struct Bound {
    attached: Attached,
    sockets: Vec<XskSocket>,
    watch: LinkWatch,
    multi: bool,
}

fn bind_all(
    memory: &Memory,
    config: &PortConfig,
    port: &str,
    dev: &Netdev,
    queues: u32,
    loaded: &Loaded,
) -> Result<Bound, XskError> {
    let mut watch = LinkWatch::subscribe(port, dev.index)?;
    let attached = loader::attach(loaded, port, dev.index, config.xdp)?;
    watch.expect_program().map_err(|source| XskError::Link {
        port: port.to_owned(),
        step: "look at its XDP program",
        source,
    })?;
    let multi = memory.0.fragments() && loaded.frags;
    if dev.mtu > ONE_PAGE_MTU && !multi {
        // Linux before 6.6 has no frames of several fragments.
        let source = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        return Err(XskError::Mtu { port: port.to_owned(), mtu: dev.mtu, source });
    }
    let RingSizes { rx, tx, .. } = config.rings;
    let sockets = (0..queues)
        .map(|queue| {
            // Only the first one sends.
            let tx = if queue == 0 { tx } else { UNUSED_RING };
            bind_queue(memory, port, &dev.name, queue, (rx, tx))
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Bound { attached, sockets, watch, multi })
}

fn bind_queue(
    memory: &Memory,
    port: &str,
    ifname: &str,
    queue: u32,
    rings: (u32, u32),
) -> Result<XskSocket, XskError> {
    let mut tries = 0;
    loop {
        match XskSocket::share(memory.0.umem(), ifname, queue, rings) {
            Ok(socket) => return Ok(socket),
            // A queue stays taken for a while after its last socket was closed.
            Err(Step(_, e)) if is_busy(&e) && tries < BUSY_TRIES => {
                tries += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            Err(Step(_, e)) if is_busy(&e) => {
                return Err(XskError::SecondInstance { port: port.to_owned(), id: 0 });
            }
            Err(Step(step, source)) => {
                return Err(XskError::Socket { port: port.to_owned(), queue, step, source });
            }
        }
    }
}

fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBUSY)
}
