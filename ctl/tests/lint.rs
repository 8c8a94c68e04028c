//! `holdfast lint` over files: what it says, and with which exit code.
// A test fails by panicking, in its own functions too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(path)
}

/// The 10G lab profile with `from` changed to `to`.
fn changed(folder: &TempDir, name: &str, from: &str, to: &str) -> PathBuf {
    let text = std::fs::read_to_string(deploy("profiles/veth-lab-10g.toml")).unwrap();
    assert!(text.contains(from), "{from}");
    let path = folder.path().join(name);
    std::fs::write(&path, text.replace(from, to)).unwrap();
    path
}

fn lint(files: &[&Path], arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.arg("lint").args(files).args(arguments.split_whitespace()).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn exit_codes_tell_clean_found_and_usage_apart() {
    let folder = tempfile::tempdir().unwrap();
    let good = deploy("profiles/veth-lab-10g.toml");
    let warned = lint(&[&good], "");
    assert_eq!(warned.status.code(), Some(0), "{}", text(&warned));
    assert!(text(&warned).contains("warning P06"), "{}", text(&warned));
    let bad = changed(&folder, "bad.toml", "xoff = 4096", "xoff = 8192");
    let found = lint(&[&good, &bad], "");
    assert_eq!(found.status.code(), Some(1));
    assert_eq!(String::from_utf8(found.stderr).unwrap(), "holdfast: 1 error found\n");
    assert_eq!(lint(&[Path::new("/nonexistent")], "").status.code(), Some(1));
    for wrong in ["", "--speed fast", "--ports 0", "--link h1=h2", "--queues-at-once 9"] {
        let files: &[&Path] = if wrong.is_empty() { &[] } else { &[&good] };
        assert_eq!(lint(files, wrong).status.code(), Some(2), "{wrong}");
    }
}

/// A running switch is one thing, files with assumed ports are another.
#[test]
fn live_asks_a_switch_and_takes_no_file() {
    let good = deploy("profiles/veth-lab-10g.toml");
    assert_eq!(lint(&[&good], "--live").status.code(), Some(2));
    for wrong in ["--ports 3", "--mtu 9000", "--speed 1G", "--peer x.toml"] {
        assert_eq!(lint(&[], &format!("--live {wrong}")).status.code(), Some(2), "{wrong}");
    }
    let nobody = lint(&[], "--live --socket /nonexistent/switch.sock");
    assert_eq!(nobody.status.code(), Some(3), "{nobody:?}");
}

#[test]
fn people_read_place_numbers_why_and_fix_and_what_is_implied() {
    let folder = tempfile::tempdir().unwrap();
    let bad = changed(&folder, "bad.toml", "xoff = 4096", "xoff = 8192");
    let out = text(&lint(&[&bad], ""));
    let lines: Vec<&str> = out.lines().collect();
    let place = std::fs::read_to_string(&bad).unwrap();
    let line = 1 + place.lines().position(|line| line == "xoff = 8192").unwrap();
    assert!(lines[0].ends_with("assumed: 16 ports (p1 .. p16), 10G, MTU 1500"), "{out}");
    assert!(lines[1].starts_with(&format!("  error B04 line {line}, pg.3.xoff: XOFF")), "{out}");
    assert!(lines[1].ends_with("(8192, limit: below 8192)"), "{out}");
    assert!(lines[2].starts_with("      why: Headroom is entered before the pause"), "{out}");
    assert!(lines[3].starts_with("      fix: lower xoff"), "{out}");
    assert_eq!(lines[4], "      implies: B07, B12 (--all shows them)");
    assert_eq!(lines.last(), Some(&"1 error, 1 warning, 0 info"));
    let all = text(&lint(&[&bad], "--all"));
    for implied in ["  warning B07 line", "  warning B12 line"] {
        assert!(all.contains(implied) && !out.contains(implied), "{all}");
    }
}

#[test]
fn json_has_the_same_for_machines() {
    let folder = tempfile::tempdir().unwrap();
    let bad = changed(&folder, "bad.toml", "kmin = 256", "kmin = 2000");
    let unread = changed(&folder, "unread.toml", "xon = 1024", "xon = 1024\npriorities = [8]");
    let output = lint(&[&bad, &unread], "--json --ports 2");
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_str(&text(&output)).unwrap();
    let (bad, unread) = (&json["files"][0], &json["files"][1]);
    assert_eq!((&bad["errors"], &bad["assumed"]), (&1.into(), &true.into()));
    assert_eq!(bad["ports"].as_array().map(Vec::len), Some(2));
    assert_eq!(bad["findings"][0]["id"], "E01");
    assert_eq!(bad["findings"][0]["where"]["key"], "queue.3.wred.kmin");
    // What can't be read is a finding like the others, with its line.
    let finding = &unread["findings"][0];
    assert_eq!((&finding["id"], &finding["value"]), (&"Q01".into(), &"8".into()));
    assert_eq!((&finding["limit"], &finding["fix"]), (&"0..7".into(), &"use 0..7".into()));
    assert!(finding["where"]["line"].as_u64().is_some_and(|line| line > 40), "{finding}");
    assert!(unread["profile"].is_null());
}

#[test]
fn ports_come_from_the_switch_file_or_are_assumed_as_told() {
    let switch = deploy("samples/switch.toml").display().to_string();
    let named = lint(&[], &format!("--switch {switch} --json"));
    assert_eq!(named.status.code(), Some(0), "{}", text(&named));
    let json: Value = serde_json::from_str(&text(&named)).unwrap();
    assert_eq!(
        (&json["files"][0]["profile"], &json["files"][0]["assumed"]),
        (&"sample".into(), &false.into())
    );
    assert_eq!(json["files"][0]["ports"][0]["name"], "h1");
    // The jumbo frames of a 1500-byte profile overflow its Headroom.
    let small = deploy("profiles/veth-lab-10g.toml");
    let out = text(&lint(&[&small], "--ports 3 --mtu 9000 --speed 25G"));
    assert!(out.contains("3 ports (p1 .. p3), 25G, MTU 9000"), "{out}");
    assert!(out.contains("error B03"), "{out}");
    let both = lint(&[&small], &format!("--switch {switch} --ports 3"));
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn both_ends_of_a_link_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let own = deploy("profiles/veth-lab-10g.toml");
    let peer = changed(
        &folder,
        "peer.toml",
        "base = \"ac5p\"",
        "base = \"ac5p\"\n[port.odd.maps]\ndscp_to_cos = { 30 = 0 }\n[maps.pcp_to_cos]\n3 = 3",
    );
    let peer = peer.display();
    let out = lint(&[&own], &format!("--peer {peer} --ports 2"));
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out);
    assert!(said.contains("error P04"), "{said}");
    assert!(
        said.contains("sort DSCP 30 differently (peer's port odd) (CoS 3, limit: CoS 0)"),
        "{said}"
    );
    let even = lint(&[&own], &format!("--peer {peer} --ports 2 --link p1=p1 --link p2=p1"));
    assert_eq!(even.status.code(), Some(0), "{}", text(&even));
    let odd = lint(&[&own], &format!("--peer {peer} --ports 2 --link p1=p1 --link p2=odd"));
    assert!(text(&odd).contains("port.p2.maps.dscp_to_cos"), "{}", text(&odd));
    let nowhere = lint(&[&own], &format!("--peer {peer} --link p1=p77"));
    assert_eq!(nowhere.status.code(), Some(2));
}
