//! Every input of the corpora, and some thousand changed ones, hold the laws of their target.
#![allow(clippy::unwrap_used, clippy::panic)] // A test fails by panicking, in its functions too.

mod mutation;

use holdfast_fuzz::{Target, TARGETS};
use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};

/// Changed inputs of each target in a plain run.
const CHANGED: usize = 3_000;

/// The files of a target's corpus, in the order of their names.
fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "{}: {} files", target.name, files.len());
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn run(target: &Target, input: &[u8], what: &dyn Fn() -> String) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        panic!("{}: {} breaks a law: {}", target.name, what(), input.escape_ascii());
    }
}

#[test]
fn every_input_of_the_corpora_holds_the_laws() {
    for target in &TARGETS {
        for (path, input) in corpus(target) {
            assert!(input.len() <= target.max_len, "{}: longer than a run takes", path.display());
            run(target, &input, &|| path.display().to_string());
        }
    }
}

#[test]
fn changed_inputs_hold_them_too() {
    for target in &TARGETS {
        let seeds: Vec<Vec<u8>> = corpus(target).into_iter().map(|(_, input)| input).collect();
        let mut changes = mutation::Mutator::new(&seeds, target.max_len, 1);
        for number in 0..CHANGED {
            run(target, &changes.next_input(), &|| format!("change {number}"));
        }
    }
}
