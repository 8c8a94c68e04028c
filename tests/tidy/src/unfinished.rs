//! Nothing in the tree says that it isn't finished.

use crate::{Finding, Tree};

/// Marks of unfinished work, put together so that this file isn't one.
const MARKS: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("todo", "!"),
    concat!("unimplemented", "!"),
];

/// Finds marks of unfinished work, as whole words.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.with_extension(&["rs", "c", "h", "sh", "py", "md", "toml"]) {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(mark) = MARKS.iter().find(|mark| has_word(line, mark)) {
                found.push(file.finding(number + 1, format!("unfinished: {mark}")));
            }
        }
    }
    found
}

fn has_word(line: &str, word: &str) -> bool {
    let letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().last());
        let after = line.get(at + word.len()..).and_then(|text| text.chars().next());
        !letter(before) && !letter(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_found() {
        for mark in MARKS {
            let tree = Tree::of(&[("a.rs", &format!("\n// {mark}(x)"))]);
            assert_eq!(check(&tree).len(), 1, "{mark}");
        }
    }

    #[test]
    fn a_template_of_a_file_name_is_none() {
        let line = format!("mktemp -d a.{}", MARKS[2].repeat(2));
        assert!(check(&Tree::of(&[("a.sh", &line)])).is_empty());
    }
}
