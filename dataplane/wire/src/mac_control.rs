//! MAC control frames: PFC (IEEE 802.1Qbb, 802.3 annex 31D) and PAUSE (802.3 annex 31B).

use crate::be16;
use crate::ethernet::{inner_ethertype, is_tpid, MacAddr, ETHERTYPE_MAC_CONTROL};

/// Opcode of PFC.
pub const OPCODE_PFC: u16 = 0x0101;
/// Opcode of PAUSE.
pub const OPCODE_PAUSE: u16 = 0x0001;
/// Bytes of a MAC control frame that is sent, zero padding included and FCS not.
pub const FRAME_LEN: usize = 60;
/// Shortest PFC frame that is accepted: up to its eighth time. Some generators don't pad.
pub const PFC_MIN_LEN: usize = 34;
/// Shortest PAUSE frame that is accepted: up to its time.
pub const PAUSE_MIN_LEN: usize = 18;

/// A received MAC control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacControl {
    /// Priority-based flow control with at least one enabled priority.
    Pfc {
        /// Bit n: `quanta[n]` is valid for priority n. The vector's high byte is ignored.
        enable: u8,
        /// Pause time per priority in quanta of 512 bit times; 0 resumes at once.
        quanta: [u16; 8],
    },
    /// Pause of the whole link.
    Pause {
        /// Pause time in quanta of 512 bit times; 0 resumes at once.
        quanta: u16,
    },
    /// No effect but on a counter (SPEC 4.2).
    Invalid(InvalidKind),
}

/// Why a MAC control frame is counted as invalid: a closed set, one counter each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum InvalidKind {
    /// Ends before the fields of its opcode.
    TooShort,
    /// An opcode other than PFC and PAUSE.
    UnknownOpcode,
    /// Behind a VLAN tag, where MAC control has no meaning.
    Tagged,
    /// PFC that enables none of the eight priorities.
    EmptyVector,
}

impl InvalidKind {
    /// How many kinds there are.
    pub const COUNT: usize = 4;
    /// Every kind, in the order of [`InvalidKind::index`].
    pub const ALL: [Self; Self::COUNT] =
        [Self::TooShort, Self::UnknownOpcode, Self::Tagged, Self::EmptyVector];

    /// Position in [`InvalidKind::ALL`], for arrays of counters.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name used in counters and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooShort => "too_short",
            Self::UnknownOpcode => "unknown_opcode",
            Self::Tagged => "tagged",
            Self::EmptyVector => "empty_vector",
        }
    }
}

/// True if the frame is MAC control, plain or behind up to three tags, whatever its destination.
#[inline]
pub fn is_mac_control(frame: &[u8]) -> bool {
    match be16(frame, 12) {
        Some(ETHERTYPE_MAC_CONTROL) => true,
        Some(ethertype) if is_tpid(ethertype) => {
            inner_ethertype(frame) == Some(ETHERTYPE_MAC_CONTROL)
        }
        _ => false,
    }
}

/// Reads a frame for which [`is_mac_control`] holds.
pub fn parse_mac_control(frame: &[u8]) -> MacControl {
    use InvalidKind::{EmptyVector, Tagged, TooShort, UnknownOpcode};
    if be16(frame, 12).is_some_and(|ethertype| ethertype != ETHERTYPE_MAC_CONTROL) {
        return MacControl::Invalid(Tagged);
    }
    match be16(frame, 14) {
        None => MacControl::Invalid(TooShort),
        Some(OPCODE_PFC) => match parse_pfc(frame) {
            None => MacControl::Invalid(TooShort),
            Some((0, _)) => MacControl::Invalid(EmptyVector),
            Some((enable, quanta)) => MacControl::Pfc { enable, quanta },
        },
        Some(OPCODE_PAUSE) => be16(frame, 16)
            .map_or(MacControl::Invalid(TooShort), |quanta| MacControl::Pause { quanta }),
        Some(_) => MacControl::Invalid(UnknownOpcode),
    }
}

fn parse_pfc(frame: &[u8]) -> Option<(u8, [u16; 8])> {
    let frame = frame.first_chunk::<PFC_MIN_LEN>()?;
    let mut quanta = [0; 8];
    for (quanta, bytes) in quanta.iter_mut().zip(frame[18..].chunks_exact(2)) {
        *quanta = be16(bytes, 0)?;
    }
    Some((frame[17], quanta))
}

/// Writes a PFC frame, padded to 60 bytes (SPEC 4.1).
///
/// Bit n of `enable` makes `quanta[n]` valid; the times of clear bits are written as 0.
pub fn encode_pfc(buf: &mut [u8; FRAME_LEN], src: MacAddr, enable: u8, quanta: &[u16; 8]) {
    encode_start(buf, src, OPCODE_PFC);
    buf[17] = enable;
    for (priority, (bytes, time)) in buf[18..34].chunks_exact_mut(2).zip(quanta).enumerate() {
        if enable >> priority & 1 == 1 {
            bytes.copy_from_slice(&time.to_be_bytes());
        }
    }
}

/// Writes a PAUSE frame, padded to 60 bytes.
pub fn encode_pause(buf: &mut [u8; FRAME_LEN], src: MacAddr, quanta: u16) {
    encode_start(buf, src, OPCODE_PAUSE);
    buf[16..18].copy_from_slice(&quanta.to_be_bytes());
}

fn encode_start(buf: &mut [u8; FRAME_LEN], src: MacAddr, opcode: u16) {
    *buf = [0; FRAME_LEN];
    buf[..6].copy_from_slice(&MacAddr::MAC_CONTROL.0);
    buf[6..12].copy_from_slice(&src.0);
    buf[12..14].copy_from_slice(&ETHERTYPE_MAC_CONTROL.to_be_bytes());
    buf[14..16].copy_from_slice(&opcode.to_be_bytes());
}
