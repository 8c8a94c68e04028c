//! No source or document names a folder of the machine it was written on.

use crate::{Finding, Tree};

/// Starts of such paths, put together so that this file names none.
const STARTS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/tmp", "/h/")];

/// Finds absolute paths of a machine.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|file| file.name() != "Cargo.lock") {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(start) = STARTS.iter().find(|start| begins_a_path(line, start)) {
                found.push(file.finding(number + 1, format!("a path of one machine: {start}")));
            }
        }
    }
    found
}

/// Whether `start` stands at the beginning of a path, not within one.
fn begins_a_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().last());
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_are_found_relative_ones_are_not() {
        for start in STARTS {
            let text = format!("cd \"{start}x\"");
            assert_eq!(check(&Tree::of(&[("a.sh", &text)])).len(), 1, "{start}");
            let text = format!("see ../some{start}x");
            assert!(check(&Tree::of(&[("a.md", &text)])).is_empty(), "{start}");
        }
    }
}
