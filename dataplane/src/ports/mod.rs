//! Ports that go and come back while the switch runs (SPEC 9).
//!
//! The link watcher sees what happens to a netdev. What needs a port to be closed or opened it
//! gives to the [`keeper`], a thread of its own: closing a socket and opening a port take the
//! kernel milliseconds, in which a worker would lose frames. A worker only hands its rings out and
//! takes new ones, between two steps; the control thread has the profile and says whether a port
//! fits as it is now. [`lifetimes`] has ports that are added and removed for good.

mod downs;
mod keeper;
mod lifetimes;
mod retry;

pub(crate) use downs::Downs;
pub(crate) use keeper::{KeeperOrder, KeeperParts, PortKeeper};

use crate::report::PortFacts;
use crossbeam::channel::Sender;
use holdfast_core::profile::Profile;
use holdfast_xsk::LosslessWriter;
use std::sync::Arc;

/// WRED starts from this: a switch marks the same frames of the same traffic in every run.
pub(crate) const WRED_SEED: u64 = 0x686f_6c64_6661_7374;

/// What the keeper asks of the control thread.
pub(crate) enum PortCall {
    /// Whether a port that was opened, again or newly, fits the profile as it is now. If it does,
    /// the control thread has put the profile into force with its MTU, or with the port, when it
    /// answers.
    Opened {
        /// The port's number.
        number: usize,
        /// Its MTU.
        mtu: u16,
        /// What is known of it from now on.
        facts: Box<PortFacts>,
        /// Tells its XDP program what is lossless; `None` at a port in memory.
        lossless: Option<LosslessWriter>,
        /// The answer: the profile in force, or why it doesn't fit.
        answer: Sender<Result<Arc<Profile>, String>>,
    },
}
