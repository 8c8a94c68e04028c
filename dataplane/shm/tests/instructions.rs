//! What it costs a worker that its counters are read: not one instruction (SPEC 11).
//!
//! Run in release by `deploy/test.sh`; needs valgrind.
#![cfg(not(any(loom, debug_assertions)))]
#![allow(clippy::expect_used)] // A failed set-up fails the test.

use std::path::PathBuf;
use std::process::Command;

/// Instructions of the thread that publishes, as callgrind counts them: those of the function that
/// publishes a block, inclusive.
fn instructions(rounds: u64, reads: u64) -> u64 {
    let mut binary: PathBuf = std::env::current_exe().expect("own path");
    binary.pop();
    binary.pop();
    let binary = binary.join("examples/publish");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("callgrind.out");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--separate-threads=yes"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(binary)
        .args([rounds.to_string(), reads.to_string()])
        .output()
        .expect("valgrind is installed by deploy/install.sh");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The first thread is the one that publishes.
    let text = std::fs::read_to_string(format!("{}-01", file.display())).expect("its file");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    line.expect("a count").trim().parse().expect("a number")
}

#[test]
fn reading_costs_the_writer_no_instruction() {
    // What one publication costs is known from two runs; starting up is in both.
    let per_block = (instructions(600, 0) - instructions(100, 0)) / 500;
    let (alone, watched) = (instructions(600, 0), instructions(600, 2000));
    println!("{per_block} instructions a block; {alone} alone, {watched} while read 2000 times");
    assert!(per_block > 500, "{per_block}: a block has more words than that");
    // Waiting for the other thread to start differs from run to run by a little.
    assert!(alone.abs_diff(watched) < 500 * per_block / 100, "{alone} alone, {watched} watched");
}
