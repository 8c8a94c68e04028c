//! Profiles from what other systems write (SPEC 10): SONiC's CONFIG_DB and `pg_profile_lookup.ini`,
//! and the PFC and MMU lines of the AC5P family's command line.
//!
//! Whatever changes its meaning on the way is a [`Note`]; what can't be expressed is a [`Finding`]
//! whose key is `TABLE|key|field` or `line N`, never a silent default. SONiC's words differ from
//! ours: its `xoff` is a headroom size, it pauses at the limit (`xoff = "limit"`), and it resumes
//! at max(xon, limit - xon_offset), which is `xon_floor` and `xon` here.

use crate::facts::{PortFacts, SwitchFacts};
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_core::units::{BitRate, CellSize, Cells};
use serde::Serialize;

mod ac5p_cli;
mod buffers;
mod config_db;
mod maps;
mod one_pool;
mod pg_lookup;
mod pgs;
mod pools;
mod ports;
mod queues;
mod share;
mod sonic;
mod watchdog;
pub(crate) use watchdog::DETECTION;

pub use pg_lookup::{PgLookup, PgRow, LOOKUP_COLUMNS};

/// The largest text that is read, bytes.
pub const MAX_INPUT: usize = 4 << 20;

/// What a text is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// SONiC's CONFIG_DB as JSON.
    Sonic,
    /// SONiC's `pg_profile_lookup.ini`.
    PgLookup,
    /// `pfc …` and `mmu …` lines of the AC5P family's command line.
    Ac5pCli,
}

impl Format {
    /// The format of `text`, where its content makes that clear.
    pub fn guess(text: &str) -> Option<Self> {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        if text.starts_with('{') {
            return Some(Self::Sonic);
        }
        let lines = || text.lines().map(str::trim);
        let is_cli = |line: &str| line.starts_with("pfc ") || line.starts_with("mmu ");
        if lines().any(is_cli) {
            return Some(Self::Ac5pCli);
        }
        let mut rows = lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        rows.next().filter(|row| pg_lookup::is_row(row)).map(|_| Self::PgLookup)
    }
}

/// What the text doesn't say.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The profile's name.
    pub name: String,
    /// Bytes a cell.
    pub cell: CellSize,
    /// All cells of the memory; `None`: `"auto"`, where the text names pools.
    pub cells: Option<Cells>,
    /// Headroom of lossless PGs that the text gives none, and their XON as an offset.
    pub assumed: Option<AssumedMarks>,
    /// `sonic`: the table that PGs without a lossless buffer profile are looked up in.
    pub lookup: Option<PgLookup>,
    /// `pg-lookup`: the row's speed.
    pub speed: Option<BitRate>,
    /// `pg-lookup`: the row's cable, as the table writes it: `40m`.
    pub cable: Option<String>,
    /// `pg-lookup`, `ac5p-cli`: how many ports share the memory.
    pub ports: Option<u32>,
}

impl ImportOptions {
    /// Nothing but a name: cells of 256 bytes.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            cell: CellSize::DEFAULT,
            cells: None,
            assumed: None,
            lookup: None,
            speed: None,
            cable: None,
            ports: None,
        }
    }
}

/// What the user gives a lossless PG that its source leaves without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssumedMarks {
    /// Size for frames in flight.
    pub headroom: Cells,
    /// Resume so far below the limit.
    pub xon: Cells,
}

/// What was read, and what it became.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Where: `TABLE|key|field`, or the line.
    pub read: String,
    /// What it became, and why.
    pub became: String,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.read, self.became)
    }
}

/// A profile from elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The profile.
    pub doc: ProfileDoc,
    /// What changed its meaning on the way.
    pub notes: Vec<Note>,
    /// What can't be had at single ports; the PGs named here are lossy in `doc`.
    pub refused: Vec<Finding>,
    /// The ports that the text names; empty where it names none, or not all their speeds.
    pub ports: Vec<PortFacts>,
}

impl Imported {
    /// The facts of the ports that the text names, to plan the profile with.
    pub fn facts(&self) -> SwitchFacts {
        SwitchFacts {
            ports: self.ports.clone(),
            flood_limit: 1_024,
            rx_ring: 2_048,
            spare_ports: 0,
        }
    }
}

/// Reads `text` as `format`.
///
/// # Errors
/// The first thing that can't be expressed, with its place, numbers and fix.
pub fn import(text: &str, format: Format, options: &ImportOptions) -> Result<Imported, Finding> {
    if text.len() > MAX_INPUT {
        let finding = Finding::new("file", "is too large", "import the tables of SPEC 10 alone");
        return Err(finding.numbers(text.len(), MAX_INPUT));
    }
    let text = text.trim_start_matches('\u{feff}');
    match format {
        Format::Sonic => sonic::import(text, options),
        Format::PgLookup => pg_lookup::import(text, options),
        Format::Ac5pCli => ac5p_cli::import(text, options),
    }
}

/// Notes that several ports share are said once.
#[derive(Debug, Default)]
struct Notes(Vec<Note>);

impl Notes {
    fn say(&mut self, read: impl Into<String>, became: impl Into<String>) {
        let note = Note { read: read.into(), became: became.into() };
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }
}

#[cfg(test)]
mod tests;
