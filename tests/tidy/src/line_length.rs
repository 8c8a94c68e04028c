//! No line of Rust is longer than 100 characters, strings and comments included.

use crate::{Finding, Tree};

/// The longest line, characters.
pub const LIMIT: usize = 100;

/// Finds lines that are too long.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.with_extension(&["rs"]) {
        for (number, line) in file.text.lines().enumerate() {
            let width = line.chars().count();
            if width > LIMIT {
                let message = format!("{width} characters, at most {LIMIT}");
                found.push(file.finding(number + 1, message));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_not_bytes() {
        let fits = "é".repeat(LIMIT);
        let long = "é".repeat(LIMIT + 1);
        let tree = Tree::of(&[("a.rs", &format!("\n{fits}\n{long}\n")), ("a.md", &long)]);
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), ("a.rs", 3));
    }
}
