//! Formula `exact`: frame by frame, each rounded up to cells.

use super::{Amount, Formula, Given, Need, Term};
use holdfast_api::amount::{rate_text, span_text};
use holdfast_core::units::{BitRate, Bytes, CellSize, Cells, FrameLen, Nanos, WireBytes};

/// A largest frame that is already leaving when the PFC frame wants to: 9216 bytes and 24 of
/// preamble, FCS and gap.
pub const REVERSE_FRAME: WireBytes = WireBytes(9_240);

/// Formula `exact`: need(L) = cells(L) * (ceil(D / wire time of L) + 1) with D = T_loop: a PFC
/// frame can leave at once.
pub fn exact(rate: BitRate, t_loop: Nanos, frame: FrameLen, cell: CellSize) -> Cells {
    cells_of(frames_within(rate, t_loop, WireBytes(0), frame), frame, cell)
}

/// Formula `exact` with D = T_loop and the time of a frame, [`REVERSE_FRAME`] by default, that
/// is leaving when the PFC frame wants to.
pub fn exact_behind_a_frame(
    rate: BitRate,
    t_loop: Nanos,
    leaving: WireBytes,
    frame: FrameLen,
    cell: CellSize,
) -> Cells {
    cells_of(frames_within(rate, t_loop, leaving, frame), frame, cell)
}

/// The longest frame, without FCS and up to `longest`, whose need exceeds `headroom`: longer ones
/// are safe. `None` if all from 60 bytes on are.
pub fn holds_above(
    need: impl Fn(FrameLen) -> Cells,
    headroom: Cells,
    longest: FrameLen,
) -> Option<FrameLen> {
    (60..=longest.0).rev().map(FrameLen).find(|frame| need(*frame) > headroom)
}

/// ceil(D / wire time) + 1.
fn frames_within(rate: BitRate, t_loop: Nanos, leaving: WireBytes, frame: FrameLen) -> u128 {
    // Bits of D against bits of a frame: exact where nanoseconds a frame would be rounded.
    let billionths = |bytes: WireBytes| u128::from(bytes.0) * 8 * 1_000_000_000;
    let loop_bits = u128::from(rate.bits_per_second()) * u128::from(t_loop.0);
    (loop_bits + billionths(leaving)).div_ceil(billionths(frame.on_wire())) + 1
}

fn cells_of(frames: u128, frame: FrameLen, cell: CellSize) -> Cells {
    let cells = frames.saturating_mul(u128::from(frame.to_cells(cell).0));
    Cells(u32::try_from(cells).unwrap_or(u32::MAX))
}

/// A largest frame on the wire: as in the other formulas of the field the MTU is its length.
fn leaving(given: &Given) -> WireBytes {
    given.mtu.map_or(REVERSE_FRAME, |mtu| FrameLen(mtu).on_wire())
}

pub(super) fn need(given: &Given) -> Need {
    let (rate, span, frame, cell) = (given.speed, given.whole_loop(), given.smallest, given.cell);
    let behind = leaving(given);
    let in_way = if given.reverse_frame { behind } else { WireBytes(0) };
    let of = |in_way| exact_behind_a_frame(rate, span, in_way, frame, cell);
    let frames = u64::try_from(frames_within(rate, span, in_way, frame)).unwrap_or(u64::MAX);
    let mut terms = vec![Term::new(
        "loop",
        Amount::Bytes(rate.bytes_in(span).0),
        format!("{} x {} / 8", rate_text(rate.bits_per_second()), span_text(span.0)),
    )];
    if given.reverse_frame {
        let how = "a largest frame that is leaving when the PFC frame wants to";
        terms.push(Term::new("reverse frame", Amount::Bytes(behind.0.into()), how));
    }
    let on_wire = u64::from(frame.on_wire().0);
    let each = format!("{} B and 24 of preamble, FCS and gap", frame.0);
    let a_frame = frame.to_cells(cell);
    terms.extend([
        Term::new("smallest lossless frame", Amount::Bytes(on_wire), each),
        Term::new("in flight", Amount::Frames(frames), "rounded up, and one that has begun"),
        Term::new("each frame", Amount::Cells(a_frame.0.into()), "rounded up to cells"),
    ]);
    let cells = of(in_way);
    let bytes = Bytes(u64::from(cells.0) * u64::from(cell.bytes()));
    let (other, how) = if given.reverse_frame {
        (of(WireBytes(0)), "if a PFC frame can leave at once")
    } else {
        (of(behind), "if a largest frame is just leaving the other way")
    };
    let beside = vec![Term::new("need otherwise", Amount::Cells(other.0.into()), how)];
    Need { formula: Formula::Exact, terms, bytes, cells, beside }
}
