//! Headroom formulas (facts of SPEC 10): what may be in flight once XOFF is decided.

use holdfast_core::io::BURST;
use holdfast_core::units::{BitRate, Bytes, CellSize, Cells, FrameLen, Nanos};

/// A PFC frame with its FCS.
const PFC_FRAME: Bytes = Bytes(64);

/// The terms of formula `cpu`, a switch on a CPU: what is in the RX ring when XOFF is decided
/// lands in Headroom too.
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
    let reaction = bytes_to_cells(rate.bytes_in(xoff_reaction).0 + PFC_FRAME.0, cell);
    let frames = rx_backlog_mark.saturating_add(2 * BURST as u32);
    let cells_a_frame = largest.to_cells(cell);
    let waiting = Cells(frames.saturating_mul(cells_a_frame.0));
    let need = waiting.saturating_add(reaction);
    CpuTerms { reaction, frames, cells_a_frame, need }
}

/// Formula `ac5p`: rate * T_loop / 8 + 2 * MTU + PFC frame.
pub fn ac5p(rate: BitRate, t_loop: Nanos, mtu: u16, cell: CellSize) -> Cells {
    bytes_to_cells(rate.bytes_in(t_loop).0 + 2 * u64::from(mtu) + PFC_FRAME.0, cell)
}

/// Formula `exact`: need(L) = cells(L) * (ceil(D / wire time of L) + 1) with D = T_loop.
pub fn exact(rate: BitRate, t_loop: Nanos, frame: FrameLen, cell: CellSize) -> Cells {
    // Bits of D against bits of a frame: exact where nanoseconds a frame would be rounded.
    let loop_bits = u128::from(rate.bits_per_second()) * u128::from(t_loop.0);
    let frame_bits = u128::from(frame.on_wire().0) * 8 * 1_000_000_000;
    let frames = loop_bits.div_ceil(frame_bits) + 1;
    let cells = frames * u128::from(frame.to_cells(cell).0);
    Cells(u32::try_from(cells).unwrap_or(u32::MAX))
}

const fn bytes_to_cells(bytes: u64, cell: CellSize) -> Cells {
    Bytes(bytes).to_cells(cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: CellSize = CellSize::DEFAULT;

    #[test]
    fn cpu_gives_the_worked_examples() {
        let reaction = Nanos::micros(100);
        let need =
            |gbit, len| cpu(BitRate::gigabits(gbit), reaction, 256, FrameLen(len), CELL).need;
        assert_eq!(need(1, 1500), Cells(2_354));
        assert_eq!(need(10, 1500), Cells(2_793));
        assert_eq!(need(10, 4170), Cells(7_017));
    }

    #[test]
    fn ac5p_gives_the_exact_terms_of_its_example() {
        let rate = BitRate::gigabits(400);
        assert_eq!(ac5p(rate, Nanos::micros(3), 4096, CELL), Cells(619));
    }

    #[test]
    fn exact_gives_the_table() {
        let need = |gbit, ns, len| exact(BitRate::gigabits(gbit), Nanos(ns), FrameLen(len), CELL).0;
        let row = |gbit, ns| [64, 1086, 4170, 9216].map(|len| need(gbit, ns, len));
        assert_eq!(row(400, 1_500), [854, 345, 323, 360]);
        assert_eq!(row(400, 3_000), [1706, 685, 629, 648]);
        assert_eq!(row(400, 5_000), [2842, 1135, 1037, 1044]);
        assert_eq!(row(100, 1_500), [215, 90, 102, 144]);
        assert_eq!(row(100, 3_000), [428, 175, 170, 216]);
        assert_eq!(row(100, 5_000), [712, 290, 272, 288]);
    }
}
