//! Any bytes, and fixtures with any change, give a profile or a finding, never a panic.

use holdfast_core::units::{BitRate, Cells};
use holdfast_plan::import::{import, AssumedMarks, Format, ImportOptions, PgLookup};
use holdfast_plan::resolve;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;
use std::sync::LazyLock;

static FIXTURES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let mut texts = Vec::new();
    for part in ["sonic", "cases"] {
        for entry in std::fs::read_dir(folder.join(part)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "json" || end == "ini") {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                texts.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    texts.sort();
    assert!(texts.len() >= 10, "{}", texts.len());
    texts
});

const LINES: &str = "mmu buffer-mode flowctrl-enhance\nmmu queue-guarantee 3 36\n\
                     interface eth 1\npfc enable priority 3\npfc pause-threshold 6800 cells\n\
                     pfc resume-threshold 2048\npfc headroom 768 cells\n";

fn options() -> ImportOptions {
    ImportOptions {
        cells: Some(Cells(1_000_000)),
        assumed: Some(AssumedMarks { headroom: Cells(768), xon: Cells(512) }),
        speed: Some(BitRate::gigabits(100)),
        cable: Some("40m".to_owned()),
        ports: Some(4),
        ..ImportOptions::new("mutated")
    }
}

/// Imports as every format, and plans what comes out.
fn take(text: &str) {
    let _ = Format::guess(text);
    let with_table = ImportOptions { lookup: PgLookup::parse(text).ok(), ..options() };
    for format in [Format::Sonic, Format::PgLookup, Format::Ac5pCli] {
        for options in [&options(), &ImportOptions::new("bare"), &with_table] {
            match import(text, format, options) {
                Ok(imported) => {
                    assert!(imported.doc.to_toml().is_ok());
                    if let Ok(plan) = resolve(&imported.doc, &imported.facts()) {
                        let _ = plan.profile(1);
                    }
                }
                Err(finding) => assert!(!finding.key.is_empty() && !finding.fix.is_empty()),
            }
        }
    }
}

/// Values that stand where others are expected.
fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(Value::from("99999999999999999999999")),
        Just(Value::from(u64::MAX)),
        Just(Value::from("0")),
        Just(Value::from("-1")),
        Just(Value::from("[BUFFER_POOL|")),
        Just(Value::from("[]")),
        Just(Value::from("0-7,3")),
        Just(Value::from("4294967295")),
        ".{0,12}".prop_map(Value::from),
        Just(serde_json::json!({})),
        Just(serde_json::json!([[{}]])),
    ]
}

/// Changes one node of a document: the one that `steps` lead to.
fn change(value: &mut Value, steps: &[usize], odd: Value, key: &str, how: u8) {
    if let (Value::Object(map), Some((step, rest))) = (&mut *value, steps.split_first()) {
        let Some(name) = map.keys().nth(step % map.len().max(1)).cloned() else { return };
        if !rest.is_empty() && map[&name].is_object() && how != 3 {
            return change(&mut map[&name], rest, odd, key, how);
        }
        match how {
            0 => map.insert(name, odd),
            1 => map.remove(&name),
            2 => map.insert(key.to_owned(), odd),
            // A key of another spelling for the same row.
            _ => {
                let row = map.remove(&name).unwrap_or_default();
                map.insert(key.to_owned(), row)
            }
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_text_is_taken_or_refused(text in "[ -~\n]{0,200}|.{0,80}") {
        take(&text);
    }

    #[test]
    fn any_change_of_a_value_is_taken_or_refused(
        which in any::<prop::sample::Index>(),
        changes in vec((vec(0usize..200, 1..5), odd(), "[A-Za-z0-9|,_-]{0,12}", 0u8..4), 1..4),
    ) {
        let trees: Vec<&str> =
            FIXTURES.iter().filter(|(name, _)| name.ends_with("json")).map(|f| &*f.1).collect();
        let mut value: Value = serde_json::from_str(trees[which.index(trees.len())]).unwrap();
        for (steps, odd, key, how) in changes {
            change(&mut value, &steps, odd, &key, how);
        }
        take(&value.to_string());
    }

    #[test]
    fn any_change_of_bytes_is_taken_or_refused(
        which in any::<prop::sample::Index>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..6),
    ) {
        let mut texts: Vec<&str> = FIXTURES.iter().map(|f| &*f.1).collect();
        texts.push(LINES);
        let mut bytes = texts[which.index(texts.len())].as_bytes().to_vec();
        for (at, byte, how) in changes {
            let at = at.index(bytes.len().max(1));
            match how {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, byte),
            }
        }
        take(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn fixtures_and_lines_as_they_are() {
    FIXTURES.iter().for_each(|(_, text)| take(text));
    assert!(import(LINES, Format::Ac5pCli, &options()).is_ok());
}
