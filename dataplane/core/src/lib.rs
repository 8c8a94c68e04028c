//! The switch, pure: no clock, thread, file descriptor, random source or `unsafe` (DESIGN law 1).
//!
//! A frame comes in by [`ingress`], out by [`egress`]; [`worker`]'s step calls both. Time and
//! seeds are arguments, ports and memory are the two traits of [`io`], so that the live switch
//! and the simulator run the same code.
#![forbid(unsafe_code)]

pub mod classify;
pub mod context;
pub mod copies;
pub mod counters;
pub mod deadlock;
pub mod down;
pub mod drop;
pub mod durations;
pub mod egress;
mod exchange;
#[cfg(not(loom))]
mod explorer;
#[cfg(loom)]
pub mod explorer;
pub mod fdb;
pub mod frame;
pub mod ids;
pub mod ingress;
pub mod io;
mod late;
pub mod link_errors;
pub mod memory;
pub mod mmu;
mod pause;
pub mod pfc;
pub mod port;
pub mod probe;
pub mod profile;
pub mod ring;
pub mod sched;
pub mod sleep;
pub mod sync;
pub mod topology;
pub mod trace;
pub mod units;
mod watch;
pub mod worker;
pub mod wred;
