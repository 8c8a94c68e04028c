//! The running switch as the control thread knows it: names, status, workers, profile.

use crate::mailbox::Workers;
use crate::worker_thread::{LiveWorker, WorkerStats};
use holdfast_core::context::Shared;
use holdfast_core::profile::Profile;
use holdfast_core::topology::Topology;
use holdfast_plan::HeadroomTerm;
use holdfast_xsk::PortStatus;
use std::sync::Arc;
use std::time::Instant;

/// What is known of a port besides its counters.
pub struct PortInfo {
    /// Its name in CLI, API and metrics.
    pub name: String,
    /// The network namespace as configured; `None` for the switch's own.
    pub netns: Option<String>,
    /// Its netdev.
    pub ifname: String,
    /// What bring-up got and changed.
    pub status: PortStatus,
}

/// The running switch.
pub struct Switch {
    /// Its name.
    pub name: String,
    /// The workers' mailboxes.
    pub workers: Workers<LiveWorker>,
    /// Accounts, FDB and copies.
    pub shared: Arc<Shared>,
    /// Who owns which port.
    pub topology: Arc<Topology>,
    /// The profile in force.
    pub profile: Arc<Profile>,
    /// What the planner and the boot had to say: warnings, keys that aren't obeyed yet.
    pub notes: Vec<String>,
    /// What the profile's formula asks of each lossless PG; empty without a formula.
    pub headroom_terms: Vec<HeadroomTerm>,
    /// Ports by their number.
    pub ports: Vec<PortInfo>,
    /// Each worker's clockwork, by number.
    pub stats: Vec<Arc<WorkerStats>>,
    /// The core each worker is pinned to, by number.
    pub cpus: Vec<Option<usize>>,
    /// When it started.
    pub started: Instant,
}
