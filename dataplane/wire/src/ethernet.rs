//! Ethernet II headers, up to three VLAN tags, and the IP header behind them (SPEC 2).

use core::fmt;
use core::str::FromStr;

use crate::be16;
use crate::ip::{Ecn, L3Kind};

/// EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ETHERTYPE_ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const ETHERTYPE_IPV6: u16 = 0x86dd;
/// EtherType of MAC control: PAUSE and PFC (IEEE 802.3 clause 31).
pub const ETHERTYPE_MAC_CONTROL: u16 = 0x8808;
/// TPID of a customer VLAN tag (IEEE 802.1Q).
pub const TPID_CUSTOMER: u16 = 0x8100;
/// TPID of a service VLAN tag (IEEE 802.1ad).
pub const TPID_SERVICE: u16 = 0x88a8;
/// TPID of stacked tags before 802.1ad, still met in the field.
pub const TPID_LEGACY_QINQ: u16 = 0x9100;

/// Bytes of an untagged Ethernet header.
pub const HEADER_LEN: usize = 14;
/// Bytes of one VLAN tag.
pub const TAG_LEN: usize = 4;
/// Tags that are looked through to find IP; a frame with more is not IP to the switch.
pub const MAX_TAGS: usize = 3;

/// An IEEE 802 MAC address, in the order of the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// 01:80:c2:00:00:01, the destination of every PFC and PAUSE frame that is sent.
    pub const MAC_CONTROL: Self = Self([0x01, 0x80, 0xc2, 0x00, 0x00, 0x01]);

    /// True for group addresses, broadcast included.
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// True for 01:80:c2:00:00:00 to ..:0f, which a bridge never forwards (802.1Q table 8-1).
    #[inline]
    pub const fn is_reserved_group(self) -> bool {
        self.to_u64() & !0xf == 0x0180_c200_0000
    }

    /// The address as a 48-bit number, first byte on the wire most significant.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        // A 32-bit and a 16-bit load, which the eight bytes of a u64 would not become.
        let [a, b, c, d, e, f] = self.0;
        (u32::from_be_bytes([a, b, c, d]) as u64) << 16 | u16::from_be_bytes([e, f]) as u64
    }

    /// The address from the low 48 bits of `bits`; the inverse of [`MacAddr::to_u64`].
    #[inline]
    pub const fn from_u64(bits: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = bits.to_be_bytes();
        Self([a, b, c, d, e, f])
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MacAddrError {
    /// Not six groups separated by `:` or `-`.
    #[error("a MAC address has 6 groups of two hex digits, found {found}")]
    Groups {
        /// Groups found.
        found: usize,
    },
    /// A group that isn't two hex digits.
    #[error("group {index} of the MAC address is not two hex digits")]
    Digits {
        /// Which group, 0 to 5.
        index: usize,
    },
}

impl FromStr for MacAddr {
    type Err = MacAddrError;

    /// Reads `aa:bb:cc:dd:ee:ff` or `aa-bb-cc-dd-ee-ff`, in either case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = text.split([':', '-']).count();
        if found != 6 {
            return Err(MacAddrError::Groups { found });
        }
        let mut address = [0; 6];
        for (index, (byte, group)) in address.iter_mut().zip(text.split([':', '-'])).enumerate() {
            let two_digits = group.len() == 2 && group.bytes().all(|b| b.is_ascii_hexdigit());
            *byte = u8::from_str_radix(group, 16)
                .ok()
                .filter(|_| two_digits)
                .ok_or(MacAddrError::Digits { index })?;
        }
        Ok(Self(address))
    }
}

/// One VLAN tag: TPID and the three fields of its tag control information (802.1Q clause 9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Which kind of tag: 0x8100, 0x88a8 or 0x9100.
    pub tpid: u16,
    /// Priority code point, 0 to 7.
    pub pcp: u8,
    /// Drop eligible indicator.
    pub dei: bool,
    /// VLAN identifier, 0 to 4095; 0 is a priority tag.
    pub vid: u16,
}

impl Tag {
    /// A customer tag (0x8100), not drop eligible. Bits beyond the fields' widths are cut off.
    pub const fn customer(pcp: u8, vid: u16) -> Self {
        Self { tpid: TPID_CUSTOMER, pcp: pcp & 7, dei: false, vid: vid & 0xfff }
    }

    /// Splits tag control information into its fields.
    #[inline]
    pub const fn from_tci(tpid: u16, tci: u16) -> Self {
        Self { tpid, pcp: (tci >> 13) as u8, dei: tci & 0x1000 != 0, vid: tci & 0x0fff }
    }

    /// The tag control information as on the wire.
    pub const fn tci(self) -> u16 {
        let dei = if self.dei { 0x1000 } else { 0 };
        ((self.pcp as u16 & 7) << 13) | dei | (self.vid & 0x0fff)
    }

    /// The four bytes of the tag as on the wire.
    pub const fn to_bytes(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.tpid.to_be_bytes(), self.tci().to_be_bytes());
        [a, b, c, d]
    }
}

/// True for the three TPIDs that are looked through.
#[inline(always)]
pub const fn is_tpid(ethertype: u16) -> bool {
    matches!(ethertype, TPID_CUSTOMER | TPID_SERVICE | TPID_LEGACY_QINQ)
}

/// What the classifier and WRED need of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// Where the IP header starts, in bytes from the destination MAC: 14 + 4 per tag.
    pub offset: u8,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// The ECN field (RFC 3168).
    pub ecn: Ecn,
}

impl IpHeader {
    #[inline(always)]
    const fn new(offset: usize, traffic_class: u8) -> Self {
        Self { offset: offset as u8, dscp: traffic_class >> 2, ecn: Ecn::from_bits(traffic_class) }
    }
}

/// The network layer of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L3 {
    /// Not IP, or an IP header that is cut short or malformed.
    Other,
    /// IPv4 with its whole header (IHL x 4 bytes) present.
    Ipv4(IpHeader),
    /// IPv6 with its 40 bytes present.
    Ipv6(IpHeader),
}

impl L3 {
    /// The IP header, if there is one.
    #[inline]
    pub const fn ip(self) -> Option<IpHeader> {
        match self {
            Self::Other => None,
            Self::Ipv4(header) | Self::Ipv6(header) => Some(header),
        }
    }

    /// Which protocol, without its fields: what [`crate::mark_ce`] needs.
    #[inline]
    pub const fn kind(self) -> L3Kind {
        match self {
            Self::Other => L3Kind::Other,
            Self::Ipv4(_) => L3Kind::V4,
            Self::Ipv6(_) => L3Kind::V6,
        }
    }
}

/// The headers of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Destination address.
    pub dst: MacAddr,
    /// Source address.
    pub src: MacAddr,
    /// Whole tags in front of `ethertype`, 0 to 3.
    pub tags: u8,
    /// The first tag on the wire: the one whose PCP counts.
    pub outer: Option<Tag>,
    /// The EtherType behind the tags; a TPID if a fourth or a cut-off tag follows.
    pub ethertype: u16,
    /// The IP header behind the tags.
    pub l3: L3,
}

/// Why bytes are not an Ethernet frame at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Shorter than an Ethernet header.
    #[error("a frame of {len} bytes is shorter than the 14-byte Ethernet header")]
    Runt {
        /// Bytes present.
        len: usize,
    },
}

/// Reads the headers of a frame. Every length is checked before it is read (SPEC 2).
///
/// What can't be read as IP is [`L3::Other`] and still a frame: truncated tags or headers, a
/// version that disagrees with the EtherType, IHL below 5, a fourth tag.
///
/// # Errors
/// [`ParseError::Runt`] below 14 bytes.
#[inline(always)]
pub fn parse(frame: &[u8]) -> Result<Headers, ParseError> {
    let Some((dst, src, ethertype)) = split_header(frame) else {
        return Err(ParseError::Runt { len: frame.len() });
    };
    if is_tpid(ethertype) {
        let (tags, outer, ethertype) = walk_tags(frame, ethertype);
        let l3 = parse_l3(frame, HEADER_LEN + TAG_LEN * usize::from(tags), ethertype);
        return Ok(Headers { dst, src, tags, outer, ethertype, l3 });
    }
    let l3 = parse_l3(frame, HEADER_LEN, ethertype);
    Ok(Headers { dst, src, tags: 0, outer: None, ethertype, l3 })
}

/// The addresses and the first EtherType; `None` for a runt.
#[inline(always)]
fn split_header(frame: &[u8]) -> Option<(MacAddr, MacAddr, u16)> {
    let header = frame.first_chunk::<HEADER_LEN>()?;
    let (dst, rest) = header.split_first_chunk::<6>()?;
    let (src, rest) = rest.split_first_chunk::<6>()?;
    Some((MacAddr(*dst), MacAddr(*src), u16::from_be_bytes(*rest.first_chunk::<2>()?)))
}

/// The source address of a frame; `None` for a runt.
pub fn source_address(frame: &[u8]) -> Option<MacAddr> {
    split_header(frame).map(|(_, source, _)| source)
}

/// Counts whole tags, at most [`MAX_TAGS`]: (count, first tag, EtherType behind the last one).
pub(crate) fn walk_tags(frame: &[u8], first: u16) -> (u8, Option<Tag>, u16) {
    let (mut count, mut outer, mut ethertype) = (0u8, None, first);
    while is_tpid(ethertype) && usize::from(count) < MAX_TAGS {
        let at = HEADER_LEN + TAG_LEN * usize::from(count);
        let Some(&[c0, c1, e0, e1]) = frame.get(at..).and_then(|rest| rest.first_chunk::<4>())
        else {
            break;
        };
        let tag = Tag::from_tci(ethertype, u16::from_be_bytes([c0, c1]));
        outer = outer.or(Some(tag));
        ethertype = u16::from_be_bytes([e0, e1]);
        count += 1;
    }
    (count, outer, ethertype)
}

#[inline(always)]
fn parse_l3(frame: &[u8], offset: usize, ethertype: u16) -> L3 {
    match ethertype {
        ETHERTYPE_IPV4 => parse_ipv4(frame, offset).map_or(L3::Other, L3::Ipv4),
        ETHERTYPE_IPV6 => parse_ipv6(frame, offset).map_or(L3::Other, L3::Ipv6),
        _ => L3::Other,
    }
}

#[inline(always)]
fn parse_ipv4(frame: &[u8], offset: usize) -> Option<IpHeader> {
    let packet = frame.get(offset..)?;
    let header = packet.first_chunk::<20>()?;
    // Version 4 with an IHL of 5 to 15 words, all of them present.
    let header_len = 4 * usize::from(header[0] & 0x0f);
    let whole = header[0] >> 4 == 4 && header_len >= 20 && packet.len() >= header_len;
    whole.then(|| IpHeader::new(offset, header[1]))
}

#[inline(always)]
fn parse_ipv6(frame: &[u8], offset: usize) -> Option<IpHeader> {
    let header = frame.get(offset..)?.first_chunk::<40>()?;
    // The traffic class straddles bytes 0 and 1 (RFC 8200 section 3).
    let first = u16::from_be_bytes([header[0], header[1]]);
    (first >> 12 == 6).then(|| IpHeader::new(offset, (first >> 4) as u8))
}

/// Writes addresses, tags and EtherType; returns the bytes written, or `None` if `buf` is too
/// small for them.
pub fn encode_header(
    buf: &mut [u8],
    dst: MacAddr,
    src: MacAddr,
    tags: &[Tag],
    ethertype: u16,
) -> Option<usize> {
    let len = HEADER_LEN + TAG_LEN * tags.len();
    let header = buf.get_mut(..len)?;
    header.get_mut(..6)?.copy_from_slice(&dst.0);
    header.get_mut(6..12)?.copy_from_slice(&src.0);
    for (bytes, tag) in header.get_mut(12..)?.chunks_exact_mut(TAG_LEN).zip(tags) {
        bytes.copy_from_slice(&tag.to_bytes());
    }
    header.get_mut(len - 2..)?.copy_from_slice(&ethertype.to_be_bytes());
    Some(len)
}

/// Whether the frame is MAC control (0x8808), tagged or not: what [`parse`] would say, at less
/// cost where it isn't.
#[inline]
pub fn is_mac_control(frame: &[u8]) -> bool {
    let Some(&[.., t0, t1]) = frame.first_chunk::<HEADER_LEN>() else { return false };
    // Below all tags, and below MAC control: IPv4 and ARP end here.
    u16::from_be_bytes([t0, t1]) >= TPID_CUSTOMER
        && inner_ethertype(frame) == Some(ETHERTYPE_MAC_CONTROL)
}

/// The EtherType behind up to three tags; `None` for a runt.
#[inline]
pub fn inner_ethertype(frame: &[u8]) -> Option<u16> {
    let first = be16(frame, 12)?;
    Some(if is_tpid(first) { walk_tags(frame, first).2 } else { first })
}
