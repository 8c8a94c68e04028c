//! Fuzz targets: any bytes into every door of the switch, and laws that must hold for each.
//!
//! A target is a function of a byte string that returns, or panics where a law is broken. The same
//! function is driven three ways: by libFuzzer with coverage (`fuzz_targets`, `deploy/fuzz.sh`), by
//! the replay of its corpus and a short slice of mutations in `cargo test` (`tests/corpora.rs`),
//! and by hand with one file (`holdfast-fuzz --replay`).
#![forbid(unsafe_code)]
// A target fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod control;
pub mod http;
pub mod import;
pub mod profile;
pub mod state;
pub mod switch;
pub mod switch_file;
pub mod wire;

/// One door of the switch.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: that of its binary and of its folder in `corpus`.
    pub name: &'static str,
    /// What it does with an input.
    pub run: fn(&[u8]),
    /// Longest input of a run, bytes: longer ones cost time and reach no more code.
    pub max_len: usize,
}

const fn target(name: &'static str, run: fn(&[u8]), max_len: usize) -> Target {
    Target { name, run, max_len }
}

/// Every target.
pub const TARGETS: [Target; 8] = [
    target("wire", wire::target, 192),
    target("switch", switch::target, 128),
    target("control", control::target, 512),
    target("http", http::target, 768),
    target("profile", profile::target, 1024),
    target("switch_file", switch_file::target, 768),
    target("import", import::target, 2048),
    target("state", state::target, 768),
];
