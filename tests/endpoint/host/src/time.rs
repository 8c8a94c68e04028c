//! Points and spans of time, and link speeds.

use core::fmt;
use core::ops::{Add, AddAssign};
use core::str::FromStr;

use serde::Serialize;

/// A point in time: nanoseconds since an origin that both ends of a link share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Time(pub u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Nanos(pub u64);

impl Time {
    /// The span since `earlier`; zero if that is later.
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// The point `span` before this one, not before the origin.
    pub const fn before(self, span: Nanos) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add<Nanos> for Time {
    type Output = Self;

    fn add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

/// Bits in a pause quantum (802.3 annex 31B.2).
const QUANTUM_BITS: u64 = 512;
/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Bits per second, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

impl BitRate {
    /// A rate of `bits` per second; `None` for 0.
    pub const fn new(bits: u64) -> Option<Self> {
        if bits == 0 {
            None
        } else {
            Some(Self(bits))
        }
    }

    /// Bits per second.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// How long `quanta` of 512 bit times last at this speed, rounded up.
    pub const fn quanta(self, quanta: u16) -> Nanos {
        let bits = quanta as u64 * QUANTUM_BITS;
        Nanos((bits * SECOND).div_ceil(self.0))
    }
}

/// Why a text is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BitRateError {
    /// Not digits with an optional decimal part and suffix.
    #[error("\"{0}\" is not a rate such as 800M, 2.5G or 1000000 (bits per second)")]
    Form(String),
    /// Zero, or too large for 64 bits.
    #[error("\"{0}\" is out of range: 1 bit per second to 10000G")]
    Range(String),
}

impl FromStr for BitRate {
    type Err = BitRateError;

    /// Reads `1000000`, `800M`, `2.5G`: bits per second with K, M or G as powers of 1000.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || BitRateError::Form(text.to_owned());
        let (digits, unit) = match text.char_indices().next_back() {
            Some((at, 'k' | 'K')) => (&text[..at], 1_000u64),
            Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
            Some((at, 'g' | 'G')) => (&text[..at], 1_000_000_000),
            _ => (text, 1),
        };
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
        let number = |part: &str| {
            let plain = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<u64>().ok().filter(|_| plain && part.len() <= 18).ok_or_else(form)
        };
        let (whole, scale) = (number(whole)?, 10u128.pow(decimals.len().min(18) as u32));
        let part = u128::from(number(decimals)?) * u128::from(unit) / scale;
        let bits = u128::from(whole) * u128::from(unit) + part;
        let bits = u64::try_from(bits).ok().filter(|&bits| bits <= 10_000 * SECOND);
        bits.and_then(Self::new).ok_or_else(|| BitRateError::Range(text.to_owned()))
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bits if bits % SECOND == 0 => write!(f, "{}G", bits / SECOND),
            bits if bits % 1_000_000 == 0 => write!(f, "{}M", bits / 1_000_000),
            bits => write!(f, "{bits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        for (text, bits) in
            [("1", 1), ("800M", 800_000_000), ("2.5G", 2_500_000_000), ("64k", 64_000)]
        {
            assert_eq!(text.parse::<BitRate>().map(BitRate::bits), Ok(bits), "{text}");
        }
        for bad in ["", "G", "1.G", ".5G", "-1", "+1", "1GG", "1e9", "1 G", "€"] {
            assert_eq!(bad.parse::<BitRate>(), Err(BitRateError::Form(bad.to_owned())));
        }
        for far in ["0", "0.0G", "10001G", "999999999999999999G"] {
            assert_eq!(far.parse::<BitRate>(), Err(BitRateError::Range(far.to_owned())));
        }
        assert_eq!(BitRate(25 * SECOND).to_string(), "25G");
        assert_eq!(BitRate(800_000_000).to_string(), "800M");
    }

    #[test]
    fn the_longest_pause_at_the_speeds_of_the_field() {
        let longest = |text: &str| text.parse::<BitRate>().unwrap().quanta(u16::MAX);
        assert_eq!(longest("10G"), Nanos(3_355_392));
        assert_eq!(longest("400G"), Nanos(83_885));
        assert_eq!(longest("1G"), Nanos(33_553_920));
    }
}
