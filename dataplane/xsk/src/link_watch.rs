//! News of a port's netdev: link down and up, MTU changed, gone; and the errors of its link.

use crate::error::XskError;
use crate::ethtool::{Channels, Ethtool};
use crate::rtnetlink::{messages, Netdev, Rtnetlink, Which};
use holdfast_core::link_errors::LinkErrors;
use netlink_packet_core::NetlinkPayload;
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{protocols::NETLINK_ROUTE, Socket, SocketAddr};
use nix::libc;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// What happened to a netdev.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The link came up or went down.
    Up(bool),
    /// The MTU is another one now.
    Mtu(u32),
    /// The netdev was deleted or moved to another namespace.
    Gone,
    /// The network namespace was deleted: its name is gone, or that of another one now.
    NetnsGone,
    /// The number of RX queues is another one now.
    Queues(u32),
    /// The XDP program was detached, or replaced by another one.
    ProgramGone,
    /// News were lost because they weren't taken in time; the next look finds out what they were.
    Missed,
}

/// A subscription to the news of one netdev. Readable when there are some.
pub(crate) struct LinkWatch {
    socket: Socket,
    /// For questions, in the same namespace.
    asking: Rtnetlink,
    errors: LinkErrors,
    ifindex: u32,
    up: bool,
    mtu: u32,
    /// News were lost since it was looked at last.
    missed: bool,
    /// RX queues, where the netdev says so.
    queues: Option<u32>,
    ethtool: Ethtool,
    /// The id of the XDP program that was attached last by us; `None` before.
    program: Option<u32>,
}

impl LinkWatch {
    /// Subscribes in the calling thread's namespace; the socket stays in it. The netdev is looked
    /// at afterwards, so that no change falls in between.
    pub(crate) fn subscribe(port: &str, ifindex: u32) -> Result<Self, XskError> {
        let open = || -> io::Result<Self> {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind(&SocketAddr::new(0, libc::RTMGRP_LINK as u32))?;
            socket.set_non_blocking(true)?;
            let asking = Rtnetlink::open()?;
            let dev = asking.netdev(Which::Index(ifindex))?;
            let errors = LinkErrors::since(asking.state(ifindex)?.errors);
            let ethtool = Ethtool::open(&dev.name)?;
            let queues = ethtool.channels().ok().map(Channels::receiving);
            Ok(Self {
                socket,
                asking,
                errors,
                ifindex,
                up: dev.up,
                mtu: dev.mtu,
                missed: false,
                queues,
                ethtool,
                program: None,
            })
        };
        open().map_err(|source| XskError::Link {
            port: port.to_owned(),
            step: "subscribe to link news",
            source,
        })
    }

    /// Whether the link was up by the latest news.
    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    /// Remembers the XDP program that is attached now.
    pub(crate) fn expect_program(&mut self) -> io::Result<()> {
        self.program = self.asking.state(self.ifindex)?.program;
        Ok(())
    }

    /// Asks the kernel for what it sends no news of: the errors of the link since it was subscribed
    /// to, and what of it isn't as it was any more.
    pub(crate) fn look(&mut self) -> io::Result<(&LinkErrors, Vec<LinkEvent>)> {
        let mut events = Vec::new();
        let state = match self.asking.state(self.ifindex) {
            Err(error) if self.missed && error.raw_os_error() == Some(libc::ENODEV) => {
                return Ok((&self.errors, vec![LinkEvent::Gone]));
            }
            state => state?,
        };
        self.errors.follow(state.errors);
        if std::mem::take(&mut self.missed) {
            self.compare(state.up, state.mtu, &mut events);
        }
        if state.program != self.program {
            self.program = state.program;
            events.push(LinkEvent::ProgramGone);
        }
        let queues = self.ethtool.channels().ok().map(Channels::receiving);
        if let Some(now) = queues.filter(|_| queues != self.queues) {
            self.queues = queues;
            events.push(LinkEvent::Queues(now));
        }
        Ok((&self.errors, events))
    }

    /// Takes all news; never blocks. Only changes are reported.
    pub(crate) fn take(&mut self) -> Vec<LinkEvent> {
        let mut events = Vec::new();
        loop {
            match self.socket.recv_from_full() {
                Ok((datagram, _)) => {
                    for message in messages(&datagram).flatten() {
                        self.digest(message.payload, &mut events);
                    }
                }
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => {
                    self.missed = true;
                    events.push(LinkEvent::Missed);
                }
                Err(_) => return events,
            }
        }
    }

    fn digest(
        &mut self,
        payload: NetlinkPayload<RouteNetlinkMessage>,
        events: &mut Vec<LinkEvent>,
    ) {
        let NetlinkPayload::InnerMessage(message) = payload else { return };
        // A bridge speaks of its ports in messages of another family.
        let ours = |link: &LinkMessage| {
            link.header.index == self.ifindex
                && link.header.interface_family == AddressFamily::Unspec
        };
        match message {
            RouteNetlinkMessage::DelLink(link) if ours(&link) => {
                events.push(LinkEvent::Gone);
            }
            RouteNetlinkMessage::NewLink(link) if ours(&link) => {
                let Some(dev) = Netdev::from_message(&link) else { return };
                self.compare(dev.up, dev.mtu, events);
            }
            _ => {}
        }
    }

    /// Says what is another way than it was.
    fn compare(&mut self, up: bool, mtu: u32, events: &mut Vec<LinkEvent>) {
        if up != self.up {
            self.up = up;
            events.push(LinkEvent::Up(up));
        }
        if mtu != self.mtu && mtu != 0 {
            self.mtu = mtu;
            events.push(LinkEvent::Mtu(mtu));
        }
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket is open as long as `self`, which the result borrows.
        unsafe { BorrowedFd::borrow_raw(self.socket.as_raw_fd()) }
    }
}
