//! `holdfast plan`: a plan for a person, for a program, and as a profile.
// A test fails by panicking, in its own functions too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_api::doc::Source;
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_core::units::BitRate;
use holdfast_plan::headroom::Given;
use holdfast_plan::propose::ports;
use holdfast_plan::resolve;
use serde_json::Value;
use std::process::{Command, Output};

fn holdfast(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.arg("plan").args(arguments.split(' ')).output().unwrap()
}

fn text(arguments: &str) -> String {
    let output = holdfast(arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &str) -> Value {
    serde_json::from_str(&text(&format!("{arguments} --json"))).unwrap()
}

/// The cells of a threshold.
fn level(plan: &Value, name: &str) -> u64 {
    plan["levels"][name]["cells"].as_u64().unwrap()
}

#[test]
fn the_chain_of_the_family_is_explained_term_by_term() {
    let chain = text("--formula ac5p --speed 400G --loop 3us --q-limit 12000");
    let expected = ["150000 B", "20000 B", "170000 B", "665 cells", "768", "6800", "2048", "4752"];
    for number in expected {
        assert!(chain.contains(number), "{number} isn't in\n{chain}");
    }
    let plan = json("--formula ac5p --speed 400G --loop 3us --q-limit 12000");
    assert_eq!(plan["need"]["bytes"], 170_000);
    assert_eq!(plan["need"]["cells"], 665);
    let names = ["headroom", "q_limit", "xoff", "xon", "resume", "kmin", "kmax"];
    let cells = names.map(|name| level(&plan, name));
    assert_eq!(cells, [768, 12_000, 6_800, 2_048, 4_752, 400, 2_400]);
    let exact = json("--speed 400G --loop 3us --q-limit 12000 --mtu 4096");
    assert_eq!(exact["need"]["cells"], 619);
    let terms = exact["need"]["terms"].as_array().unwrap();
    let bytes: u64 = terms.iter().map(|term| term["amount"].as_u64().unwrap()).sum();
    assert_eq!(bytes, 158_256);
    assert!(terms.iter().all(|term| term["unit"] == "B"), "{terms:?}");
}

#[test]
fn formulas_stand_side_by_side() {
    let link = "--speed 100G --loop 3us --cable 40m --small-share 100% --compare";
    let plan = json(link);
    let rows = plan["compare"].as_array().unwrap();
    let need = |formula: &str, reverse: bool| {
        let row = rows.iter().find(|r| r["formula"] == formula && r["reverse_frame"] == reverse);
        row.unwrap_or_else(|| panic!("no {formula}"))["need"]["bytes"].as_u64().unwrap()
    };
    // 3 us and 0.4 us of cable at 12.5 KB/us, and 20 KB.
    assert_eq!(need("ac5p", false), 62_500);
    assert_eq!(need("sonic", false), 161_792);
    assert_eq!(need("mlx5", false), 63_452);
    // 42,500 bytes of loop: 39 frames of 1110, one more, 5 cells each; with 9240 bytes 48.
    assert_eq!(need("exact", false), 40 * 5 * 256);
    assert_eq!(need("exact", true), 48 * 5 * 256);
    assert_eq!(rows.len(), 7);
    let side_by_side = text(link);
    for formula in ["ac5p", "exact, behind a frame", "cpu", "ieee", "161792", "63452"] {
        assert!(side_by_side.contains(formula), "{formula} isn't in\n{side_by_side}");
    }
    let bare = json("--speed 300G --loop 3us --compare");
    let row = |name: &str| {
        let rows = bare["compare"].as_array().unwrap().iter();
        rows.clone().find(|row| row["formula"] == name).unwrap().clone()
    };
    assert_eq!(row("mlx5")["lacks"], "needs the cable");
    assert_eq!(row("mlx5")["need"], Value::Null);
}

#[test]
fn lanes_change_what_sonic_says_beside_the_need() {
    let half =
        "--formula sonic --speed 200G --cable 40m --small-share 50% --pipeline-latency 18KiB";
    let beside = |lanes: u8| {
        let plan = json(&format!("{half} --lanes {lanes}"));
        assert_eq!(plan["need"]["bytes"], 123_904);
        let terms = plan["need"]["beside"].as_array().unwrap().clone();
        terms.iter().map(|term| term["amount"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(beside(8), [35 * 1024, 165 * 1024]);
    assert_eq!(beside(4), [18 * 1024, 139 * 1024]);
}

#[test]
fn the_profile_goes_to_the_output_or_a_file_and_is_one() {
    let link = "--speed 100G --loop 3us --profile leaf";
    let printed = text(&format!("{link} --toml"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("leaf.toml");
    let plan = json(&format!("{link} --toml {}", file.display()));
    let source = Source::read(&file).unwrap();
    assert_eq!(source.text(), printed);
    assert_eq!(plan["profile"].as_str(), Some(printed.as_str()));
    let doc = ProfileDoc::load(&source).unwrap();
    assert_eq!(doc.name, "leaf");
    let facts = ports(&Given::new(BitRate::gigabits(100)), 4);
    resolve(&doc, &facts).unwrap().profile(1).unwrap();
    let missing = holdfast(&format!("{link} --toml {}/no/such.toml", folder.path().display()));
    assert_eq!(missing.status.code(), Some(1));
    let error = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(error.contains("no/such.toml: can't be written"), "{error}");
}

#[test]
fn exit_codes_tell_usage_from_refusal() {
    let cases = [
        ("--speed 400G", 2, "needs the time of the loop, or the cable"),
        ("--formula sonic --speed 400G --loop 3us", 2, "needs the cable"),
        ("--loop 3us", 2, "--speed"),
        ("--speed 400 --loop 3us", 2, "400G"),
        ("--speed 400G --loop 3us --cell 8", 2, "use 64..4096"),
        ("--speed 400G --loop 3us --small-share 101%", 2, "whole percent"),
        ("--speed 400G --loop 3us --q-limit 50%", 2, "nothing it is a part of"),
        ("--speed 400G --loop 3us --smallest-frame 59", 2, "use 60..65535"),
        ("--speed 400G --loop 3us --alpha 8", 2, "use -8..7"),
        ("--speed 400G --loop 3us --toml --compare", 2, "name a file"),
        ("--speed 400G --loop 3us --q-limit 800", 1, "value 800, limit at least 804"),
        ("--speed 400G --loop 1s", 1, "more than a PG can hold"),
        ("--formula sonic --speed 300G --cable 1m", 1, "isn't known at this speed"),
    ];
    for (arguments, code, words) in cases {
        let output = holdfast(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments}: {error}");
        assert!(error.contains(words), "{arguments}: {error}");
    }
    let refused = holdfast("--speed 400G --loop 3us --q-limit 800 --json");
    let body: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(body["error"]["limit"], "at least 804");
}
