//! What rtnetlink says about netdevs and namespaces of the calling thread's namespace.

use holdfast_core::link_errors::{KernelErrors, LinkError};
use holdfast_wire::MacAddr;
use netlink_packet_core::{
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NLM_F_ACK, NLM_F_REQUEST,
};
use netlink_packet_route::link::{
    InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, LinkXdp, Stats64,
};
use netlink_packet_route::nsid::{NsidAttribute, NsidMessage};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{protocols::NETLINK_ROUTE, Socket, SocketAddr};
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A netdev as the switch needs to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Netdev {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) mac: MacAddr,
    pub(crate) mtu: u32,
    /// Administratively up.
    pub(crate) admin_up: bool,
    /// With a carrier as well.
    pub(crate) up: bool,
    pub(crate) veth: bool,
    /// The netdev at the other end, and its namespace's id if that is another one.
    pub(crate) peer: Option<(u32, Option<i32>)>,
    pub(crate) tx_queues: u32,
}

impl Netdev {
    /// From a link message; `None` without a name.
    pub(crate) fn from_message(message: &LinkMessage) -> Option<Self> {
        let flags = message.header.flags;
        let mut dev = Self {
            index: message.header.index,
            name: String::new(),
            mac: MacAddr::default(),
            mtu: 0,
            admin_up: flags.contains(LinkFlags::Up),
            up: flags.contains(LinkFlags::Up) && flags.contains(LinkFlags::LowerUp),
            veth: false,
            peer: None,
            tx_queues: 1,
        };
        let (mut peer, mut nsid) = (None, None);
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => dev.name.clone_from(name),
                LinkAttribute::Mtu(mtu) => dev.mtu = *mtu,
                LinkAttribute::Address(mac) => {
                    dev.mac = mac.first_chunk().map_or(dev.mac, |mac| MacAddr(*mac));
                }
                LinkAttribute::Link(index) => peer = Some(*index),
                LinkAttribute::LinkNetNsId(id) => nsid = Some(*id),
                LinkAttribute::NumTxQueues(n) => dev.tx_queues = *n,
                LinkAttribute::LinkInfo(infos) => {
                    dev.veth = infos.contains(&LinkInfo::Kind(InfoKind::Veth));
                }
                _ => {}
            }
        }
        dev.peer = peer.map(|index| (index, nsid));
        (!dev.name.is_empty()).then_some(dev)
    }
}

/// What of a netdev is asked for now and then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetdevState {
    /// Its errors, as the kernel counts them.
    pub(crate) errors: KernelErrors,
    /// The id of its XDP program.
    pub(crate) program: Option<u32>,
    /// Whether its link is up, with a carrier.
    pub(crate) up: bool,
    /// Its MTU.
    pub(crate) mtu: u32,
}

/// How a netdev is named in a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which<'a> {
    Name(&'a str),
    Index(u32),
}

/// A request socket.
pub(crate) struct Rtnetlink(Socket);

impl Rtnetlink {
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self(socket))
    }

    /// Asks, and returns what came before the acknowledgement, if anything.
    fn ask(&self, message: RouteNetlinkMessage) -> io::Result<Option<RouteNetlinkMessage>> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.0.send(&bytes, 0)?;
        let mut answer = None;
        loop {
            let (received, _) = self.0.recv_from_full()?;
            for message in messages(&received) {
                match message?.payload {
                    NetlinkPayload::InnerMessage(inner) => answer = Some(inner),
                    NetlinkPayload::Error(e) if e.code.is_none() => return Ok(answer),
                    NetlinkPayload::Error(e) => return Err(e.to_io()),
                    _ => {}
                }
            }
        }
    }

    /// Looks a netdev up.
    pub(crate) fn netdev(&self, which: Which<'_>) -> io::Result<Netdev> {
        let mut message = LinkMessage::default();
        match which {
            Which::Name(name) => message.attributes.push(LinkAttribute::IfName(name.to_owned())),
            Which::Index(index) => message.header.index = index,
        }
        match self.ask(RouteNetlinkMessage::GetLink(message))? {
            Some(RouteNetlinkMessage::NewLink(link)) => Netdev::from_message(&link),
            _ => None,
        }
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
    }

    /// What a netdev's errors and its XDP program are now.
    pub(crate) fn state(&self, index: u32) -> io::Result<NetdevState> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let Some(RouteNetlinkMessage::NewLink(link)) =
            self.ask(RouteNetlinkMessage::GetLink(message))?
        else {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        };
        let stats = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(kernel_errors(stats)),
            _ => None,
        });
        let errors = stats.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        let program = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Xdp(xdp) => xdp.iter().find_map(|part| match part {
                LinkXdp::ProgId(id) => Some(*id),
                _ => None,
            }),
            _ => None,
        });
        let dev = Netdev::from_message(&link);
        let (up, mtu) = dev.map_or((false, 0), |dev| (dev.up, dev.mtu));
        Ok(NetdevState { errors, program, up, mtu })
    }

    /// Takes a netdev up or down.
    pub(crate) fn set_up(&self, index: u32, up: bool) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.change_mask = LinkFlags::Up;
        message.header.flags = if up { LinkFlags::Up } else { LinkFlags::empty() };
        self.ask(RouteNetlinkMessage::SetLink(message)).map(drop)
    }

    /// Changes the MTU.
    pub(crate) fn set_mtu(&self, index: u32, mtu: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes.push(LinkAttribute::Mtu(mtu));
        self.ask(RouteNetlinkMessage::SetLink(message)).map(drop)
    }

    /// The id by which this namespace knows another, `None` if it has given it none.
    pub(crate) fn namespace_id(&self, netns: BorrowedFd<'_>) -> io::Result<Option<i32>> {
        let mut message = NsidMessage::default();
        message.attributes.push(NsidAttribute::Fd(netns.as_raw_fd() as u32));
        let answer = self.ask(RouteNetlinkMessage::GetNsId(message))?;
        let Some(RouteNetlinkMessage::NewNsId(nsid)) = answer else {
            return Ok(None);
        };
        let id = |attribute: &NsidAttribute| match attribute {
            NsidAttribute::Id(id) if *id >= 0 => Some(*id),
            _ => None,
        };
        Ok(nsid.attributes.iter().find_map(id))
    }
}

/// In the order that `LinkError` has.
fn kernel_errors(stats: &Stats64) -> KernelErrors {
    LinkError::ALL.map(|kind| match kind {
        LinkError::RxCrc => stats.rx_crc_errors,
        LinkError::RxFrame => stats.rx_frame_errors,
        LinkError::RxLength => stats.rx_length_errors,
        LinkError::RxFifo => stats.rx_fifo_errors,
        LinkError::RxOver => stats.rx_over_errors,
        LinkError::RxMissed => stats.rx_missed_errors,
        LinkError::RxOther => stats.rx_errors,
        LinkError::TxAborted => stats.tx_aborted_errors,
        LinkError::TxCarrier => stats.tx_carrier_errors,
        LinkError::TxFifo => stats.tx_fifo_errors,
        LinkError::TxHeartbeat => stats.tx_heartbeat_errors,
        LinkError::TxWindow => stats.tx_window_errors,
        LinkError::TxOther => stats.tx_errors,
    })
}

/// The messages in one datagram.
pub(crate) fn messages(
    datagram: &[u8],
) -> impl Iterator<Item = io::Result<NetlinkMessage<RouteNetlinkMessage>>> + '_ {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let parsed = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest);
        let declared = rest.first_chunk::<4>().map_or(0, |len| u32::from_ne_bytes(*len) as usize);
        // Messages are padded to four bytes; a length that leads nowhere ends the datagram.
        let step = declared.next_multiple_of(4);
        rest = if step < 16 { &[] } else { rest.get(step..).unwrap_or(&[]) };
        Some(parsed.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_by_name_and_index() {
        let netlink = Rtnetlink::open().unwrap();
        let lo = netlink.netdev(Which::Name("lo")).unwrap();
        assert_eq!(netlink.netdev(Which::Index(lo.index)).unwrap(), lo);
        assert!(!lo.veth && lo.mtu > 0);
        let error = netlink.netdev(Which::Name("no-such-netdev")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn broken_datagrams_end() {
        for length in 0..40u8 {
            let datagram = vec![length; 40];
            assert!(messages(&datagram).count() <= 40);
        }
    }
}
