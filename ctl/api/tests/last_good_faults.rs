//! The last good profile is whole after a kill at any system call of its writing, and on a full
//! disk. Real kills and a real file system: by strace, and on a tmpfs of a few pages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_api::last_good::{LastGood, FILE};
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

/// Kills the writer at its first, second, third ... system call, until one run gets to its end.
#[test]
fn killed_at_every_system_call_a_whole_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (state, text) = (folder.path().join("state"), folder.path().join("new.toml"));
    let old = LastGood { text: profile("old"), boot_file: "old".to_owned() };
    fs::write(&text, profile("new")).unwrap();
    let (mut kills, mut found_old, mut found_new) = (0, 0, 0);
    loop {
        old.write(&state).unwrap();
        let inject = format!("inject=all:signal=SIGKILL:when={}", kills + 1);
        let run = strace(&["-e", &inject], &[&state, &text]);
        match LastGood::read(&state).unwrap() {
            Some(found) if found.text == old.text => found_old += 1,
            Some(found) if found.text == profile("new") => found_new += 1,
            other => panic!("after {kills} system calls: {other:?}"),
        }
        if run.status.success() {
            break;
        }
        kills += 1;
        assert!(kills < 2_000, "{}", String::from_utf8_lossy(&run.stderr));
    }
    // Killed before the rename and after it, besides the run that came to its end.
    assert!(kills > 20 && found_old > 20 && found_new > 1, "{kills}: {found_old}, {found_new}");
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
