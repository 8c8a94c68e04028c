//! Tables of `tests/INDEX.md` that have to be whole: each row of the specification's section 14,
//! and each public fault report that is guarded against. A row names at least one test;
//! [`crate::test_index`] sees that it exists.

use crate::test_index::INDEX;
use crate::{Finding, Tree};

/// The rows of section 14, as the specification words their beginnings.
const SECTION_14: [&str; 14] = [
    "any byte string as a frame",
    "any byte string on the control socket or HTTP port",
    "config or profile wrong in any way",
    "peer pauses for ever, or pauses everything",
    "flood of new MACs",
    "flood of broadcasts",
    "flood of runts",
    "flood of PFC frames",
    "flood of lossy data",
    "worker late or CPU starved, within the stated stall",
    "control daemon killed, disk full, metrics scraped 100 times a second",
    "dataplane killed",
    "netdev or netns deleted while bound",
    "SIGTERM",
];

/// The numbers of the reports.
const REPORTS: [&str; 28] = [
    "2", "3", "6", "9", "11", "13", "15", "16", "18", "20", "22", "23", "26", "28", "30", "32",
    "35", "36", "S2", "S3", "S5", "S7", "S8", "S9", "S12", "S15", "S18", "S19",
];

/// Finds rows that the index doesn't have, or that name no test.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(index) = tree.get(INDEX) else { return Vec::new() };
    let names_a_test = |row: &str| {
        let begin = format!("| {row} |");
        let mut rows = index.text.lines().filter(|line| line.starts_with(&begin));
        rows.any(|line| line.contains("::"))
    };
    let rows = SECTION_14.iter().chain(&REPORTS).filter(|row| !names_a_test(row));
    rows.map(|row| index.finding(1, format!("no test in the row {row:?}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> String {
        let rows = SECTION_14.iter().chain(&REPORTS);
        rows.map(|row| format!("| {row} | `a.rs::b` |\n")).collect()
    }

    fn found(text: &str) -> Vec<String> {
        check(&Tree::of(&[(INDEX, text)])).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn each_row_has_a_test() {
        assert!(found(&whole()).is_empty());
        for row in SECTION_14.iter().chain(&REPORTS) {
            let without = whole().replace(&format!("| {row} | `a.rs::b` |\n"), "");
            assert_eq!(found(&without).len(), 1, "{row}");
            let empty = whole().replace(&format!("| {row} | `a.rs::b` |"), &format!("| {row} | |"));
            assert_eq!(found(&empty).len(), 1, "{row}");
        }
    }
}
