//! Formula `cpu`, a switch on a CPU: what is in the RX ring when XOFF is decided lands in
//! Headroom too.

use super::{bytes_to_cells, Amount, Formula, Given, Need, Term, PFC_FRAME};
use holdfast_api::amount::{rate_text, span_text};
use holdfast_core::io::BURST;
use holdfast_core::units::{BitRate, Bytes, CellSize, Cells, FrameLen, Nanos};

/// The terms of formula `cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTerms {
    /// What arrives while XOFF is on its way to the wire, and the PFC frame itself.
    pub reaction: Cells,
    /// Frames that may wait already: the mark and two bursts.
    pub frames: u32,
    /// Cells of the largest lossless frame.
    pub cells_a_frame: Cells,
    /// All together.
    pub need: Cells,
}

/// Formula `cpu`: rate * xoff_reaction / 8 + PFC frame, and (mark + 2 bursts) largest frames.
pub fn cpu(
    rate: BitRate,
    xoff_reaction: Nanos,
    rx_backlog_mark: u32,
    largest: FrameLen,
    cell: CellSize,
) -> CpuTerms {
    let reaction = bytes_to_cells(rate.bytes_in(xoff_reaction).0.saturating_add(PFC_FRAME.0), cell);
    let frames = rx_backlog_mark.saturating_add(2 * BURST as u32);
    let cells_a_frame = largest.to_cells(cell);
    let waiting = Cells(frames.saturating_mul(cells_a_frame.0));
    let need = waiting.saturating_add(reaction);
    CpuTerms { reaction, frames, cells_a_frame, need }
}

pub(super) fn need(given: &Given) -> Need {
    let (rate, span, cell) = (given.speed, given.xoff_reaction, given.cell);
    let largest = given.longest_frame();
    let terms = cpu(rate, span, given.rx_backlog_mark, largest, cell);
    let reaction = format!(
        "{} x {} of reaction + {} B of PFC frame",
        rate_text(rate.bits_per_second()),
        span_text(span.0),
        PFC_FRAME.0
    );
    let frames = format!("mark {} + 2 bursts of {BURST} in the RX ring", given.rx_backlog_mark);
    let each = format!("a largest lossless frame of {} B", largest.0);
    Need {
        formula: Formula::Cpu,
        terms: vec![
            Term::new("reaction", Amount::Cells(terms.reaction.0.into()), reaction),
            Term::new("waiting", Amount::Frames(terms.frames.into()), frames),
            Term::new("each frame", Amount::Cells(terms.cells_a_frame.0.into()), each),
        ],
        bytes: Bytes(u64::from(terms.need.0) * u64::from(cell.bytes())),
        cells: terms.need,
        beside: Vec::new(),
    }
}
