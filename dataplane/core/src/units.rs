//! Units as types (DESIGN 3): a number never travels without saying what it counts.

use core::fmt;

/// Bytes that preamble, start delimiter, FCS and inter-packet gap add to a frame on the wire.
pub const WIRE_OVERHEAD_BYTES: u32 = 24;
/// Bits in one pause quantum (802.1Qbb, 802.3 annex 31B): 512 bit times.
pub const QUANTUM_BITS: u64 = 512;
/// The largest occupancy one segment of an account can hold: its field is 21 bits wide.
pub const MAX_SEGMENT_CELLS: u32 = (1 << 21) - 1;

/// A count of MMU cells (SPEC 1). Made from bytes only by [`Bytes::to_cells`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cells(pub u32);

impl Cells {
    /// No cells.
    pub const ZERO: Self = Self(0);

    /// The difference, 0 where it would be negative.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The sum, stopping at `u32::MAX`.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cells", self.0)
    }
}

/// The size of one cell in bytes, at least 64 (SPEC 1, default 256).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellSize(u32);

impl CellSize {
    /// The default of the family: 256 bytes.
    pub const DEFAULT: Self = Self(256);

    /// A cell size between 64 and 4096 bytes, `None` outside.
    pub const fn new(bytes: u32) -> Option<Self> {
        if bytes >= 64 && bytes <= 4096 {
            Some(Self(bytes))
        } else {
            None
        }
    }

    /// Bytes a cell.
    pub const fn bytes(self) -> u32 {
        self.0
    }
}

/// A count of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Cells that hold this many bytes, rounded up; saturates at `u32::MAX`.
    pub const fn to_cells(self, cell: CellSize) -> Cells {
        let cells = self.0.div_ceil(cell.0 as u64);
        Cells(if cells > u32::MAX as u64 { u32::MAX } else { cells as u32 })
    }
}

/// Length of a frame in bytes from destination MAC to the last payload byte, without FCS (SPEC 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameLen(pub u16);

impl FrameLen {
    /// Cells the frame takes: ceil(L / cell).
    #[inline]
    pub const fn to_cells(self, cell: CellSize) -> Cells {
        Cells((self.0 as u32).div_ceil(cell.0))
    }

    /// What the frame takes on the wire: 24 bytes more (SPEC 6).
    #[inline]
    pub const fn on_wire(self) -> WireBytes {
        WireBytes(self.0 as u32 + WIRE_OVERHEAD_BYTES)
    }
}

/// Bytes on the wire, preamble, FCS and gap included: what the shaper counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WireBytes(pub u32);

/// Bits a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitRate(u64);

impl BitRate {
    /// A rate of at least one bit a second, `None` for 0.
    pub const fn new(bits_per_second: u64) -> Option<Self> {
        if bits_per_second == 0 {
            None
        } else {
            Some(Self(bits_per_second))
        }
    }

    /// So many gigabits a second; 0 counts as 1.
    pub const fn gigabits(n: u64) -> Self {
        Self(if n == 0 { 1 } else { n * 1_000_000_000 })
    }

    /// Bits a second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// The time that `bits` take at this rate, rounded up.
    pub const fn time_of_bits(self, bits: u64) -> Nanos {
        let ns = (bits as u128 * 1_000_000_000).div_ceil(self.0 as u128);
        Nanos(if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 })
    }

    /// The time that a frame takes on the wire.
    pub const fn time_of(self, wire: WireBytes) -> Nanos {
        self.time_of_bits(wire.0 as u64 * 8)
    }

    /// Bytes that pass in `span`, rounded down.
    pub const fn bytes_in(self, span: Nanos) -> Bytes {
        let bytes = self.0 as u128 * span.0 as u128 / 8_000_000_000;
        Bytes(if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 })
    }
}

/// Pause time in quanta of 512 bit times (802.1Qbb).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quanta(pub u16);

impl Quanta {
    /// How long so many quanta last at a link's speed, rounded up.
    pub const fn at(self, speed: BitRate) -> Nanos {
        speed.time_of_bits(self.0 as u64 * QUANTUM_BITS)
    }
}

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl Nanos {
    /// So many microseconds.
    pub const fn micros(n: u64) -> Self {
        Self(n * 1_000)
    }
    /// So many milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }
}

/// A point in time: nanoseconds since an origin that the caller of `Worker::step` chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

impl Time {
    /// The latest point there is: a deadline that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// This point and a span after it; saturates at [`Time::NEVER`].
    #[inline]
    pub const fn after(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The span since `earlier`, 0 if that lies ahead.
    #[inline]
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The factor of a dynamic threshold: alpha = 2^n, n in -8..=7 (SPEC 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alpha(i8);

impl Alpha {
    /// alpha = 2^`log2`; `None` outside -8..=7.
    pub const fn new(log2: i8) -> Option<Self> {
        if log2 >= -8 && log2 <= 7 {
            Some(Self(log2))
        } else {
            None
        }
    }

    /// The exponent.
    pub const fn log2(self) -> i8 {
        self.0
    }

    /// alpha * free, rounded down and never wrapping.
    #[inline]
    pub const fn of(self, free: Cells) -> Cells {
        let wide = free.0 as u64;
        let scaled = if self.0 >= 0 { wide << self.0 } else { wide >> -self.0 };
        Cells(if scaled > u32::MAX as u64 { u32::MAX } else { scaled as u32 })
    }
}

/// A probability in units of 1/65536, from 0 to 65536 inclusive: no floats in the core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prob16(u32);

impl Prob16 {
    /// Never.
    pub const ZERO: Self = Self(0);
    /// Always.
    pub const ONE: Self = Self(65_536);

    /// A probability of `units` / 65536; `None` above 1.
    pub const fn new(units: u32) -> Option<Self> {
        if units <= 65_536 {
            Some(Self(units))
        } else {
            None
        }
    }

    /// Units of 1/65536.
    pub const fn units(self) -> u32 {
        self.0
    }
}
