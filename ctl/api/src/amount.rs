//! Amounts as people write them: `"38400B"`, `"40KiB"`, `"55%"`, `"400G"`, `"100m"`, `"3us"`.
//!
//! Each type reads one kind, so that a rate can't stand where a time is asked. Serialising gives
//! back what was written.

use holdfast_core::units::{BitRate, Bytes, CellSize, Cells, Nanos};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Splits an error's message from its fix in texts that pass through serde.
pub(crate) const FIX_MARK: &str = "; fix: ";

/// Buffer: cells as a number, `"…B"`, `"…KiB"`, `"…MiB"`, or `"…%"` of Q_limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CellAmount {
    /// Cells.
    Cells(u32),
    /// Bytes, rounded up to cells.
    Bytes(u64),
    /// Hundredths of a percent of Q_limit (SPEC 10, AC5P step 2).
    BasisPoints(u32),
}

impl CellAmount {
    /// In cells. `q_limit` is what percentages are of; `None` where there is nothing they could
    /// be of, and then a percentage gives `None`.
    pub fn to_cells(self, cell: CellSize, q_limit: Option<Cells>) -> Option<Cells> {
        match self {
            Self::Cells(cells) => Some(Cells(cells)),
            Self::Bytes(bytes) => Some(Bytes(bytes).to_cells(cell)),
            Self::BasisPoints(points) => q_limit.map(|of| {
                let cells = u64::from(of.0) * u64::from(points) / 10_000;
                Cells(u32::try_from(cells).unwrap_or(u32::MAX))
            }),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(number) = text.strip_suffix('%') {
            let points = decimal(number, 2)?;
            let points = u32::try_from(points).ok().filter(|points| *points <= 10_000)?;
            return Some(Self::BasisPoints(points));
        }
        ByteAmount::parse(text).map(|bytes| Self::Bytes(bytes.0))
    }
}

impl fmt::Display for CellAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cells(cells) => write!(f, "{cells}"),
            Self::Bytes(bytes) => write!(f, "{}", ByteAmount(*bytes)),
            Self::BasisPoints(points) => write!(f, "{}%", f64::from(*points) / 100.0),
        }
    }
}

/// XOFF: a [`CellAmount`], or `"limit"` for what SAI and SONiC mean (SPEC 3.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum XoffAmount {
    /// At so many cells.
    At(CellAmount),
    /// At the limit of now.
    Limit,
}

/// The total: a [`CellAmount`], or `"auto"` for parts x ports + pools (SPEC 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum TotalAmount {
    /// Parts x ports + pools + spare.
    #[default]
    Auto,
    /// So many cells.
    Of(CellAmount),
}

/// Bytes: a number, `"…B"`, `"…KiB"`, `"…MiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteAmount(pub u64);

impl ByteAmount {
    fn parse(text: &str) -> Option<Self> {
        scaled(text, &[("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)]).map(Self)
    }
}

impl fmt::Display for ByteAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

/// A rate: `"400G"`, `"2.5G"`, `"100M"`, `"64k"`; bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub BitRate);

impl Rate {
    fn parse(text: &str) -> Option<Self> {
        let units =
            [("T", 1_000_000_000_000), ("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)];
        scaled(text, &units).and_then(BitRate::new).map(Self)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.bits_per_second() {
            // No unit is smaller, and what is written must be read again.
            bits if bits % 1_000 != 0 => write!(f, "{}.{:03}k", bits / 1_000, bits % 1_000),
            bits => f.write_str(&rate_text(bits)),
        }
    }
}

/// A rate in the largest unit that gives a whole number: `25G`, `2500M`.
pub fn rate_text(bits_per_second: u64) -> String {
    for (unit, size) in [("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)] {
        if bits_per_second % size == 0 && bits_per_second > 0 {
            return format!("{}{unit}", bits_per_second / size);
        }
    }
    format!("{bits_per_second} bit/s")
}

/// A time: `"300s"`, `"200ms"`, `"3us"`, `"850ns"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Nanos);

impl Span {
    fn parse(text: &str) -> Option<Self> {
        let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
        scaled(text, &units).map(|ns| Self(Nanos(ns)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&span_text(self.0 .0))
    }
}

/// A time in the largest unit that gives a whole number: `200ms`, `1500us`.
pub fn span_text(ns: u64) -> String {
    for (unit, size) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if ns % size == 0 && ns > 0 {
            return format!("{}{unit}", ns / size);
        }
    }
    format!("{ns}ns")
}

/// A length of cable: `"100m"`, `"1.5m"`, `"2km"`; kept in centimetres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance(pub u64);

impl Distance {
    fn parse(text: &str) -> Option<Self> {
        scaled(text, &[("km", 100_000), ("cm", 1), ("m", 100)]).map(Self)
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}m", self.0 as f64 / 100.0)
    }
}

/// `text` as a number and one of `units`, in the smallest of them; `None` if it is no such
/// thing, overflows, or is finer than that unit.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let start = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at_checked(start)?;
    let (_, size) = units.iter().find(|(name, _)| *name == unit)?;
    let thousandths = decimal(number.trim_end(), 3)?;
    let product = u128::from(thousandths) * u128::from(*size);
    if product % 1_000 != 0 {
        return None;
    }
    u64::try_from(product / 1_000).ok()
}

/// A decimal number times 10^`digits`, exactly; `None` for signs, exponents or more digits.
fn decimal(text: &str, digits: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let plain = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(part) || part.len() > digits {
        return None;
    }
    let scale = 10u64.checked_pow(u32::try_from(digits).ok()?)?;
    let part_scale = 10u64.checked_pow(u32::try_from(digits - part.len()).ok()?)?;
    let part = part.parse::<u64>().ok()?.checked_mul(part_scale)?;
    whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(part)
}

/// Reads one amount type from a string, or from a number where the type has plain numbers.
struct AmountVisitor<T> {
    what: &'static str,
    fix: &'static str,
    text: fn(&str) -> Option<T>,
    number: Option<fn(u64) -> Option<T>>,
}

impl<T> Visitor<'_> for AmountVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{FIX_MARK}{}", self.what, self.fix)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        let (what, fix) = (self.what, self.fix);
        (self.text)(text).ok_or_else(|| E::custom(format!("{text:?} is not {what}{FIX_MARK}{fix}")))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        let (what, fix) = (self.what, self.fix);
        let read = self.number.and_then(|read| read(number));
        read.ok_or_else(|| E::custom(format!("{number} is not {what}{FIX_MARK}{fix}")))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => {
                let (what, fix) = (self.what, self.fix);
                Err(E::custom(format!("{number} is not {what}{FIX_MARK}{fix}")))
            }
        }
    }
}

macro_rules! amount_serde {
    ($name:ident, $what:literal, $fix:expr, $text:expr, $number:expr, $out:expr) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(AmountVisitor {
                    what: $what,
                    fix: $fix,
                    text: $text,
                    number: $number,
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let write: fn(&Self, S) -> Result<S::Ok, S::Error> = $out;
                write(self, serializer)
            }
        }
    };
}

const CELLS_FIX: &str =
    "write cells as a number (4096), or \"38400B\", \"40KiB\", \"55%\" of Q_limit";

const RATE_FIX: &str = "write \"400G\", \"2.5G\", \"100M\" or \"64k\" (bit/s)";

/// As on a command line: `4096`, `40KiB`, `55%`.
impl FromStr for CellAmount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse().ok().and_then(cells);
        number.or_else(|| Self::parse(text)).ok_or_else(|| CELLS_FIX.to_owned())
    }
}

/// As on a command line: a [`CellAmount`] or `limit`.
impl FromStr for XoffAmount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "limit" => Ok(Self::Limit),
            other => other.parse().map(Self::At),
        }
    }
}

/// As on a command line: `100G`, `2.5G`.
impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| RATE_FIX.to_owned())
    }
}

fn cells(number: u64) -> Option<CellAmount> {
    u32::try_from(number).ok().map(CellAmount::Cells)
}

/// As on a command line: `3us`.
impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| "write 200ms, 3us or 850ns".to_owned())
    }
}

/// As on a command line: `40m`, `1.5m`.
impl FromStr for Distance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| "write 100m, 1.5m or 2km".to_owned())
    }
}

/// As on a command line: `1086`, `1086B`, `4KiB`.
impl FromStr for ByteAmount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|_| plain).map(Self);
        number.or_else(|| Self::parse(text)).ok_or_else(|| "write 1086, 1086B or 4KiB".to_owned())
    }
}

amount_serde!(
    CellAmount,
    "an amount of buffer",
    CELLS_FIX,
    CellAmount::parse,
    Some(cells),
    |amount, serializer| match amount {
        CellAmount::Cells(cells) => serializer.serialize_u32(*cells),
        other => serializer.collect_str(other),
    }
);
amount_serde!(
    XoffAmount,
    "an XOFF watermark",
    "write cells as a number (4096), or \"38400B\", \"40KiB\", \"55%\" of Q_limit, or \"limit\"",
    |text| match text {
        "limit" => Some(XoffAmount::Limit),
        other => CellAmount::parse(other).map(XoffAmount::At),
    },
    Some(|number| cells(number).map(XoffAmount::At)),
    |amount, serializer| match amount {
        XoffAmount::At(amount) => amount.serialize(serializer),
        XoffAmount::Limit => serializer.serialize_str("limit"),
    }
);
amount_serde!(
    TotalAmount,
    "a total of buffer",
    "write \"auto\", cells as a number (65536), or \"16MiB\"",
    |text| match text {
        "auto" => Some(TotalAmount::Auto),
        other => CellAmount::parse(other).map(TotalAmount::Of),
    },
    Some(|number| cells(number).map(TotalAmount::Of)),
    |amount, serializer| match amount {
        TotalAmount::Of(amount) => amount.serialize(serializer),
        TotalAmount::Auto => serializer.serialize_str("auto"),
    }
);
amount_serde!(
    ByteAmount,
    "an amount of bytes",
    "write bytes as a number (1086), or \"1086B\", \"4KiB\", \"1MiB\"",
    ByteAmount::parse,
    Some(|number| Some(ByteAmount(number))),
    |amount, serializer| serializer.collect_str(amount)
);
amount_serde!(Rate, "a rate", RATE_FIX, Rate::parse, None, |amount, serializer| serializer
    .collect_str(amount));
amount_serde!(
    Span,
    "a time",
    "write \"300s\", \"200ms\", \"3us\" or \"850ns\"",
    Span::parse,
    None,
    |amount, serializer| serializer.collect_str(amount)
);
amount_serde!(
    Distance,
    "a length of cable",
    "write \"100m\", \"1.5m\" or \"2km\"",
    Distance::parse,
    None,
    |amount, serializer| serializer.collect_str(amount)
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_the_spec_are_read() {
        assert_eq!(CellAmount::parse("38400B"), Some(CellAmount::Bytes(38_400)));
        assert_eq!(CellAmount::parse("40KiB"), Some(CellAmount::Bytes(40_960)));
        assert_eq!(CellAmount::parse("5%"), Some(CellAmount::BasisPoints(500)));
        assert_eq!(CellAmount::parse("12.5%"), Some(CellAmount::BasisPoints(1_250)));
        assert_eq!(Rate::parse("400G"), BitRate::new(400_000_000_000).map(Rate));
        assert_eq!(Rate::parse("2.5G"), BitRate::new(2_500_000_000).map(Rate));
        assert_eq!(Distance::parse("100m"), Some(Distance(10_000)));
        assert_eq!(Span::parse("3us"), Some(Span(Nanos(3_000))));
        assert_eq!(Span::parse("1.5us"), Some(Span(Nanos(1_500))));
    }

    #[test]
    fn command_lines_write_cells_plainly() {
        assert_eq!("4096".parse(), Ok(CellAmount::Cells(4_096)));
        assert_eq!("40KiB".parse(), Ok(CellAmount::Bytes(40_960)));
        assert_eq!("limit".parse(), Ok(XoffAmount::Limit));
        assert_eq!("55%".parse(), Ok(XoffAmount::At(CellAmount::BasisPoints(5_500))));
        assert_eq!("2.5G".parse().ok(), BitRate::new(2_500_000_000).map(Rate));
        assert!("2.5".parse::<Rate>().is_err());
        assert!("-1".parse::<CellAmount>().is_err());
        assert!("4294967296".parse::<CellAmount>().is_err());
    }

    #[test]
    fn command_lines_write_times_lengths_and_bytes() {
        assert_eq!("40m".parse(), Ok(Distance(4_000)));
        assert_eq!("3us".parse(), Ok(Span(Nanos(3_000))));
        assert_eq!("1086".parse(), Ok(ByteAmount(1_086)));
        assert_eq!("4KiB".parse(), Ok(ByteAmount(4_096)));
        assert!("3".parse::<Span>().is_err() && "3".parse::<Distance>().is_err());
        assert!("+1".parse::<ByteAmount>().is_err() && "".parse::<ByteAmount>().is_err());
    }

    #[test]
    fn bytes_round_up_to_cells_and_percent_is_of_q_limit() {
        let cell = CellSize::DEFAULT;
        assert_eq!(CellAmount::Bytes(38_401).to_cells(cell, None), Some(Cells(151)));
        let q_limit = Some(Cells(8_192));
        assert_eq!(CellAmount::BasisPoints(5_000).to_cells(cell, q_limit), Some(Cells(4_096)));
        assert_eq!(CellAmount::BasisPoints(5_000).to_cells(cell, None), None);
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", "B", "-1B", "+1B", "1e3B", "1 KB", "12x", "101%", "0.0001%", "1.2.3B"] {
            assert_eq!(CellAmount::parse(text), None, "{text}");
        }
        for text in ["0G", "G", "400", "400g", "99999999999999999999G"] {
            assert_eq!(Rate::parse(text), None, "{text}");
        }
        for text in ["3", "3m", "us", "0.5ns", "3 us s"] {
            assert_eq!(Span::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for bits in [1, 1_500, 64_000, 6_677_973_280, 100_000_000, 2_500_000_000, 400_000_000_000] {
            let text = Rate(BitRate::new(bits).unwrap()).to_string();
            assert_eq!(Rate::parse(&text).map(|r| r.0.bits_per_second()), Some(bits), "{text}");
        }
        for ns in [0, 1, 1_000, 1_500, 200_000_000, 300_000_000_000] {
            assert_eq!(Span::parse(&span_text(ns)), Some(Span(Nanos(ns))));
        }
    }
}
