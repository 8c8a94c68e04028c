//! ECN code points and the CE rewrite that WRED makes (SPEC 5, RFC 3168, RFC 1624).

use crate::ethernet::{HEADER_LEN, MAX_TAGS, TAG_LEN};

/// The ECN field of an IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// 00: the transport doesn't understand ECN.
    NotEct = 0,
    /// 01: ECN-capable.
    Ect1 = 1,
    /// 10: ECN-capable; what RoCE NICs send.
    Ect0 = 2,
    /// 11: congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// From the low two bits; the others are ignored.
    #[inline(always)]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The two bits of the wire.
    #[inline(always)]
    pub const fn bits(self) -> u8 {
        self as u8
    }
}

/// Which IP a frame carries. With the tag count (0 to 3) it locates the ECN field in four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum L3Kind {
    /// No IP header that could be read.
    #[default]
    Other = 0,
    /// IPv4.
    V4 = 1,
    /// IPv6.
    V6 = 2,
}

impl L3Kind {
    /// From the low two bits of a packed field; 3 reads as `Other`.
    #[inline(always)]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            1 => Self::V4,
            2 => Self::V6,
            _ => Self::Other,
        }
    }

    /// The two bits of a packed field.
    #[inline(always)]
    pub const fn bits(self) -> u8 {
        self as u8
    }
}

/// What [`mark_ce`] found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Marking {
    /// ECT(0) or ECT(1) became CE.
    Marked,
    /// CE already; not a byte was changed.
    AlreadyCe,
    /// Not-ECT or not IP; not a byte was changed.
    NotEct,
}

/// Sets CE on an ECN-capable packet behind `tags` VLAN tags (0 to 3), in place.
///
/// IPv4: the two ECN bits and the header checksum, by RFC 1624 equation 3: the result equals a
/// full recomputation for every valid header, and an invalid one stays invalid. IPv6: the two ECN
/// bits in byte 1. No other byte. `kind` and `tags` are those that [`crate::parse`] found; a frame
/// too short for them is left alone as [`Marking::NotEct`].
#[inline]
pub fn mark_ce(frame: &mut [u8], kind: L3Kind, tags: u8) -> Marking {
    let offset = HEADER_LEN + TAG_LEN * usize::from(tags).min(MAX_TAGS);
    let Some(packet) = frame.get_mut(offset..) else {
        return Marking::NotEct;
    };
    match kind {
        L3Kind::Other => Marking::NotEct,
        L3Kind::V4 => packet.first_chunk_mut().map_or(Marking::NotEct, mark_ce_ipv4),
        L3Kind::V6 => packet.first_chunk_mut().map_or(Marking::NotEct, mark_ce_ipv6),
    }
}

#[inline(always)]
fn mark_ce_ipv4(header: &mut [u8; 20]) -> Marking {
    match Ecn::from_bits(header[1]) {
        Ecn::NotEct => return Marking::NotEct,
        Ecn::Ce => return Marking::AlreadyCe,
        Ecn::Ect0 | Ecn::Ect1 => {}
    }
    let before = u16::from_be_bytes([header[0], header[1]]);
    header[1] |= Ecn::Ce.bits();
    let after = u16::from_be_bytes([header[0], header[1]]);
    let checksum = u16::from_be_bytes([header[10], header[11]]);
    // HC' = ~(~HC + ~m + m'). The sum has a nonzero term, so it folds to 0xffff, never to 0:
    // the checksum 0x0000 appears where recomputation has it, and 0xffff never does.
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    [header[10], header[11]] = (!fold(sum)).to_be_bytes();
    Marking::Marked
}

#[inline(always)]
fn mark_ce_ipv6(start: &mut [u8; 2]) -> Marking {
    // The ECN bits are the low two of the traffic class: bits 5 and 4 of byte 1 (RFC 8200).
    match Ecn::from_bits(start[1] >> 4) {
        Ecn::NotEct => Marking::NotEct,
        Ecn::Ce => Marking::AlreadyCe,
        Ecn::Ect0 | Ecn::Ect1 => {
            start[1] |= Ecn::Ce.bits() << 4;
            Marking::Marked
        }
    }
}

/// Folds a sum of 16-bit words to one word with end-around carry (RFC 1071).
#[inline(always)]
pub(crate) const fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

/// The ones' complement sum of `bytes` as big-endian words, a last odd byte padded with zero.
pub(crate) fn ones_sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2);
    let last = words.remainder().first().map_or(0, |&byte| u64::from(byte) << 8);
    let sum = words.fold(last, |sum, word| match *word {
        [high, low] => sum + u64::from(u16::from_be_bytes([high, low])),
        _ => sum,
    });
    let half = (sum & 0xffff_ffff) + (sum >> 32);
    fold(((half & 0xffff) + (half >> 16)) as u32)
}

/// The checksum that belongs into an IPv4 header, whatever its checksum field holds now.
pub fn ipv4_checksum(header: &[u8; 20], options: &[u8]) -> u16 {
    let mut zeroed = *header;
    [zeroed[10], zeroed[11]] = [0, 0];
    !fold(u32::from(ones_sum(&zeroed)) + u32::from(ones_sum(options)))
}

/// True if `packet` starts with a whole IPv4 header whose checksum verifies (RFC 791).
pub fn ipv4_checksum_valid(packet: &[u8]) -> bool {
    let Some(&first) = packet.first() else { return false };
    let header_len = 4 * usize::from(first & 0x0f);
    first >> 4 == 4
        && header_len >= 20
        && packet.get(..header_len).is_some_and(|header| ones_sum(header) == 0xffff)
}
