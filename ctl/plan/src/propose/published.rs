//! The family's published ranges, and what is shipped for them. Cells of 256 bytes.

use holdfast_core::units::{BitRate, Bytes, CellSize, Cells, Nanos};

/// Bytes of the cells that published numbers are in.
const PUBLISHED_CELL: u64 = 256;

/// One row: how far a link of that speed reaches, and its thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Gbit/s.
    pub gigabits: u64,
    /// The end of the shipped profile's name.
    pub name: &'static str,
    /// The cables it is for.
    pub cables: &'static str,
    /// The loop.
    pub t_loop: Nanos,
    /// Headroom, where a range is published.
    pub headroom: Option<(u32, u32)>,
    /// Published range of XOFF.
    pub xoff: (u32, u32),
    /// XOFF as shipped.
    pub shipped_xoff: u32,
}

const NIC: (&str, &str, Nanos) = ("tor-nic", "DAC or AOC up to 3 m", Nanos(1_500));
const LEAF: (&str, &str, Nanos) = ("leaf-spine", "30..100 m of multimode fibre", Nanos(3_000));
const LONG: (&str, &str, Nanos) = ("long", "300..500 m", Nanos(5_000));

const fn row(
    gigabits: u64,
    (name, cables, t_loop): (&'static str, &'static str, Nanos),
    headroom: Option<(u32, u32)>,
    xoff: (u32, u32),
    shipped_xoff: u32,
) -> Reach {
    Reach { gigabits, name, cables, t_loop, headroom, xoff, shipped_xoff }
}

/// All rows, the shorter loop first.
pub const REACHES: [Reach; 6] = [
    row(400, NIC, Some((384, 512)), (5_200, 6_000), 6_000),
    row(400, LEAF, Some((640, 768)), (6_200, 7_200), 6_800),
    row(400, LONG, Some((1_024, 1_408)), (6_800, 7_800), 7_800),
    row(100, NIC, None, (1_700, 2_500), 2_000),
    row(100, LEAF, None, (1_700, 2_500), 2_300),
    row(100, LONG, None, (1_700, 2_500), 2_500),
];

impl Reach {
    /// The first row of that speed whose loop isn't shorter.
    pub fn of(speed: BitRate, t_loop: Nanos) -> Option<&'static Self> {
        let mut rows = REACHES.iter().filter(|row| BitRate::gigabits(row.gigabits) == speed);
        rows.find(|row| t_loop <= row.t_loop)
    }
}

/// The top of the published range for a loop at 400G, of the last range beyond them all: links
/// of this speed and above never get less.
pub(super) fn least_headroom(t_loop: Nanos, cell: CellSize) -> Cells {
    let mut ranges =
        REACHES.iter().filter_map(|row| row.headroom.map(|(_, top)| (row.t_loop, top)));
    let top = ranges.clone().find(|(reach, _)| t_loop <= *reach).or_else(|| ranges.next_back());
    base(top.map_or(0, |(_, top)| top), cell)
}

/// The marking line as published for a speed.
pub(super) fn marking_line(speed: BitRate, cell: CellSize) -> Option<(Cells, Cells)> {
    let rows = [(400, 400, 2_400), (100, 100, 800)];
    let row = rows.iter().find(|(gigabits, ..)| BitRate::gigabits(*gigabits) == speed);
    row.map(|(_, kmin, kmax)| (base(*kmin, cell), base(*kmax, cell)))
}

/// A published number of cells in cells of this size, rounded up.
pub(super) fn base(cells: u32, cell: CellSize) -> Cells {
    Bytes(u64::from(cells) * PUBLISHED_CELL).to_cells(cell)
}
