//! Building RoCEv2 frames: data of one packet (SEND/WRITE Only) and CNP.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::Range;

use super::{bth::opcode, compute_icrc, Bth, BTH_LEN, ICRC_LEN, UDP_LEN, UDP_PORT};
use crate::ethernet::{
    encode_header, MacAddr, Tag, ETHERTYPE_IPV4, ETHERTYPE_IPV6, HEADER_LEN, MAX_TAGS, TAG_LEN,
};
use crate::ip::{fold, ipv4_checksum, ones_sum, Ecn};

/// Largest frame that is built: MTU 9000 with its Ethernet header and three tags.
pub const MAX_FRAME_LEN: usize = 9000 + HEADER_LEN + MAX_TAGS * TAG_LEN;

/// Partition key of the default partition.
const DEFAULT_PKEY: u16 = 0xffff;
/// Bytes of zeros behind the BTH of a CNP.
const CNP_BODY: usize = 16;

/// Source and destination address, of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IpPair {
    /// IPv4.
    V4 {
        /// Source.
        src: Ipv4Addr,
        /// Destination.
        dst: Ipv4Addr,
    },
    /// IPv6.
    V6 {
        /// Source.
        src: Ipv6Addr,
        /// Destination.
        dst: Ipv6Addr,
    },
}

impl IpPair {
    const fn header_len(self) -> usize {
        match self {
            Self::V4 { .. } => 20,
            Self::V6 { .. } => 40,
        }
    }
}

/// Everything below the transport: how packets of a flow get from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    /// Destination MAC.
    pub dst_mac: MacAddr,
    /// Source MAC.
    pub src_mac: MacAddr,
    /// VLAN tags, outermost first; at most three.
    pub tags: &'a [Tag],
    /// IP addresses.
    pub ip: IpPair,
    /// Differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// The ECN field as sent.
    pub ecn: Ecn,
    /// TTL or hop limit.
    pub ttl: u8,
    /// UDP source port: the flow's entropy.
    pub src_port: u16,
}

/// Which one-packet message a data frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataOp {
    /// Reliable connection, SEND Only.
    RcSend,
    /// Reliable connection, RDMA WRITE Only (RETH with address 0 and the payload's length).
    RcWrite,
    /// Unreliable datagram, SEND Only (DETH with the destination's number as source too).
    UdSend,
}

impl DataOp {
    const fn opcode(self) -> u8 {
        match self {
            Self::RcSend => opcode::RC_SEND_ONLY,
            Self::RcWrite => opcode::RC_WRITE_ONLY,
            Self::UdSend => opcode::UD_SEND_ONLY,
        }
    }

    /// Bytes of the extended header behind the BTH.
    const fn extended_len(self) -> usize {
        match self {
            Self::RcSend => 0,
            Self::RcWrite => 16,
            Self::UdSend => 8,
        }
    }

    /// The operation of a received opcode.
    pub const fn from_opcode(code: u8) -> Option<Self> {
        match code {
            opcode::RC_SEND_ONLY => Some(Self::RcSend),
            opcode::RC_WRITE_ONLY => Some(Self::RcWrite),
            opcode::UD_SEND_ONLY => Some(Self::UdSend),
            _ => None,
        }
    }

    /// The payload of a received packet of this operation, given what lies behind its BTH.
    pub fn payload(self, body: Range<usize>) -> Range<usize> {
        (body.start + self.extended_len()).min(body.end)..body.end
    }
}

/// One data frame to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPacket<'a> {
    /// How it travels.
    pub path: Path<'a>,
    /// What it is.
    pub op: DataOp,
    /// Destination queue pair, 24 bits.
    pub dest_qp: u32,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
    /// Length of the frame in bytes, destination MAC to last byte, no FCS.
    pub len: usize,
}

/// Why a frame can't be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The headers don't fit into the asked length.
    #[error("a frame of {len} bytes is shorter than its headers and iCRC, {min} bytes")]
    TooShort {
        /// Length asked for.
        len: usize,
        /// Shortest possible.
        min: usize,
    },
    /// Longer than any frame the switch carries.
    #[error("a frame of {len} bytes is longer than the largest, {max} bytes")]
    TooLong {
        /// Length asked for.
        len: usize,
        /// Longest possible.
        max: usize,
    },
    /// More tags than are looked through.
    #[error("{count} VLAN tags; at most 3 are understood")]
    TooManyTags {
        /// Tags asked for.
        count: usize,
    },
    /// The buffer is too small.
    #[error("the frame needs {need} bytes, the buffer has {have}")]
    Buffer {
        /// Bytes needed.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
}

/// Where the parts of a built frame are, so that a template can be patched and sealed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Length of the frame.
    pub len: usize,
    /// Payload bytes, behind all headers and before the iCRC.
    pub payload: Range<usize>,
    ipv6: bool,
    ip_at: usize,
    udp_at: usize,
    icrc_at: usize,
}

impl Layout {
    /// Writes another PSN; the frame must be sealed afterwards. False if `buf` is too small.
    pub fn set_psn(&self, buf: &mut [u8], psn: u32) -> bool {
        let at = self.udp_at + UDP_LEN + 9;
        let [_, bytes @ ..] = psn.to_be_bytes();
        buf.get_mut(at..at + 3).map(|field| field.copy_from_slice(&bytes)).is_some()
    }

    /// Writes iCRC and, over IPv6, the UDP checksum. False if `buf` is too small.
    pub fn seal(&self, buf: &mut [u8]) -> bool {
        self.seal_parts(buf).is_some()
    }

    fn seal_parts(&self, buf: &mut [u8]) -> Option<()> {
        let crc = compute_icrc(buf, self.ipv6, self.ip_at, self.udp_at, self.icrc_at)?;
        let end = self.icrc_at + ICRC_LEN;
        buf.get_mut(self.icrc_at..end)?.copy_from_slice(&crc.to_le_bytes());
        if self.ipv6 {
            // Zero means "no checksum", which IPv6 forbids (RFC 8200 8.1); IPv4 may leave it.
            buf.get_mut(self.udp_at + 6..self.udp_at + 8)?.fill(0);
            let addresses = ones_sum(buf.get(self.ip_at + 8..self.ip_at + 40)?);
            let packet = buf.get(self.udp_at..end)?;
            let pseudo = u32::from(addresses) + packet.len() as u32 + 17;
            let checksum = match !fold(pseudo + u32::from(ones_sum(packet))) {
                0 => 0xffff,
                sum => sum,
            };
            let field = buf.get_mut(self.udp_at + 6..self.udp_at + 8)?;
            field.copy_from_slice(&checksum.to_be_bytes());
        }
        Some(())
    }
}

/// Headers and iCRC of a data frame without payload, in bytes.
pub fn min_data_len(path: &Path<'_>, op: DataOp) -> usize {
    overhead(path) + op.extended_len()
}

fn overhead(path: &Path<'_>) -> usize {
    let link = HEADER_LEN + TAG_LEN * path.tags.len();
    link + path.ip.header_len() + UDP_LEN + BTH_LEN + ICRC_LEN
}

/// Builds and seals a data frame of exactly `packet.len` bytes with a payload of zeros.
///
/// A RoCEv2 packet is a multiple of four bytes: up to three zero bytes follow it in the frame,
/// outside of the IP packet, if the length asks for it.
///
/// # Errors
/// [`BuildError`] if the length doesn't fit the headers, the largest frame, or the buffer.
pub fn encode_data(buf: &mut [u8], packet: &DataPacket<'_>) -> Result<Layout, BuildError> {
    let min = min_data_len(&packet.path, packet.op);
    let Some(room) = packet.len.checked_sub(min) else {
        return Err(BuildError::TooShort { len: packet.len, min });
    };
    let payload_len = room & !3;
    let bth = Bth {
        opcode: packet.op.opcode(),
        pkey: DEFAULT_PKEY,
        dest_qp: packet.dest_qp,
        psn: packet.psn,
        ..Bth::default()
    };
    let body_len = packet.op.extended_len() + payload_len;
    let mut layout = encode_packet(buf, &packet.path, bth, body_len, packet.len)?;
    let body_at = layout.payload.start;
    match packet.op {
        DataOp::RcSend => {}
        DataOp::RcWrite => put(buf, body_at + 12, &(payload_len as u32).to_be_bytes()),
        DataOp::UdSend => put(buf, body_at + 4, &(packet.dest_qp & 0x00ff_ffff).to_be_bytes()),
    }
    layout.payload.start += packet.op.extended_len();
    layout.seal(buf);
    Ok(layout)
}

/// Builds and seals a congestion notification packet to `dest_qp` (IBTA annex A17.9.3): BECN set,
/// PSN 0, sixteen zero bytes. Over untagged IPv4 it has 74 bytes.
///
/// # Errors
/// [`BuildError`] if it doesn't fit the buffer or has too many tags.
pub fn encode_cnp(buf: &mut [u8], path: &Path<'_>, dest_qp: u32) -> Result<Layout, BuildError> {
    let bth =
        Bth { opcode: opcode::CNP, pkey: DEFAULT_PKEY, becn: true, dest_qp, ..Bth::default() };
    let len = overhead(path) + CNP_BODY;
    let layout = encode_packet(buf, path, bth, CNP_BODY, len)?;
    layout.seal(buf);
    Ok(layout)
}

/// Writes all headers around a zeroed body; the caller fills the body and seals.
fn encode_packet(
    buf: &mut [u8],
    path: &Path<'_>,
    bth: Bth,
    body_len: usize,
    len: usize,
) -> Result<Layout, BuildError> {
    let have = buf.len();
    if path.tags.len() > MAX_TAGS {
        return Err(BuildError::TooManyTags { count: path.tags.len() });
    }
    if len > MAX_FRAME_LEN {
        return Err(BuildError::TooLong { len, max: MAX_FRAME_LEN });
    }
    let Some(frame) = buf.get_mut(..len) else {
        return Err(BuildError::Buffer { need: len, have });
    };
    frame.fill(0);
    let ipv6 = matches!(path.ip, IpPair::V6 { .. });
    let ethertype = if ipv6 { ETHERTYPE_IPV6 } else { ETHERTYPE_IPV4 };
    let ip_at = encode_header(frame, path.dst_mac, path.src_mac, path.tags, ethertype)
        .ok_or(BuildError::Buffer { need: len, have })?;
    let udp_at = ip_at + path.ip.header_len();
    let udp_len = UDP_LEN + BTH_LEN + body_len + ICRC_LEN;
    put_ip(frame, ip_at, path, udp_len);
    put(frame, udp_at, &path.src_port.to_be_bytes());
    put(frame, udp_at + 2, &UDP_PORT.to_be_bytes());
    put(frame, udp_at + 4, &(udp_len as u16).to_be_bytes());
    put(frame, udp_at + UDP_LEN, &bth.to_bytes());
    let body_at = udp_at + UDP_LEN + BTH_LEN;
    let icrc_at = body_at + body_len;
    Ok(Layout { len, payload: body_at..icrc_at, ipv6, ip_at, udp_at, icrc_at })
}

fn put_ip(frame: &mut [u8], at: usize, path: &Path<'_>, udp_len: usize) {
    let traffic_class = path.dscp << 2 | path.ecn.bits();
    match path.ip {
        IpPair::V4 { src, dst } => {
            let mut header = [0; 20];
            header[0] = 0x45;
            header[1] = traffic_class;
            header[2..4].copy_from_slice(&((20 + udp_len) as u16).to_be_bytes());
            // Don't fragment.
            header[6] = 0x40;
            header[8] = path.ttl;
            header[9] = 17;
            header[12..16].copy_from_slice(&src.octets());
            header[16..20].copy_from_slice(&dst.octets());
            let checksum = ipv4_checksum(&header, &[]);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            put(frame, at, &header);
        }
        IpPair::V6 { src, dst } => {
            let mut header = [0; 40];
            header[..2].copy_from_slice(&(0x6000 | u16::from(traffic_class) << 4).to_be_bytes());
            header[4..6].copy_from_slice(&(udp_len as u16).to_be_bytes());
            header[6] = 17;
            header[7] = path.ttl;
            header[8..24].copy_from_slice(&src.octets());
            header[24..40].copy_from_slice(&dst.octets());
            put(frame, at, &header);
        }
    }
}

/// Copies `bytes` to `at`. The callers have made room for every header before.
fn put(frame: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(field) = frame.get_mut(at..at + bytes.len()) {
        field.copy_from_slice(bytes);
    }
}
