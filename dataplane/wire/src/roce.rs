//! RoCEv2: locating the transport headers in a frame, and the invariant CRC (IBTA annex A17).
//!
//! Ethernet / IPv4 or IPv6 / UDP port 4791 / BTH / extended headers / payload + pad / iCRC.

mod bth;
mod build;

use core::ops::Range;

pub use bth::{opcode, Bth, PSN_MASK, QP_MASK};
pub use build::{
    encode_cnp, encode_data, min_data_len, BuildError, DataOp, DataPacket, IpPair, Layout, Path,
    MAX_FRAME_LEN,
};

use crate::ethernet::{parse, HEADER_LEN, L3, TAG_LEN};
use crate::ip::Ecn;

/// UDP destination port of RoCEv2.
pub const UDP_PORT: u16 = 4791;
/// Bytes of a UDP header.
pub const UDP_LEN: usize = 8;
/// Bytes of a base transport header.
pub const BTH_LEN: usize = 12;
/// Bytes of the invariant CRC.
pub const ICRC_LEN: usize = 4;

/// IPv4 with options, UDP and BTH: the longest run of headers that holds a masked field.
const MASKED_MAX: usize = 60 + UDP_LEN + BTH_LEN;
/// Bytes of ones that stand for the link header RoCEv2 doesn't have.
const DUMMY_LRH: usize = 8;

/// A RoCEv2 packet found in a frame. Positions are bytes from the destination MAC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoceView {
    /// VLAN tags in front, 0 to 3.
    pub tags: u8,
    /// True for IPv6.
    pub ipv6: bool,
    /// Differentiated services code point.
    pub dscp: u8,
    /// The ECN field.
    pub ecn: Ecn,
    /// Where the IP header starts.
    pub ip_at: usize,
    /// Where the UDP header starts.
    pub udp_at: usize,
    /// UDP source port: the flow's entropy.
    pub src_port: u16,
    /// The base transport header.
    pub bth: Bth,
    /// What lies between BTH and iCRC: extended headers, payload and pad.
    pub body: Range<usize>,
}

impl RoceView {
    /// Finds a RoCEv2 packet behind up to three VLAN tags; `None` if the frame holds none, or one
    /// that is fragmented, cut short, or whose lengths disagree.
    pub fn find(frame: &[u8]) -> Option<Self> {
        let headers = parse(frame).ok()?;
        let (ipv6, ip) = match headers.l3 {
            L3::Ipv4(ip) => (false, ip),
            L3::Ipv6(ip) => (true, ip),
            L3::Other => return None,
        };
        let ip_at = HEADER_LEN + TAG_LEN * usize::from(headers.tags);
        let packet = frame.get(ip_at..)?;
        let (ip_len, total) = if ipv6 { ipv6_extent(packet)? } else { ipv4_extent(packet)? };
        let udp = packet.get(ip_len..total)?;
        let &[s0, s1, d0, d1, l0, l1, _, _] = udp.first_chunk::<UDP_LEN>()?;
        let whole = usize::from(u16::from_be_bytes([l0, l1])) == udp.len();
        if u16::from_be_bytes([d0, d1]) != UDP_PORT || !whole {
            return None;
        }
        let bth = Bth::from_bytes(udp.get(UDP_LEN..)?.first_chunk::<BTH_LEN>()?);
        let udp_at = ip_at + ip_len;
        let body_at = udp_at + UDP_LEN + BTH_LEN;
        let icrc_at = ip_at + total.checked_sub(ICRC_LEN)?;
        (body_at <= icrc_at).then_some(Self {
            tags: headers.tags,
            ipv6,
            dscp: ip.dscp,
            ecn: ip.ecn,
            ip_at,
            udp_at,
            src_port: u16::from_be_bytes([s0, s1]),
            bth,
            body: body_at..icrc_at,
        })
    }

    /// Computes the packet's iCRC. `None` if `frame` isn't the one this view was found in.
    pub fn icrc(&self, frame: &[u8]) -> Option<u32> {
        compute_icrc(frame, self.ipv6, self.ip_at, self.udp_at, self.body.end)
    }

    /// True if the iCRC that the packet carries is the right one.
    pub fn icrc_valid(&self, frame: &[u8]) -> bool {
        let carried = frame.get(self.body.end..).and_then(|rest| rest.first_chunk::<ICRC_LEN>());
        carried.is_some_and(|bytes| self.icrc(frame) == Some(u32::from_le_bytes(*bytes)))
    }
}

/// (header bytes, total bytes) of an unfragmented IPv4 packet that carries UDP.
fn ipv4_extent(packet: &[u8]) -> Option<(usize, usize)> {
    let header = packet.first_chunk::<20>()?;
    let fragmented = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    (!fragmented && header[9] == 17).then_some((4 * usize::from(header[0] & 0x0f), total))
}

/// (header bytes, total bytes) of an IPv6 packet with UDP directly behind its header.
fn ipv6_extent(packet: &[u8]) -> Option<(usize, usize)> {
    let header = packet.first_chunk::<40>()?;
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    (header[6] == 17).then_some((40, 40 + payload))
}

/// CRC-32 over a dummy link header of ones and the packet up to `end`, with every field that may
/// change on the way set to ones: so CE marking never invalidates it.
fn compute_icrc(frame: &[u8], ipv6: bool, ip_at: usize, udp_at: usize, end: usize) -> Option<u32> {
    let body_at = udp_at + UDP_LEN + BTH_LEN;
    let headers = frame.get(ip_at..body_at)?;
    let body = frame.get(body_at..end)?;
    let mut masked = [0xff; DUMMY_LRH + MASKED_MAX];
    let masked = masked.get_mut(..DUMMY_LRH + headers.len())?;
    let copy = masked.get_mut(DUMMY_LRH..)?;
    copy.copy_from_slice(headers);
    if ipv6 {
        // Traffic class and flow label; hop limit.
        *copy.first_mut()? |= 0x0f;
        copy.get_mut(1..4)?.fill(0xff);
        *copy.get_mut(7)? = 0xff;
    } else {
        // TOS; TTL; header checksum.
        *copy.get_mut(1)? = 0xff;
        *copy.get_mut(8)? = 0xff;
        copy.get_mut(10..12)?.fill(0xff);
    }
    let udp = udp_at - ip_at;
    copy.get_mut(udp + 6..udp + 8)?.fill(0xff);
    // FECN, BECN and the six reserved bits.
    *copy.get_mut(udp + UDP_LEN + 4)? = 0xff;
    let mut crc = crc32fast::Hasher::new();
    crc.update(masked);
    crc.update(body);
    Some(crc.finalize())
}
