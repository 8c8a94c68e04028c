#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod binaries;
pub mod cable;
pub mod endpoint;
pub mod error;
pub mod frames;
pub mod lab;
pub mod long;
pub mod lossless;
pub mod netns;
pub mod process;
pub mod tshark;
pub mod unrest;
pub mod wait;
pub mod waits;

pub use endpoint::{Captured, Endpoint};
pub use error::LabError;
pub use lab::daemon::{Answer, Daemon, Samples};
pub use lab::leftover::remove_leftovers;
pub use lab::plan::{LabPlan, PortPlan, ProfilePlan, SwitchPlan};
pub use lab::switch::{EdgeRecord, Switch};
pub use lab::{in_lab, Lab, TestResult};
