//! The counters of a running switch in shared memory (SPEC 11, DESIGN 2).
//!
//! The dataplane makes one sealed memory file ([`Segment`]); each thread publishes what it owns
//! into blocks of its own ([`BlockWriter`]). Whoever is given the file over the control socket
//! maps it read-only ([`SegmentReader`]) and takes copies. A reader writes nothing and is waited
//! for by nobody: what it costs the switch doesn't depend on how often it reads.
//!
//! [`counters`] says what is in a block, [`directory`] what the numbers of ports, workers and pools
//! stand for, [`words`] how both become 64-bit words, [`block`] how a copy is whole although it is
//! being written, [`layout`] where each block lies.
#![deny(unsafe_code)]

pub mod block;
pub mod counters;
pub mod directory;
pub mod layout;
#[cfg(not(loom))] // Loom's atomics live in its models only, never in mapped memory.
mod map;
#[cfg(not(loom))]
mod reader;
#[cfg(not(loom))]
mod segment;
mod sync;
pub mod words;

#[cfg(not(loom))]
pub use reader::{SegmentError, SegmentReader};
#[cfg(not(loom))]
pub use segment::{BlockWriter, DirectoryWriter, Identity, Segment};
