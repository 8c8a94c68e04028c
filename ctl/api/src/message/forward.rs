//! Replies about forwarding.

use serde::{Deserialize, Serialize};

/// The answer to `show_fdb`: a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FdbReply {
    /// The page.
    pub entries: Vec<FdbEntry>,
    /// `from` of the next page; `None` after the last.
    pub next: Option<u64>,
    /// Entries in use, of all pages and ports.
    pub used: u64,
    /// Entries there are.
    pub size: u64,
    /// Addresses not learned because the FDB was full.
    pub full: u64,
    /// Addresses that moved to another port.
    pub moves: u64,
}

/// Where an entry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FdbKind {
    /// Configured: neither moves nor ages.
    Static,
    /// Learned from a source address.
    Learned,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FdbEntry {
    /// The station's address.
    pub mac: String,
    /// Its VLAN; `None` where the switch is transparent.
    pub vlan: Option<u16>,
    /// The port it lies behind.
    pub port: String,
    /// Where it comes from.
    pub kind: FdbKind,
    /// Since it was last seen, ns; 0 for static entries.
    pub age_ns: u64,
}
