//! `holdfast import` and `holdfast export` as programs call them: files, exit codes, JSON.
// A test fails by panicking, in its own functions too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn device(name: &str) -> String {
    repository("tests/fixtures/sonic").join(name).display().to_string()
}

fn holdfast(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_holdfast")).args(arguments).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_device_file_becomes_a_profile_with_its_notes_beside_it() {
    let imported = holdfast(&["import", &device("broadcom_th.json")]);
    assert_eq!(imported.status.code(), Some(0), "{}", err(&imported));
    assert!(out(&imported).starts_with("name = \"broadcom_th\"\n"), "{}", out(&imported));
    assert!(out(&imported).contains("xoff = \"limit\""));
    let note =
        "note: BUFFER_POOL|ingress_lossless_pool|xoff: a shared headroom pool of 16384 cells";
    assert!(err(&imported).contains(note), "{}", err(&imported));
    let json = holdfast(&["import", &device("broadcom_th.json"), "--json", "--profile", "th"]);
    let answer: Value = serde_json::from_str(&out(&json)).unwrap();
    assert_eq!(answer["profile"]["name"], "th");
    assert_eq!(answer["profile"]["pg"]["3"]["headroom"], 694);
    assert_eq!(answer["refused"], Value::Array(Vec::new()));
    let notes = answer["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note["read"] == "BUFFER_POOL|ingress_lossless_pool|xoff"));
    assert!(err(&json).is_empty(), "{}", err(&json));
}

#[test]
fn ports_that_cannot_be_lossless_are_named_and_the_rest_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.toml");
    let file = file.to_str().unwrap();
    let arguments = ["import", &device("nvidia_msn2700.json"), "-o", file];
    let without = holdfast(&arguments);
    assert_eq!(without.status.code(), Some(1));
    assert!(err(&without).contains("PFC is on for PG 3 of Ethernet0, but nothing gives it"));
    assert!(std::fs::read_to_string(file).unwrap().contains("lossless = false"));
    let json = holdfast(&[&arguments[..], &["--json"]].concat());
    assert_eq!(json.status.code(), Some(1));
    let answer: Value = serde_json::from_str(&out(&json)).unwrap();
    assert_eq!(answer["refused"].as_array().unwrap().len(), 8);
    let table = device("nvidia_msn2700_pg_profile_lookup.ini");
    let with = holdfast(&[&arguments[..], &["--pg-lookup", &table]].concat());
    assert_eq!(with.status.code(), Some(0), "{}", err(&with));
    assert!(std::fs::read_to_string(file).unwrap().contains("lossless = true"));
}

#[test]
fn what_is_imported_is_exported_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (first, second, db) = (path("th.toml"), path("th2.toml"), path("db.json"));
    holdfast(&["import", &device("broadcom_th.json"), "--profile", "th", "-o", &first]);
    let ports = ["Ethernet0", "Ethernet12", "Ethernet4", "Ethernet8"];
    let ports: Vec<String> = ports.iter().map(|port| format!("--port={port}=100G/9100")).collect();
    let mut arguments = vec!["export", &first, "--to", "sonic", "-o", &db];
    arguments.extend(ports.iter().map(String::as_str));
    let exported = holdfast(&arguments);
    assert_eq!(exported.status.code(), Some(0), "{}", err(&exported));
    let cells = err(&exported).split("--cells ").nth(1).unwrap().to_owned();
    let cells = cells.split(' ').next().unwrap();
    let again = holdfast(&["import", &db, "--profile", "th", "--cells", cells, "-o", &second]);
    assert_eq!(again.status.code(), Some(0), "{}", err(&again));
    let read = |file: &str| std::fs::read_to_string(file).unwrap();
    let thresholds = |text: &str| {
        let start = text.find("[pg.3]").unwrap();
        text[start..text[start..].find("\n\n").map_or(text.len(), |end| start + end)].to_owned()
    };
    assert_eq!(thresholds(&read(&first)), thresholds(&read(&second)));
    let table = holdfast(&[
        "export",
        &first,
        "--to",
        "pg-lookup",
        "--cable",
        "40m",
        "--port=h1=100G/9100",
        "--json",
    ]);
    let answer: Value = serde_json::from_str(&out(&table)).unwrap();
    let row = "\n100000 40m 9216 2304 177664 0 2304\n";
    assert!(answer["text"].as_str().unwrap().ends_with(row), "{answer}");
}

#[test]
fn a_shipped_profile_is_refused_by_key_where_sonic_has_no_word_for_it() {
    let profile = repository("deploy/profiles/veth-lab-1g.toml").display().to_string();
    let switch = repository("deploy/samples/switch.toml").display().to_string();
    let arguments = ["export", &profile, "--to", "sonic", "--port=h1=1G", "--port=h2=1G"];
    let refused = holdfast(&arguments);
    assert_eq!(refused.status.code(), Some(1));
    assert!(out(&refused).is_empty());
    let said = err(&refused);
    assert!(said.contains("port.h1.pg.3.xoff: SONiC pauses at the limit"), "{said}");
    assert!(said.contains("port.h1.pfc.pause_quanta"), "{said}");
    assert!(!said.contains("port.h2.pg.3.xoff"), "said once: {said}");
    let json = holdfast(&[&arguments[..], &["--json"]].concat());
    let answer: Value = serde_json::from_str(&out(&json)).unwrap();
    assert_eq!(answer["errors"].as_array().unwrap().len(), said.lines().count());
    assert_eq!(answer["error"], answer["errors"][0]);
    let lines = holdfast(&["export", &profile, "--to", "ac5p-cli", "--switch", &switch]);
    assert_eq!(lines.status.code(), Some(1));
    assert!(err(&lines).contains("no line has the Guaranteed of a PG"), "{}", err(&lines));
}

#[test]
fn refused_files_exit_1_and_unclear_arguments_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let code = |arguments: &[&str]| holdfast(arguments).status.code();
    assert_eq!(code(&["import", &file("a.txt", b"hello")]), Some(2));
    assert_eq!(code(&["import", &file("a.txt", b"hello"), "--from", "sonic"]), Some(1));
    assert_eq!(code(&["import", &file("b.json", b"{\xff}")]), Some(1));
    assert_eq!(code(&["import", "/nonexistent/config_db.json"]), Some(1));
    assert_eq!(code(&["import"]), Some(2));
    assert_eq!(code(&["import", &device("broadcom_th.json"), "--cell-bytes", "8"]), Some(2));
    assert_eq!(code(&["import", &device("broadcom_th.json"), "--headroom", "8"]), Some(2));
    assert_eq!(code(&["export", "x.toml", "--to", "sonic"]), Some(2));
    assert_eq!(code(&["export", "x.toml", "--to", "sonic", "--port=h1=fast"]), Some(2));
    assert_eq!(code(&["export", "x.toml", "--to", "sonic", "--port=h1=1G"]), Some(1));
    let large = file("c.json", &vec![b' '; (4 << 20) + 1]);
    let refused = holdfast(&["import", &large, "--from", "sonic"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains("is too large"), "{}", err(&refused));
    // A memory too small for the pools: nothing is written, and JSON says which pool.
    let written = folder.path().join("p.toml").display().to_string();
    let few = holdfast(&[
        "import",
        &device("broadcom_th.json"),
        "--cells",
        "50000",
        "-o",
        &written,
        "--json",
    ]);
    assert_eq!(few.status.code(), Some(1));
    assert!(!Path::new(&written).exists());
    let answer: Value = serde_json::from_str(&out(&few)).unwrap();
    assert_eq!(
        (&answer["error"]["value"], &answer["error"]["limit"]),
        (&"58865".into(), &"50000".into())
    );
    // Pools fit, but not with what the ports reserve: refused by the plan.
    let few =
        holdfast(&["import", &device("broadcom_th.json"), "--cells", "58900", "-o", &written]);
    assert_eq!(few.status.code(), Some(1));
    assert!(err(&few).contains("ingress parts exceed"), "{}", err(&few));
    assert!(!Path::new(&written).exists());
}
