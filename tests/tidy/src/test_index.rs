//! `tests/INDEX.md` maps the specification to tests. Each test it names exists, and each file of
//! end-to-end tests is named.

use crate::tree::File;
use crate::{Finding, Tree};

/// The index.
pub const INDEX: &str = "tests/INDEX.md";
const END_TO_END: &str = "tests/e2e/tests/";

/// Finds tests that are named and don't exist, and end-to-end files that aren't named.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(index) = tree.get(INDEX) else {
        return vec![Finding { path: INDEX.into(), line: 1, message: "is missing".into() }];
    };
    let mut found = Vec::new();
    let mut named = Vec::new();
    for (number, line) in index.text.lines().enumerate() {
        for reference in line.split('`').skip(1).step_by(2) {
            let Some((path, name)) = reference.split_once("::") else { continue };
            named.push(path);
            let message = match tree.get(path) {
                None => format!("{reference}: there is no such file"),
                Some(file) if !has_test(file, name) => format!("{reference}: no such test"),
                Some(_) => continue,
            };
            found.push(index.finding(number + 1, message));
        }
    }
    let ours = tree.files.iter().filter(|file| {
        let name = file.path.strip_prefix(END_TO_END);
        name.is_some_and(|name| name.ends_with(".rs") && !name.contains('/'))
    });
    let missing = ours.filter(|file| !named.contains(&file.path.as_str()));
    found.extend(missing.map(|file| file.finding(1, format!("{INDEX} names no test of it"))));
    found
}

/// Whether a function of that name has `#[test]` above it, inside a macro too.
fn has_test(file: &File, name: &str) -> bool {
    let lines: Vec<_> = file.text.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(at, line)| {
        let Some(rest) = line.strip_prefix("fn ").and_then(|rest| rest.strip_prefix(name)) else {
            return false;
        };
        let above = lines.iter().take(at).rev();
        let mut above = above.take_while(|line| line.starts_with('#') || line.starts_with("//"));
        rest.starts_with('(') && above.any(|line| *line == "#[test]")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "#[test]\n/// why\nfn a() {}\n\nfn b() {}\nproptest! {\n  #[test]\n\
                        fn c(x in 0..3) {}\n}\n";

    fn found(index: &str) -> Vec<String> {
        let tree = Tree::of(&[("x.rs", FILE), (INDEX, index), ("tests/e2e/tests/y.rs", FILE)]);
        check(&tree).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn named_tests_exist() {
        let all = "| 1 | `x.rs::a`, `x.rs::c`, `tests/e2e/tests/y.rs::a` |";
        assert!(found(all).is_empty());
    }

    #[test]
    fn what_is_no_test_or_no_file_is_found() {
        let index = "`tests/e2e/tests/y.rs::a`\n`x.rs::b` `x.rs::d`\n`z.rs::a`";
        let found = found(index);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[2].ends_with("z.rs::a: there is no such file"));
    }

    #[test]
    fn an_unnamed_end_to_end_file_and_a_missing_index_are_found() {
        assert_eq!(found("`x.rs::a`").len(), 1);
        assert_eq!(check(&Tree::default()).len(), 1);
    }
}
