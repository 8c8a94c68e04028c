//! Atomics: the machine's, or loom's when its explorer runs the code.

#[cfg(loom)]
pub use loom::sync::atomic;

#[cfg(not(loom))]
pub use core::sync::atomic;
