//! Headers and codecs of the frames a lossless switch must understand.
//!
//! Pure functions over byte slices: no allocation, no clock, no file descriptor, and no panic on
//! any input. A frame runs from its destination MAC to its last payload byte, without FCS.
//!
//! - [`ethernet`]: addresses, VLAN tags, and the parser of the receive path.
//! - [`ip`]: ECN code points and the CE rewrite of WRED.
//! - [`mac_control`]: PFC (IEEE 802.1Qbb) and PAUSE (IEEE 802.3 annex 31B).
//! - [`roce`]: RoCEv2 packets and their invariant CRC.
#![forbid(unsafe_code)]

pub mod ethernet;
pub mod ip;
pub mod mac_control;
pub mod roce;

pub use ethernet::{parse, Headers, IpHeader, MacAddr, ParseError, Tag, L3};
pub use ip::{mark_ce, Ecn, L3Kind, Marking};
pub use mac_control::{is_mac_control, parse_mac_control, InvalidKind, MacControl};

/// The big-endian 16-bit field at `at`, if the frame reaches that far.
#[inline(always)]
pub(crate) fn be16(frame: &[u8], at: usize) -> Option<u16> {
    let bytes = frame.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*bytes))
}
