//! A table that fits into a terminal without breaking a number or a word.

use comfy_table::{CellAlignment, Table};
use std::fmt;

/// comfy-table's style string with only the line below the header and its crossings drawn.
pub(super) const UNDERLINED_HEADER: &str = "     ──            ";
/// Columns that say which row it is: they stand in front of each block.
const KEYS: usize = 2;
/// Longest line of a cell where room is short; longer words stay whole.
const CELL: usize = 24;

/// Rows under a header. One too wide for its terminal is written as several blocks of columns.
pub(crate) struct Sheet {
    header: Vec<String>,
    words: usize,
    rows: Vec<Vec<String>>,
}

impl Sheet {
    /// A table with a header; the first `words` columns are words, the others numbers.
    pub(super) fn new<const N: usize>(header: [&str; N], words: usize) -> Self {
        Self { header: header.map(str::to_owned).to_vec(), words, rows: Vec::new() }
    }

    /// Adds a row: as many cells as the header has.
    pub(crate) fn add_row<const N: usize, S: AsRef<str>>(&mut self, cells: [S; N]) {
        self.rows.push(cells.iter().map(|cell| cell.as_ref().to_owned()).collect());
    }

    /// The table for a terminal of `width` columns, `None` for one without end.
    fn text(&self, width: Option<usize>) -> String {
        let all: Vec<usize> = (0..self.header.len()).collect();
        let whole = self.block(&all, usize::MAX);
        match width {
            Some(width) if columns(&whole) > width => self.narrow(&all, width),
            _ => whole,
        }
    }

    fn narrow(&self, all: &[usize], width: usize) -> String {
        let (keys, rest) = all.split_at(KEYS.min(all.len()));
        let mut blocks = Vec::new();
        let mut taken = keys.to_vec();
        for column in rest {
            taken.push(*column);
            if columns(&self.block(&taken, CELL)) > width && taken.len() > keys.len() + 1 {
                taken.pop();
                blocks.push(self.block(&taken, CELL));
                taken = [keys, &[*column]].concat();
            }
        }
        blocks.push(self.block(&taken, CELL));
        blocks.join("\n\n")
    }

    /// These columns; headers and cells are wrapped at spaces where they are longer than `cell`,
    /// headers already where they are longer than what stands below them.
    fn block(&self, taken: &[usize], cell: usize) -> String {
        let mut table = Table::new();
        table.load_preset(UNDERLINED_HEADER);
        let below = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|text| columns(&wrapped(text, cell))).max().unwrap_or(0)
        };
        let header = |column: &usize| {
            let text = self.header.get(*column).map_or("", String::as_str);
            let room = if cell == usize::MAX { cell } else { below(*column) };
            wrapped(text, room)
        };
        table.set_header(taken.iter().map(header));
        for row in &self.rows {
            let cells = taken.iter().filter_map(|column| row.get(*column));
            table.add_row(cells.map(|text| wrapped(text, cell)));
        }
        for (column, number) in table.column_iter_mut().zip(taken) {
            if *number >= self.words {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.to_string()
    }
}

impl fmt::Display for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(screen()))
    }
}

/// The width to fit into: `COLUMNS`, else the terminal's; `None` for a file or a pipe.
fn screen() -> Option<usize> {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    told.or_else(|| Table::new().width().map(usize::from))
}

fn columns(text: &str) -> usize {
    text.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0)
}

/// `text` in lines of at most `room` characters, broken at spaces only, and never between a
/// number and its unit.
fn wrapped(text: &str, room: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut after_number = false;
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if after_number || columns(line) + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
        after_number = word.parse::<f64>().is_ok();
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let mut sheet = Sheet::new(["port", "pg", "class", "peak svc/hdrm", "drops", "time"], 3);
        let drops = "headroom_overflow 12345, wred 6, port_down 7";
        sheet.add_row(["h1", "3", "lossless 3,4", "4187/1203", drops, "2.10 ms"]);
        sheet.add_row(["h2", "0", "lossy", "0/0", "-", "950 ns"]);
        sheet
    }

    #[test]
    fn without_a_limit_each_row_is_one_line() {
        let text = sheet().text(None);
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.contains("headroom_overflow 12345, wred 6, port_down 7"), "{text}");
        assert_eq!(text, sheet().text(Some(columns(&text))));
    }

    #[test]
    fn a_narrow_terminal_gets_blocks_and_whole_words() {
        let words: Vec<String> = sheet().rows.concat();
        let words = words.iter().flat_map(|cell| cell.split(' '));
        let words: Vec<&str> = words.chain(["svc/hdrm", "2.10 ms", "950 ns"]).collect();
        for width in 40..100 {
            let text = sheet().text(Some(width));
            assert!(columns(&text) <= width, "{width}:\n{text}");
            for word in &words {
                assert!(text.contains(word), "{word} at {width}:\n{text}");
            }
            for block in text.split("\n\n") {
                assert!(
                    block.lines().any(|line| line.starts_with(" h2     0")),
                    "{width}:\n{text}"
                );
            }
        }
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(wrapped("up to 2.10 ms later", 5), "up to\n2.10 ms\nlater");
        assert_eq!(wrapped("longest gap", 7), "longest\ngap");
        assert_eq!(wrapped("", 3), "");
    }
}
