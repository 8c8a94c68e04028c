//! How numbers and tables look to a person.

use comfy_table::{CellAlignment, ContentArrangement, Table};
use holdfast_api::message::DropCounts;
use sheet::Sheet;
use std::ops::Range;

mod sheet;

/// A table with a header; the first `words` columns are words, the others numbers.
pub(crate) fn table<const N: usize>(header: [&str; N], words: usize) -> Sheet {
    Sheet::new(header, words)
}

/// A table whose last column is prose, which wraps; those in `numbers` are numbers.
pub(crate) fn prose_table<const N: usize>(header: [&str; N], numbers: Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_preset(sheet::UNDERLINED_HEADER);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header);
    for column in table.column_iter_mut().skip(numbers.start).take(numbers.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A time with three digits and its unit: `2.10 ms`.
pub(crate) fn time(ns: u64) -> String {
    scaled(ns, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)], "ns")
}

/// An amount of bytes: `4.00 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    scaled(bytes, &[("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)], "B")
}

fn scaled(value: u64, units: &[(&str, u64)], small: &str) -> String {
    for (unit, size) in units {
        if value >= *size {
            let scaled = value as f64 / *size as f64;
            let digits = match scaled {
                s if s < 10.0 => 2,
                s if s < 100.0 => 1,
                _ => 0,
            };
            return format!("{scaled:.digits$} {unit}");
        }
    }
    format!("{value} {small}")
}

/// Drops that happened, `queue_limit 3, wred 1`, or `-`.
pub(crate) fn drops(counts: &DropCounts) -> String {
    let happened = counts.iter().filter(|(_, frames)| **frames > 0);
    let texts: Vec<String> =
        happened.map(|(reason, frames)| format!("{reason} {frames}")).collect();
    if texts.is_empty() {
        "-".to_owned()
    } else {
        texts.join(", ")
    }
}

/// A list of numbers, `3,4`, or `-`.
pub(crate) fn list(numbers: &[u8]) -> String {
    if numbers.is_empty() {
        return "-".to_owned();
    }
    numbers.iter().map(u8::to_string).collect::<Vec<_>>().join(",")
}

/// A value, or `-` where there is none.
pub(crate) fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(time(950), "950 ns");
        assert_eq!(time(2_097_152), "2.10 ms");
        assert_eq!(time(41_000), "41.0 us");
        assert_eq!(time(300_000_000_000), "300 s");
        assert_eq!(bytes(1_049_600), "1.00 MiB");
        assert_eq!(bytes(0), "0 B");
    }

    #[test]
    fn only_drops_that_happened_are_named() {
        let counts = DropCounts::from([("wred".to_owned(), 0), ("vlan".to_owned(), 2)]);
        assert_eq!(drops(&counts), "vlan 2");
        assert_eq!(drops(&DropCounts::new()), "-");
    }
}
