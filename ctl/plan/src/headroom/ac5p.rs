//! Formula `ac5p`, the family's rule of thumb.

use super::{bytes_to_cells, Amount, Formula, Given, Need, Term, PFC_FRAME};
use holdfast_api::amount::{rate_text, span_text};
use holdfast_core::units::{BitRate, Bytes, CellSize, Cells, Nanos};

/// From this MTU on, two frames and the PFC frame are taken as a flat [`FLAT`].
pub const FLAT_FROM_MTU: u16 = 9_216;
/// The flat part of the field's worked example.
const FLAT: Bytes = Bytes(20_000);

/// Formula `ac5p`: rate * T_loop / 8 + 2 * MTU + PFC frame; from an MTU of [`FLAT_FROM_MTU`] on
/// the last two are at least the flat 20 KB of the field's worked example.
pub fn ac5p(rate: BitRate, t_loop: Nanos, mtu: u16, cell: CellSize) -> Cells {
    bytes_to_cells(rate.bytes_in(t_loop).0.saturating_add(frames(mtu).0), cell)
}

/// Two frames and the PFC frame.
fn frames(mtu: u16) -> Bytes {
    let exact = 2 * u64::from(mtu) + PFC_FRAME.0;
    Bytes(if mtu >= FLAT_FROM_MTU { exact.max(FLAT.0) } else { exact })
}

pub(super) fn need(given: &Given) -> Need {
    let (rate, span) = (given.speed, given.whole_loop());
    let in_loop = rate.bytes_in(span);
    let of = format!("{} x {} / 8", rate_text(rate.bits_per_second()), span_text(span.0));
    let mut terms = vec![Term::new("rate x T_loop", Amount::Bytes(in_loop.0), of)];
    let mtu = given.mtu.unwrap_or(FLAT_FROM_MTU);
    let frames = frames(mtu);
    if frames == FLAT {
        let how = format!("flat 20 KB: two frames of MTU {FLAT_FROM_MTU} and more, PFC frame");
        terms.push(Term::new("frames", Amount::Bytes(frames.0), how));
    } else {
        let two = Amount::Bytes(frames.0 - PFC_FRAME.0);
        terms.push(Term::new("2 x MTU", two, format!("2 x {mtu} B")));
        terms.push(Term::new("PFC frame", Amount::Bytes(PFC_FRAME.0), "64 B with its FCS"));
    }
    let bytes = Bytes(in_loop.0.saturating_add(frames.0));
    let cells = ac5p(rate, span, mtu, given.cell);
    Need { formula: Formula::Ac5p, terms, bytes, cells, beside: Vec::new() }
}
