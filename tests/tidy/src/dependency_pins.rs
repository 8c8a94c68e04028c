//! Every outside crate is pinned to one version, in one place, with the reason beside it.

use crate::tree::File;
use crate::{Finding, Tree};
use toml::{Table, Value};

/// Lines that one comment may stand for: crates that come as a family.
const FAMILY: usize = 3;

/// Finds versions that aren't pinned or have no reason, and versions outside the workspace's list.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|file| file.name() == "Cargo.toml") {
        let Ok(table) = file.text.parse::<Table>() else { continue };
        let workspace = table.get("workspace").and_then(Value::as_table);
        if let Some(shared) = workspace.and_then(|table| table.get("dependencies")?.as_table()) {
            found.extend(check_shared(file, shared));
        }
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let own = table.get(kind).and_then(Value::as_table).into_iter().flatten();
            for (name, _) in own.filter(|(_, value)| !from_workspace(value)) {
                let message = format!("{name}: give the version in the workspace's Cargo.toml");
                found.push(file.finding(line_of(file, name), message));
            }
        }
    }
    found
}

fn from_workspace(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

fn line_of(file: &File, name: &str) -> usize {
    let starts =
        |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '.', '=']));
    file.text.lines().position(starts).map_or(1, |line| line + 1)
}

fn check_shared(file: &File, shared: &Table) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, value) in shared {
        if value.get("path").is_some() {
            continue;
        }
        let line = line_of(file, name);
        let version = value.as_str().or_else(|| value.get("version")?.as_str()).unwrap_or_default();
        if !version.starts_with('=') {
            let message = format!("{name} {version:?} isn't pinned: \"=x.y.z\"");
            found.push(file.finding(line, message));
        }
        if !has_reason(file, line) {
            let message = format!("{name} has no comment above that says what it is for");
            found.push(file.finding(line, message));
        }
    }
    found
}

fn has_reason(file: &File, line: usize) -> bool {
    let lines: Vec<_> = file.text.lines().take(line - 1).collect();
    let mut above = lines.iter().rev().take(FAMILY).take_while(|line| !line.trim().is_empty());
    above.any(|line| line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<usize> {
        check(&Tree::of(&[("Cargo.toml", text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn pinned_with_a_reason_is_right() {
        let text = "[workspace.dependencies]\nown = { path = \"own\" }\n# why\na = \"=1.2.3\"\n\
                    ab = { version = \"=1.2.3\" }\n";
        assert_eq!(found(text), [0; 0]);
    }

    #[test]
    fn a_range_and_a_missing_reason_are_found() {
        let text =
            "[workspace.dependencies]\n# why\na = \"1.2.3\"\n\nb = { version = \"=1.0.0\" }\n";
        assert_eq!(found(text), [3, 5]);
    }

    #[test]
    fn a_comment_does_not_stand_for_a_long_list() {
        let text = "[workspace.dependencies]\n# why\na = \"=1.0.0\"\nb = \"=1.0.0\"\n\
                    c = \"=1.0.0\"\nd = \"=1.0.0\"\n";
        assert_eq!(found(text), [6]);
    }

    #[test]
    fn a_version_in_a_crate_of_its_own_is_found() {
        assert_eq!(found("[dependencies]\na.workspace = true\nb = \"=1.0.0\"\n"), [3]);
    }
}
