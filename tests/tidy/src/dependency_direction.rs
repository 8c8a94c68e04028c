//! Crates depend on each other in one direction only: from the processes and tests inwards to the
//! core and the wire.

use crate::tree::File;
use crate::{Finding, Tree};
use toml::{Table, Value};

/// What each crate may name; what those may name, it may too. A crate that isn't here is new:
/// its place in this order is decided here.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("holdfast-wire", &[]),
    ("holdfast-core", &["holdfast-wire"]),
    ("holdfast-xsk", &["holdfast-core"]),
    ("holdfast-shm", &["holdfast-core"]),
    ("holdfast-api", &["holdfast-core"]),
    ("holdfast-plan", &["holdfast-api"]),
    ("holdfast-dataplane", &["holdfast-xsk", "holdfast-shm", "holdfast-plan"]),
    ("holdfast-ctl", &["holdfast-shm", "holdfast-plan"]),
    ("holdfast-host", &["holdfast-wire"]),
    ("holdfast-endpoint", &["holdfast-host"]),
    ("holdfast-e2e", &["holdfast-ctl", "holdfast-endpoint"]),
    ("holdfast-fuzz", &["holdfast-xsk", "holdfast-plan"]),
    ("holdfast-tidy", &[]),
];

const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Finds crates that name one they may not.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.files.iter().filter(|file| file.name() == "Cargo.toml");
    manifests.flat_map(check_manifest).collect()
}

fn check_manifest(file: &File) -> Vec<Finding> {
    let table: Table = match file.text.parse() {
        Ok(table) => table,
        Err(error) => return vec![file.finding(1, format!("this isn't TOML: {error}"))],
    };
    let package = table.get("package").and_then(Value::as_table);
    let Some(name) = package.and_then(|package| package.get("name")).and_then(Value::as_str) else {
        return Vec::new();
    };
    if !MAY_NAME.iter().any(|(known, _)| *known == name) {
        let message = format!("{name} has no place in the direction of dependencies");
        return vec![file.finding(1, message)];
    }
    let wrong = |other: &String| {
        let line = file.text.lines().position(|line| line.trim_start().starts_with(other.as_str()));
        file.finding(line.map_or(1, |line| line + 1), format!("{name} may not name {other}"))
    };
    let named = sections(&table).into_iter().flat_map(Table::keys);
    named.filter(|key| key.starts_with("holdfast-") && !may(name, key)).map(wrong).collect()
}

/// The dependency tables of a manifest, those of targets included.
fn sections(table: &Table) -> Vec<&Table> {
    let targets = table.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let tables = core::iter::once(table).chain(targets);
    tables.flat_map(|table| KINDS.iter().filter_map(|kind| table.get(*kind)?.as_table())).collect()
}

fn may(name: &str, other: &str) -> bool {
    let direct = MAY_NAME.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, may)| may);
    direct.iter().any(|inner| *inner == other || may(inner, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, section: &str, other: &str) -> Vec<String> {
        let text = format!("[package]\nname = \"{name}\"\n[{section}]\n{other}.workspace = true\n");
        check(&Tree::of(&[("x/Cargo.toml", &text)])).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn inwards_is_allowed_also_through_others() {
        assert!(found("holdfast-core", "dependencies", "holdfast-wire").is_empty());
        assert!(found("holdfast-dataplane", "dependencies", "holdfast-wire").is_empty());
        assert!(found("holdfast-core", "dependencies", "thiserror").is_empty());
    }

    #[test]
    fn outwards_is_found_in_every_kind_of_dependency() {
        for section in [
            "dependencies",
            "dev-dependencies",
            "build-dependencies",
            "target.'cfg(loom)'.dependencies",
        ] {
            let found = found("holdfast-core", section, "holdfast-xsk");
            assert_eq!(found, ["x/Cargo.toml:4: holdfast-core may not name holdfast-xsk"]);
        }
        assert_eq!(found("holdfast-wire", "dependencies", "holdfast-core").len(), 1);
        assert_eq!(found("holdfast-xsk", "dependencies", "holdfast-api").len(), 1);
    }

    #[test]
    fn a_new_crate_needs_a_place() {
        assert_eq!(found("holdfast-new", "dependencies", "log").len(), 1);
    }
}
