//! Formula `ieee`: the delay value of 802.1Qbb annex O, in bit times.

use super::response::quanta;
use super::{bytes_to_cells, Amount, Formula, Given, Need, Term};
use holdfast_api::amount::{span_text, Distance};
use holdfast_api::doc::Finding;
use holdfast_core::units::{BitRate, Bytes, QUANTUM_BITS};

/// A PFC frame of 64 bytes with preamble and gap.
const PFC_BITS: u64 = (64 + PREAMBLE_AND_GAP) * 8;
/// Bytes between frames and before them.
const PREAMBLE_AND_GAP: u64 = 20;
/// The longest frame where no MTU is given, its FCS included.
const LONGEST: u16 = 9_216;

pub(super) fn need(given: &Given) -> Result<Need, Finding> {
    let cable = cable_bits(given.speed, given.centimetres());
    let interfaces = bits_in(given.speed, 2 * u128::from(given.interface_delay.0));
    let quanta = quanta(given.speed)?;
    let frame = u64::from(given.mtu.unwrap_or(LONGEST));
    let frames = 2 * (frame + PREAMBLE_AND_GAP) * 8;
    let length = Distance(given.centimetres());
    let delay = match given.interface_delay.0 {
        0 => "none given for the interfaces of both ends".to_owned(),
        ns => format!("2 ends x {} of transmit and receive", span_text(ns)),
    };
    let terms = vec![
        Term::new("cable", Amount::BitTimes(cable), format!("{length}, 5 ns/m each way")),
        Term::new("interfaces", Amount::BitTimes(interfaces), delay),
        Term::new(
            "response",
            Amount::BitTimes(quanta * QUANTUM_BITS),
            format!("{quanta} quanta that the peer may take"),
        ),
        Term::new("2 x frame", Amount::BitTimes(frames), format!("2 x {frame} B with FCS")),
        Term::new("PFC frame", Amount::BitTimes(PFC_BITS), "64 B, preamble and gap"),
    ];
    let whole = terms.iter().filter_map(|term| term.amount.whole());
    let bits = whole.fold(0, u64::saturating_add);
    let bytes = Bytes(bits.div_ceil(8));
    let cells = bytes_to_cells(bytes.0, given.cell);
    Ok(Need { formula: Formula::Ieee, terms, bytes, cells, beside: Vec::new() })
}

/// Bits that are on a cable, there and back, rounded up.
fn cable_bits(rate: BitRate, centimetres: u64) -> u64 {
    // 5 ns/m and two ways: a tenth of a nanosecond a centimetre.
    let bits = u128::from(rate.bits_per_second()) * u128::from(centimetres);
    u64::try_from(bits.div_ceil(10 * 1_000_000_000)).unwrap_or(u64::MAX)
}

fn bits_in(rate: BitRate, ns: u128) -> u64 {
    let bits = u128::from(rate.bits_per_second()) * ns;
    u64::try_from(bits.div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
}
