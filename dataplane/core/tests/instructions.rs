//! What a frame costs, in instructions: those don't depend on the machine's load.
//!
//! Run in release by `deploy/test.sh`; needs valgrind. The numbers in
//! `tests/fixtures/instructions.txt` are those of the last change that meant to change them.
#![cfg(not(any(loom, debug_assertions)))]
#![allow(clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::process::Command;

const FEW: u64 = 100;
const MANY: u64 = 600;
const FRAMES_A_ROUND: u64 = 64;
/// What the recorded number may be exceeded by, in percent.
const SLACK: u64 = 10;

/// Instructions that callgrind counts for one run.
fn instructions(dscp: &str, len: &str, rounds: u64) -> u64 {
    let mut binary: PathBuf = std::env::current_exe().expect("own path");
    binary.pop();
    binary.pop();
    let binary = binary.join("examples/frames");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(binary)
        .args([dscp, len, &rounds.to_string()])
        .output()
        .expect("valgrind is installed by deploy/install.sh");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("Collected :")).expect("a count");
    line.split_whitespace().last().expect("a number").parse().expect("a number")
}

#[test]
fn instructions_a_frame_have_not_grown() {
    let recorded = include_str!("../../../tests/fixtures/instructions.txt");
    let mut checked = 0;
    for line in recorded.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, dscp, len, limit] = fields[..] else {
            panic!("{line}: name dscp length number")
        };
        let extra = instructions(dscp, len, MANY) - instructions(dscp, len, FEW);
        let a_frame = extra / ((MANY - FEW) * FRAMES_A_ROUND);
        let limit: u64 = limit.parse().expect("a number");
        println!("{name}: {a_frame} instructions a frame, recorded {limit}");
        assert!(
            a_frame * 100 <= limit * (100 + SLACK),
            "{name}: {a_frame} instructions a frame, {limit} recorded, {SLACK} % allowed"
        );
        checked += 1;
    }
    assert!(checked >= 3, "the file names the cases");
}
