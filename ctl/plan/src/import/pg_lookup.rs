//! `pg_profile_lookup.ini`: thresholds of a lossless PG by speed and cable.

use super::buffers::{Bound, Buffer, LosslessBytes};
use super::one_pool::{one_pool, OnePool, ONE_POOL};
use super::pgs::lossless;
use super::{ImportOptions, Imported, Notes};
use holdfast_api::amount::rate_text;
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::Slot;
use holdfast_core::units::{BitRate, CellSize};
use std::collections::BTreeMap;

/// The columns in their order.
pub const LOOKUP_COLUMNS: &str = "# speed cable size xon xoff threshold xon_offset";

/// One row, amounts in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PgRow {
    /// Mb/s.
    pub speed: u64,
    /// As written: `40m`.
    pub cable: String,
    /// Reserved to the PG.
    pub size: u64,
    /// Least resume level.
    pub xon: u64,
    /// Headroom: a size.
    pub xoff: u64,
    /// alpha = 2^threshold.
    pub threshold: i8,
    /// Resume so far below the limit.
    pub xon_offset: Option<u64>,
}

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PgLookup {
    /// Rows, each with the number of its line.
    rows: Vec<(usize, PgRow)>,
}

/// Whether a line looks like a row of such a table.
pub(super) fn is_row(line: &str) -> bool {
    let columns: Vec<&str> = without_comment(line).split_whitespace().collect();
    matches!(columns.len(), 6 | 7)
        && columns[0].parse::<u64>().is_ok()
        && columns[2..].iter().all(|column| column.parse::<i64>().is_ok())
}

fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

impl PgLookup {
    /// Reads a table: `#` starts a comment, six or seven columns a line.
    ///
    /// # Errors
    /// The line that is no row, or has the speed and cable of an earlier one.
    pub fn parse(text: &str) -> Result<Self, Finding> {
        let mut rows: Vec<(usize, PgRow)> = Vec::new();
        let mut seen = BTreeMap::new();
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
            let line = without_comment(line);
            if line.is_empty() {
                continue;
            }
            let key = format!("line {number}");
            let row = row(line).ok_or_else(|| {
                let fix = format!("write: {}", &LOOKUP_COLUMNS[2..]);
                Finding::new(&key, format!("{line:?} is no row of the table"), fix)
            })?;
            let length = metres(&row.cable).ok_or_else(|| no_length(&key, &row.cable))?;
            if let Some(earlier) = seen.insert((row.speed, length), number) {
                let message = format!("line {earlier} has this speed and cable");
                return Err(Finding::new(key, message, "leave one of the two"));
            }
            rows.push((number, row));
        }
        Ok(Self { rows })
    }

    /// The row for a port; `None` for a cable of no length, which means that there is none.
    ///
    /// # Errors
    /// `place` with the speeds and cables there are: no row, or a length without its unit.
    pub fn row(
        &self,
        speed: BitRate,
        cable: &str,
        place: &str,
    ) -> Result<Option<(usize, &PgRow)>, Finding> {
        let length = metres(cable).ok_or_else(|| no_length(place, cable))?;
        if length == 0 {
            return Ok(None);
        }
        let megabits = speed.bits_per_second() / 1_000_000;
        let fits = |row: &PgRow| row.speed == megabits && metres(&row.cable) == Some(length);
        let found = self.rows.iter().find(|(_, row)| fits(row));
        found.map(|(line, row)| Some((*line, row))).ok_or_else(|| {
            let speed = rate_text(speed.bits_per_second());
            let cables: Vec<&str> = self
                .rows
                .iter()
                .filter(|(_, row)| row.speed == megabits)
                .map(|(_, row)| row.cable.as_str())
                .collect();
            let message = format!("the table has no row for {speed} and {cable}");
            let fix = match cables.as_slice() {
                [] => format!("add one: the table has none for {speed}"),
                cables => format!("add one, or use a cable of {}", cables.join(", ")),
            };
            Finding::new(place, message, fix)
        })
    }
}

/// `40m` in metres.
fn metres(cable: &str) -> Option<u64> {
    let number = cable.strip_suffix('m')?;
    let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    number.parse().ok().filter(|_| plain)
}

fn no_length(place: &str, cable: &str) -> Finding {
    Finding::new(place, format!("{cable:?} is no length of cable"), "write metres: 5m, 40m, 300m")
}

fn row(line: &str) -> Option<PgRow> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let (needed, offset) = match columns.as_slice() {
        [needed @ .., offset] if needed.len() == 6 => (needed, Some(*offset)),
        needed if needed.len() == 6 => (needed, None),
        _ => return None,
    };
    let [speed, cable, size, xon, xoff, threshold] = needed else { return None };
    let bytes = |text: &str| text.parse::<u32>().ok().map(u64::from);
    Some(PgRow {
        speed: speed.parse().ok().filter(|speed| (1..=1_600_000).contains(speed))?,
        cable: (*cable).to_owned(),
        size: bytes(size)?,
        xon: bytes(xon)?,
        xoff: bytes(xoff).filter(|xoff| *xoff > 0)?,
        threshold: threshold.parse().ok().filter(|log2| (-8..=7).contains(log2))?,
        xon_offset: match offset {
            Some(offset) => Some(bytes(offset)?),
            None => None,
        },
    })
}

impl PgRow {
    /// The row as a buffer profile on `pool`.
    pub(super) fn buffer(
        &self,
        place: &str,
        pool: &str,
        cell: CellSize,
        notes: &mut Notes,
    ) -> Result<Buffer, Finding> {
        let (xon, xoff, xon_offset) = (Some(self.xon), self.xoff, self.xon_offset);
        let bytes = LosslessBytes { size: self.size, xon, xoff, xon_offset };
        let (size, marks) = bytes.resolve(place, cell, notes)?;
        let (place, pool, bound) =
            (place.to_owned(), pool.to_owned(), Bound::Alpha(self.threshold));
        Ok(Buffer { place, pool, size, bound, marks: Some(marks) })
    }
}

/// A profile of one lossless PG from the row that the options name.
pub(super) fn import(text: &str, options: &ImportOptions) -> Result<Imported, Finding> {
    let lookup = PgLookup::parse(text)?;
    let asked = |what: &str| {
        let message = format!("the table doesn't say the {what} of the ports");
        Finding::new(what, message, format!("give --{what}"))
    };
    let speed = options.speed.ok_or_else(|| asked("speed"))?;
    let cable = options.cable.as_deref().ok_or_else(|| asked("cable"))?;
    let Some((line, row)) = lookup.row(speed, cable, "cable")? else {
        let message = "a cable of 0 m means that there is none: no lossless profile";
        return Err(Finding::new("cable", message, "give the length of the cable"));
    };
    let mut notes = Notes::default();
    let buffer = row.buffer(&format!("line {line}"), ONE_POOL, options.cell, &mut notes)?;
    let mut parts = OnePool::default();
    if let Some(pg) = Slot::new(3) {
        notes.say("PG", "the table doesn't say which PGs are lossless: PG 3, as base \"ac5p\"");
        parts.pgs.extend(buffer.marks.map(|marks| (pg, lossless(&buffer, marks, vec![pg], false))));
    }
    one_pool(parts, options, notes)
}
