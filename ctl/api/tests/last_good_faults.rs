//! The last good profile is whole after a kill at any system call of its writing, and on a full
//! disk. Real kills and a real file system: by strace, and on a tmpfs of a few pages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_api::last_good::{LastGood, FILE};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn keep_profile() -> PathBuf {
    // Cargo builds a package's examples beside its tests.
    let deps = std::env::current_exe().unwrap();
    let folder = deps.parent().and_then(Path::parent).unwrap();
    let example = folder.join("examples/keep_profile");
    assert!(example.is_file(), "{} isn't built", example.display());
    example
}

fn profile(name: &str) -> String {
    format!("name = \"{name}\"\n# {}\n", name.repeat(3_000))
}

fn strace(inject: &[&str], arguments: &[&Path]) -> Output {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq"]).args(inject).arg(keep_profile()).args(arguments);
    command.output().expect("strace is needed: deploy/install.sh --tests installs it")
}

/// The system calls of one writing, in order, each with its number among those of its name: by
/// that strace counts when it is to inject.
fn system_calls(folder: &Path, arguments: &[&Path]) -> Vec<(String, usize)> {
    let log = folder.join("strace.log");
    let path = log.display().to_string();
    assert!(strace(&["-o", &path], arguments).status.success());
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let text = fs::read_to_string(log).unwrap();
    // With -f each line starts with the process: `4711  openat(AT_FDCWD, ...`.
    let calls = text.lines().filter_map(|line| {
        let (_, call) = line.split_once(char::is_whitespace)?;
        let (name, _) = call.trim_start().split_once('(')?;
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then(|| name.to_owned())
    });
    let number = |name: String| {
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        (name, *count)
    };
    // The first one starts the writer, before strace injects anything.
    calls.map(number).filter(|(name, _)| name != "execve").collect()
}

/// Kills the writer as it enters each of its system calls, one run a call.
#[test]
fn killed_at_every_system_call_a_whole_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (state, text) = (folder.path().join("state"), folder.path().join("new.toml"));
    let old = LastGood { text: profile("old"), boot_file: "old".to_owned() };
    fs::write(&text, profile("new")).unwrap();
    let calls = system_calls(folder.path(), &[&state, &text]);
    for name in ["openat", "write", "fsync", "rename", "exit_group"] {
        assert!(calls.iter().any(|(call, _)| call == name), "no {name} in {calls:?}");
    }
    let (mut found_old, mut found_new) = (0, 0);
    for (call, number) in &calls {
        old.write(&state).unwrap();
        let inject = format!("inject={call}:signal=SIGKILL:when={number}");
        let run = strace(&["-e", &inject], &[&state, &text]);
        assert!(!run.status.success(), "not killed at {call} {number}");
        match LastGood::read(&state) {
            Ok(Some(found)) if found.text == old.text => found_old += 1,
            Ok(Some(found)) if found.text == profile("new") => found_new += 1,
            other => panic!("killed at {call} {number}: {other:?}"),
        }
    }
    // Before the rename, and after it.
    assert!(found_old > 20 && found_new > 1, "{found_old}, {found_new} of {}", calls.len());
}

/// Every system call of the writing that can fail for want of room does, each in its turn.
#[test]
fn a_failing_disk_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let (state, text) = (folder.path().join("state"), folder.path().join("new.toml"));
    let old = LastGood { text: profile("old"), boot_file: "old".to_owned() };
    fs::write(&text, profile("new")).unwrap();
    for (call, error) in [("write", "ENOSPC"), ("fsync", "EIO"), ("rename", "EIO")] {
        old.write(&state).unwrap();
        let inject = format!("inject={call}:error={error}:when=1+");
        let path = state.display().to_string();
        // Only below the state folder: the messages of the program are no part of it.
        let run = strace(
            &["-P", &path, "-P", &format!("{path}/{FILE}.new"), "-e", &inject],
            &[&state, &text],
        );
        assert!(!run.status.success(), "{call} was not made to fail");
        assert_eq!(LastGood::read(&state).unwrap(), Some(old.clone()), "{call}");
    }
}

/// A tmpfs of four pages: the old profile fits, the new one beside it doesn't.
#[test]
fn a_full_disk_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    fs::create_dir(&state).unwrap();
    let text = folder.path().join("new.toml");
    fs::write(&text, profile("new")).unwrap();
    let (state_text, keep) = (state.display().to_string(), keep_profile().display().to_string());
    let old = folder.path().join("old.toml");
    fs::write(&old, "name = \"old\"\n").unwrap();
    // In a mount namespace of its own: nothing stays mounted.
    let script = format!(
        "mount -t tmpfs -o size=16k none {state_text} || exit 9
         {keep} {state_text} {old} || exit 8
         head -c 12k /dev/zero > {state_text}/ballast || true
         {keep} {state_text} {new} && exit 7
         cat {state_text}/{FILE}; ls {state_text} | grep -c new",
        old = old.display(),
        new = text.display(),
    );
    let run = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(!matches!(run.status.code(), Some(7..=9) | None), "{:?}: {err}", run.status);
    assert!(err.contains("No space left"), "{err}");
    assert!(out.contains("name = \"old\"") && out.ends_with("\n0\n"), "{out}");
}
