//! No file is longer than 500 lines: longer ones hold two subjects.

use crate::{Finding, Tree};

/// The longest file, lines.
pub const LIMIT: usize = 500;

/// Finds Rust, C, shell and Python files that are too long.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.with_extension(&["rs", "c", "h", "sh", "py"])
        .filter_map(|file| {
            let lines = file.text.lines().count();
            let message = || format!("{lines} lines, at most {LIMIT}");
            (lines > LIMIT).then(|| file.finding(lines, message()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_beyond_the_limit_is_found() {
        let fits = "//\n".repeat(LIMIT);
        let long = "//\n".repeat(LIMIT + 1);
        let tree = Tree::of(&[("a.rs", &fits), ("b.c", &long), ("c.md", &long)]);
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "b.c:501: 501 lines, at most 500");
    }
}
