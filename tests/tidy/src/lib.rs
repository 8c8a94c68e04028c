//! Checks the repository against its own rules: what a reviewer would otherwise have to look for.
//!
//! Each module is one rule: a function from a [`Tree`] to [`Finding`]s, with a test of its own
//! that shows what it finds. `tests/repository.rs` runs all of them over this repository.
#![forbid(unsafe_code)]

pub mod core_purity;
pub mod covered_rows;
pub mod dependency_direction;
pub mod dependency_pins;
pub mod file_length;
pub mod function_length;
pub mod line_length;
pub mod machine_paths;
pub mod names;
mod syntax;
pub mod test_index;
pub mod tree;
pub mod unfinished;
pub mod unsafe_code;

pub use tree::{Finding, Tree};
