//! `[formula]`: how Headroom was computed, and so what it is held to.

use crate::amount::{ByteAmount, Distance, Span, FIX_MARK};
use serde::{de, Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Which formula Headroom was computed by (facts of SPEC 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormulaKind {
    /// A switch on a CPU: reaction time, RX backlog and bursts.
    Cpu,
    /// The family's rule of thumb: rate x loop + two frames + the pause frame.
    Ac5p,
    /// Frame by frame, from the smallest lossless frame.
    Exact,
    /// The delay value of 802.1Qbb annex O, in bit times.
    Ieee,
    /// What SONiC computes for a port of a Mellanox ASIC.
    Sonic,
    /// What the mlx5 driver computes for a NIC's receive buffer.
    Mlx5,
}

/// How Headroom was computed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormulaDoc {
    /// Which.
    pub kind: FormulaKind,
    /// `cpu`: from the charge that decides XOFF to its frame on the wire; default 100us.
    pub xoff_reaction: Option<Span>,
    /// `ac5p`, `exact`: from our XOFF to the last frame that was under way; needed there unless
    /// `cable` is given.
    pub t_loop: Option<Span>,
    /// Length of cable. `ac5p`, `exact`: counted at 5 ns/m each way on top of `t_loop`; `ieee`,
    /// `sonic`, `mlx5`: needed.
    pub cable: Option<Distance>,
    /// `ieee`: transmit plus receive delay of one end's interface; default 0.
    pub interface_delay: Option<Span>,
    /// `sonic`: share of bytes in small packets; default 100 %.
    pub small_share: Option<Share>,
    /// `sonic`: MTU of lossless traffic, bytes; default 1024.
    pub lossless_mtu: Option<u16>,
    /// `sonic`: bytes that one gearbox holds; default 0.
    pub gearbox: Option<ByteAmount>,
}

/// A share in whole percent, 0..100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u8);

/// What to do about a share that is none.
const SHARE_FIX: &str = "write whole percent: 0%..100%";

impl Share {
    /// Everything.
    pub const ALL: Self = Self(100);

    /// Nothing.
    pub const NONE: Self = Self(0);

    /// So many percent; `None` above 100.
    pub const fn new(percent: u8) -> Option<Self> {
        if percent <= 100 {
            Some(Self(percent))
        } else {
            None
        }
    }

    /// Percent.
    pub const fn percent(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

/// As on a command line: `50%` or `50`.
impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let share = number.parse().ok().filter(|_| plain).and_then(Self::new);
        share.ok_or_else(|| SHARE_FIX.to_owned())
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}%", self.0))
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || de::Error::custom(format!("{text:?} is no share{FIX_MARK}{SHARE_FIX}"));
        text.parse().map_err(|_| wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_whole_percent_and_written_as_it_is_read() {
        for (text, percent) in [("0%", 0), ("50%", 50), ("100%", 100), ("7", 7), ("7 %", 7)] {
            assert_eq!(text.parse::<Share>().map(Share::percent), Ok(percent), "{text}");
        }
        for text in ["101%", "256", "-1%", "+1", "", "%", "1.5%", "x"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
        let doc: FormulaDoc =
            toml::from_str("kind = \"sonic\"\ncable = \"40m\"\nsmall_share = \"50%\"\n").unwrap();
        assert_eq!(doc.small_share, Share::new(50));
        let again: FormulaDoc = toml::from_str(&toml::to_string(&doc).unwrap()).unwrap();
        assert_eq!(again, doc);
        let wrong = "kind = \"sonic\"\nsmall_share = \"150%\"\n";
        assert!(toml::from_str::<FormulaDoc>(wrong).unwrap_err().message().contains("no share"));
    }
}
