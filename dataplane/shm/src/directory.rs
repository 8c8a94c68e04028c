//! What the numbers in the blocks stand for: names, which don't fit into words.

use serde::{Deserialize, Serialize};

/// The switch as its control thread knows it; published anew at each change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    /// The switch's name.
    pub switch: String,
    /// The profile in force.
    pub profile: ProfileEntry,
    /// Service pools by their number.
    pub pools: Vec<String>,
    /// Ports by their number; `None` where there is none of that number now.
    pub ports: Vec<Option<PortEntry>>,
}

/// The profile in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileEntry {
    /// Its name.
    pub name: String,
    /// Its SHA-256 as `show profile` tells it.
    pub sha256: String,
    /// Which change made it.
    pub generation: u64,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortEntry {
    /// Its name in CLI, API and metrics.
    pub name: String,
    /// The declared speed, bit/s.
    pub speed_bits_per_second: u64,
    /// Whether its profile has a lossless PG.
    pub lossless: bool,
    /// Since when it has been there, ns of `CLOCK_MONOTONIC`: a block that is older is of a port
    /// that had its number before. 0 for one that is there from the start of the switch.
    #[serde(default)]
    pub since_ns: u64,
}
