//! The core has no clock, thread, file, socket or random order of its own: time and seed come in
//! as arguments, so that the switch and a simulator run the very same code. Nor has it floats.

use crate::syntax::{parse, without_tests, Paths};
use crate::{Finding, Tree};

const CORE: &str = "dataplane/core/src/";

/// Paths that reach outside, or whose order or result differs from run to run.
const BANNED: &[(&str, &str)] = &[
    ("std::time", "time comes in as an argument"),
    ("std::thread", "threads belong to the process"),
    ("std::fs", "files belong to the process"),
    ("std::net", "sockets belong to the process"),
    ("std::os", "file descriptors belong to the process"),
    ("std::env", "settings come in as the profile"),
    ("std::process", "the core ends nothing"),
    ("HashMap", "its order is random"),
    ("HashSet", "its order is random"),
    ("f32", "no floats in the core"),
    ("f64", "no floats in the core"),
];

/// Finds what the core may not name; its tests may.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.with_extension(&["rs"]).filter(|file| file.path.starts_with(CORE)) {
        let test_module = file.name() == "tests.rs" || file.path.contains("/tests/");
        let Ok(syntax) = parse(file) else { continue };
        if test_module {
            continue;
        }
        for (path, line) in Paths::of(&without_tests(syntax)) {
            let broken = BANNED.iter().find(|(banned, _)| names(&path, banned));
            found.extend(broken.map(|(_, why)| file.finding(line, format!("{path}: {why}"))));
        }
    }
    found
}

fn names(path: &str, banned: &str) -> bool {
    let single = !banned.contains("::") && path.split("::").any(|part| part == banned);
    single || path == banned || path.strip_prefix(banned).is_some_and(|rest| rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check(&Tree::of(&[("dataplane/core/src/x.rs", text)])).len()
    }

    #[test]
    fn reaching_outside_is_found_however_it_is_written() {
        assert_eq!(found("use std::time::Instant;"), 1);
        assert_eq!(found("use std::{fmt, thread};"), 1);
        assert_eq!(found("use std::collections::HashMap as Map;"), 1);
        assert_eq!(found("fn f() { std::thread::yield_now(); }"), 1);
        assert_eq!(found("fn f() -> f64 { 1.0 }"), 1);
    }

    #[test]
    fn tests_and_other_crates_may() {
        assert_eq!(found("#[cfg(test)]\nmod tests { use std::thread; }"), 0);
        assert_eq!(found("use std::fmt; use core::time::Duration;"), 0);
        assert!(check(&Tree::of(&[("ctl/src/x.rs", "use std::thread;")])).is_empty());
    }
}
