//! The netdev an endpoint works on, and its packet sockets.
//!
//! Three sockets, each for what it does best: one takes MAC control frames only, so that a pause
//! never waits behind data; one takes everything; one only sends, past the queueing discipline, so
//! that a frame the device refuses is reported and not silently dropped.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use holdfast_host::{Nanos, Time};
use holdfast_wire::ethernet::{TAG_LEN, TPID_CUSTOMER};
use holdfast_wire::MacAddr;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::sys::socket::{
    bind, getsockopt, recvmmsg, sendmmsg, setsockopt, sockopt, ControlMessageOwned, LinkAddr,
    MsgFlags, MultiHeaders,
};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};

use crate::clock::{now, time_of, wall_clock};

/// Frames that one call receives at most from a socket for data.
pub(crate) const DATA_BURST: usize = 64;
/// Frames that one call receives at most from a socket for MAC control, where few come.
pub(crate) const CONTROL_BURST: usize = 4;
/// Largest frame that is received whole: MTU 9000 with Ethernet header and three tags, and room.
const FRAME_MAX: usize = 9216;

/// Every protocol (`ETH_P_ALL`), for [`Inlet::open`].
pub(crate) const EVERY_PROTOCOL: u16 = libc::ETH_P_ALL as u16;

/// The options of packet sockets that nix doesn't know by name.
mod option {
    use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// Hand over each frame's VLAN tag, which the kernel takes out of the frame.
        AuxData, SetOnly, libc::SOL_PACKET, libc::PACKET_AUXDATA, bool
    );
    sockopt_impl!(
        /// Don't hand over what this host sends itself.
        IgnoreOutgoing, SetOnly, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, bool
    );
    sockopt_impl!(
        /// Hand frames to the driver directly and report when it refuses one.
        QdiscBypass, SetOnly, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, bool
    );
    sockopt_impl!(
        /// Frames received and dropped since this was read last.
        Statistics, GetOnly, libc::SOL_PACKET, libc::PACKET_STATISTICS, libc::tpacket_stats
    );
}

/// What a link can fail with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// No such netdev in this network namespace, or one without Ethernet address.
    #[error("there is no Ethernet interface \"{0}\" in this network namespace")]
    Unknown(String),
    /// A socket can't be opened or set up.
    #[error("packet socket on \"{interface}\": {step}: {source}")]
    Open {
        /// The netdev.
        interface: String,
        /// What was being done.
        step: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The netdev went down or away.
    #[error("interface \"{0}\" went down or away")]
    Down(String),
    /// Frames can't be sent or received.
    #[error("\"{interface}\": {source}")]
    Transfer {
        /// The netdev.
        interface: String,
        /// Why it failed.
        source: io::Error,
    },
}

/// A netdev of this network namespace.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    name: String,
    mac: MacAddr,
    address: LinkAddr,
}

impl Link {
    /// Looks the netdev up by name.
    pub(crate) fn find(name: &str) -> Result<Self, LinkError> {
        let unknown = || LinkError::Unknown(name.to_owned());
        let devices = getifaddrs().map_err(|_| unknown())?;
        let address = devices
            .filter(|device| device.interface_name == name)
            .find_map(|device| device.address?.as_link_addr().copied())
            .ok_or_else(unknown)?;
        let mac = MacAddr(address.addr().ok_or_else(unknown)?);
        Ok(Self { name: name.to_owned(), mac, address })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its Ethernet address.
    pub(crate) fn mac(&self) -> MacAddr {
        self.mac
    }

    fn socket(&self, protocol: u16) -> Result<Socket, LinkError> {
        let protocol = Protocol::from(i32::from(protocol.to_be()));
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(protocol));
        let socket = socket.map_err(|source| self.open_error("open", source))?;
        socket.set_nonblocking(true).map_err(|source| self.open_error("set up", source))?;
        Ok(socket)
    }

    fn attach(&self, socket: &Socket) -> Result<(), LinkError> {
        // The address says protocol 0, with which the kernel keeps the one given at creation.
        bind(socket.as_raw_fd(), &self.address)
            .map_err(|errno| self.open_error("bind", errno.into()))
    }

    fn open_error(&self, step: &'static str, source: io::Error) -> LinkError {
        LinkError::Open { interface: self.name.clone(), step, source }
    }

    /// Nothing to do now, or a real fault.
    fn transfer(&self, errno: Errno) -> Result<usize, LinkError> {
        match errno {
            Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR => Ok(0),
            Errno::ENETDOWN | Errno::ENXIO | Errno::ENODEV => {
                Err(LinkError::Down(self.name.clone()))
            }
            _ => Err(LinkError::Transfer { interface: self.name.clone(), source: errno.into() }),
        }
    }
}

/// A socket that receives.
#[derive(Debug)]
pub(crate) struct Inlet {
    link: Link,
    socket: Socket,
    /// One room per frame of a burst, with space in front for a tag that is put back.
    rooms: Vec<u8>,
    /// What came with each frame of the last burst.
    notes: Vec<Note>,
    dropped: u64,
}

/// Where a received frame starts in its room.
const LEAD: usize = TAG_LEN;
const ROOM: usize = LEAD + FRAME_MAX;

impl Inlet {
    /// Receives frames of one EtherType, or [`EVERY_PROTOCOL`], up to `burst` at once, into a
    /// socket buffer of `buffer` bytes. Nothing that came before this returns is handed over.
    pub(crate) fn open(
        link: &Link,
        protocol: u16,
        burst: usize,
        buffer: usize,
    ) -> Result<Self, LinkError> {
        let socket = link.socket(protocol)?;
        let set_up = |errno: Errno| link.open_error("set up", errno.into());
        setsockopt(&socket, sockopt::RcvBufForce, &buffer).map_err(set_up)?;
        setsockopt(&socket, option::AuxData, &true).map_err(set_up)?;
        setsockopt(&socket, option::IgnoreOutgoing, &true).map_err(set_up)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(set_up)?;
        link.attach(&socket)?;
        let (rooms, notes) = (vec![0; burst * ROOM], vec![Note::default(); burst]);
        let mut inlet = Self { link: link.clone(), socket, rooms, notes, dropped: 0 };
        // Before it was bound the socket heard every netdev.
        while inlet.receive(|_, _| ())? > 0 {}
        inlet.count_drops()?;
        inlet.dropped = 0;
        Ok(inlet)
    }

    /// Takes the frames that are there, at most a burst, tags in place, each with the time the
    /// kernel had it at; returns how many.
    pub(crate) fn receive(
        &mut self,
        mut each: impl FnMut(Time, &[u8]),
    ) -> Result<usize, LinkError> {
        let count = match receive_burst(&self.socket, &mut self.rooms, &mut self.notes) {
            Ok(count) => count,
            Err(errno) => return self.link.transfer(errno),
        };
        let read_at = ReadTime::now();
        let arrived = self.rooms.chunks_exact_mut(ROOM).zip(self.notes.iter().take(count));
        for (room, note) in arrived {
            let start = if let Some(tag) = note.tag { put_tag_back(room, tag) } else { LEAD };
            if let Some(frame) = room.get(start..LEAD + note.len) {
                each(read_at.arrival(note.stamp), frame);
            }
        }
        Ok(count)
    }

    /// Frames that found the socket buffer full, so far.
    pub(crate) fn count_drops(&mut self) -> Result<u64, LinkError> {
        let stats = getsockopt(&self.socket, option::Statistics)
            .map_err(|errno| self.link.open_error("statistics", errno.into()))?;
        self.dropped += u64::from(stats.tp_drops);
        Ok(self.dropped)
    }
}

impl AsFd for Inlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What comes with a received frame.
#[derive(Clone, Copy, Debug, Default)]
struct Note {
    len: usize,
    tag: Option<[u8; TAG_LEN]>,
    /// When the kernel had it, by its wall clock.
    stamp: Option<TimeSpec>,
}

/// How far apart two readings of clocks may be to count as one moment.
const CLOCK_SKEW: Nanos = Nanos(1000);

/// The two clocks at one moment, to bring the kernel's stamps to ours.
struct ReadTime {
    time: Time,
    wall: Time,
}

impl ReadTime {
    fn now() -> Self {
        // A thread that is put to sleep between the two readings would make frames older.
        for _ in 0..3 {
            let read = Self { time: now(), wall: wall_clock() };
            if now().since(read.time) <= CLOCK_SKEW {
                return read;
            }
        }
        Self { time: now(), wall: wall_clock() }
    }

    /// When a frame with this stamp arrived: never after it was read.
    fn arrival(&self, stamp: Option<TimeSpec>) -> Time {
        stamp.map_or(self.time, |stamp| self.time.before(self.wall.since(time_of(stamp))))
    }
}

/// Moves the addresses forward and writes the tag behind them; returns where the frame starts.
fn put_tag_back(room: &mut [u8], tag: [u8; TAG_LEN]) -> usize {
    room.copy_within(LEAD..LEAD + 12, 0);
    if let Some(field) = room.get_mut(12..12 + TAG_LEN) {
        field.copy_from_slice(&tag);
    }
    0
}

fn receive_burst(socket: &Socket, rooms: &mut [u8], notes: &mut [Note]) -> Result<usize, Errno> {
    let mut slices: Vec<[IoSliceMut<'_>; 1]> = rooms
        .chunks_exact_mut(ROOM)
        .map(|room| [IoSliceMut::new(room.get_mut(LEAD..).unwrap_or_default())])
        .collect();
    let control = nix::cmsg_space!(libc::tpacket_auxdata, libc::timespec);
    let mut headers = MultiHeaders::<LinkAddr>::preallocate(slices.len(), Some(control));
    let flags = MsgFlags::MSG_DONTWAIT;
    let messages = recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), flags, None)?;
    let mut count = 0;
    for (message, note) in messages.zip(notes) {
        *note = Note { len: message.bytes, ..Note::default() };
        for one in message.cmsgs()? {
            match one {
                ControlMessageOwned::ScmTimestampns(time) => note.stamp = Some(time),
                ControlMessageOwned::Unknown(other) => note.tag = tag_of(&other.data_bytes),
                _ => {}
            }
        }
        count += 1;
    }
    Ok(count)
}

/// The VLAN tag that the kernel took out of the frame, as on the wire.
fn tag_of(auxdata: &[u8]) -> Option<[u8; TAG_LEN]> {
    // struct tpacket_auxdata: status, len, snaplen (u32); mac, net, vlan_tci, vlan_tpid (u16).
    let &[s0, s1, s2, s3, .., c0, c1, t0, t1]: &[u8; 20] = auxdata.first_chunk()?;
    let status = u32::from_ne_bytes([s0, s1, s2, s3]);
    let tci = u16::from_ne_bytes([c0, c1]).to_be_bytes();
    let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let tpid = if known { u16::from_ne_bytes([t0, t1]) } else { TPID_CUSTOMER }.to_be_bytes();
    (status & libc::TP_STATUS_VLAN_VALID != 0).then_some([tpid[0], tpid[1], tci[0], tci[1]])
}

/// A socket that sends.
#[derive(Debug)]
pub(crate) struct Outlet {
    link: Link,
    socket: Socket,
}

impl Outlet {
    /// Sends on `link` only and receives nothing.
    pub(crate) fn open(link: &Link) -> Result<Self, LinkError> {
        let socket = link.socket(0)?;
        setsockopt(&socket, option::QdiscBypass, &true)
            .map_err(|errno| link.open_error("set up", errno.into()))?;
        link.attach(&socket)?;
        Ok(Self { link: link.clone(), socket })
    }

    /// Sends `frames` in order; returns how many the device took. The rest may be tried again.
    pub(crate) fn send(&mut self, frames: &[&[u8]]) -> Result<usize, LinkError> {
        if frames.is_empty() {
            return Ok(0);
        }
        let slices: Vec<_> = frames.iter().map(|frame| [IoSlice::new(frame)]).collect();
        let addresses: Vec<Option<LinkAddr>> = vec![None; frames.len()];
        let mut headers = MultiHeaders::preallocate(frames.len(), None);
        let flags = MsgFlags::MSG_DONTWAIT;
        let fd = self.socket.as_raw_fd();
        match sendmmsg(fd, &mut headers, slices.iter(), addresses, [], flags) {
            Ok(taken) => Ok(taken.count()),
            Err(errno) => self.link.transfer(errno),
        }
    }
}
