//! Every rule over this repository.

use holdfast_tidy::{
    core_purity, covered_rows, dependency_direction, dependency_pins, file_length, function_length,
    line_length, machine_paths, names, test_index, unfinished, unsafe_code, Finding, Tree,
};
use std::path::Path;

fn repository() -> Tree {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tree = Tree::read(&top).unwrap_or_default();
    // A rule over the wrong folder would find nothing and be content.
    assert!(tree.get("dataplane/core/src/lib.rs").is_some(), "{} isn't the top", top.display());
    tree
}

fn holds(rule: fn(&Tree) -> Vec<Finding>) {
    let found = rule(&repository());
    let lines: Vec<_> = found.iter().map(|finding| format!("\n  {finding}")).collect();
    assert!(found.is_empty(), "{} found:{}", found.len(), lines.concat());
}

#[test]
fn files_are_short() {
    holds(file_length::check);
}

#[test]
fn lines_are_short() {
    holds(line_length::check);
}

#[test]
fn functions_are_short() {
    holds(function_length::check);
}

#[test]
fn crates_depend_inwards() {
    holds(dependency_direction::check);
}

#[test]
fn outside_crates_are_pinned_and_explained() {
    holds(dependency_pins::check);
}

#[test]
fn the_core_is_pure() {
    holds(core_purity::check);
}

#[test]
fn names_say_something() {
    holds(names::check);
}

#[test]
fn unsafe_stays_in_its_place() {
    holds(unsafe_code::check);
}

#[test]
fn nothing_is_unfinished() {
    holds(unfinished::check);
}

#[test]
fn no_machine_is_named() {
    holds(machine_paths::check);
}

#[test]
fn the_index_names_tests_that_exist() {
    holds(test_index::check);
}

#[test]
fn every_row_of_faults_has_a_test() {
    holds(covered_rows::check);
}
