//! What the control thread knows of the switch, and the view that replies are made from.

use super::{PortFacts, PortReading, WorkerReading};
use crate::worker_thread::WorkerStats;
use holdfast_core::context::Shared;
use holdfast_core::ids::PortId;
use holdfast_core::profile::{PortSpec, Profile};
use holdfast_core::topology::Topology;
use holdfast_core::units::{FrameLen, Nanos, Time};
use holdfast_plan::HeadroomTerm;
use std::sync::Arc;

/// The switch but for what only its workers can read.
pub(crate) struct Board {
    /// Its name.
    pub(crate) name: String,
    /// Accounts, FDB and copies.
    pub(crate) shared: Arc<Shared>,
    /// Who owns which port.
    pub(crate) topology: Arc<Topology>,
    /// The profile in force.
    pub(crate) profile: Arc<Profile>,
    /// What the planner and the boot had to say.
    pub(crate) notes: Vec<String>,
    /// What the profile's formula asks of each lossless PG; empty without a formula.
    pub(crate) headroom_terms: Vec<HeadroomTerm>,
    /// Ports by their number.
    pub(crate) ports: Vec<PortFacts>,
    /// The clockwork of each worker's thread, with the core it stays on.
    pub(crate) threads: Vec<(Arc<WorkerStats>, Option<u32>)>,
    /// Chunks of frame memory, all workers together.
    pub(crate) chunks: u64,
    /// When it started, by the clock of `Worker::step`.
    pub(crate) started: Time,
    /// The frame by which `show ports` states the stall that is survived (SPEC 4.3).
    pub(crate) smallest_lossless_frame: FrameLen,
}

impl Board {
    /// The port of this name.
    pub(crate) fn port(&self, name: &str) -> Option<PortId> {
        let number = self.ports.iter().position(|port| port.name == name)?;
        PortId::new(u8::try_from(number).ok()?)
    }

    /// The name of a port, its number where it has none.
    pub(crate) fn port_name(&self, port: PortId) -> String {
        self.ports.get(port.index()).map_or_else(|| port.to_string(), |facts| facts.name.clone())
    }

    /// The names of all ports in the order of their numbers.
    pub(crate) fn port_names(&self) -> Vec<String> {
        self.ports.iter().map(|facts| facts.name.clone()).collect()
    }
}

/// The readings of all workers beside what they share, at one instant.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    /// What is known without asking.
    pub(crate) board: &'a Board,
    /// What the workers answered, in the order of their numbers.
    pub(crate) workers: &'a [WorkerReading],
    /// When, by the clock of `Worker::step`.
    pub(crate) now: Time,
}

impl<'a> View<'a> {
    /// The ports that were read and that the profile has, in the order of their numbers.
    pub(crate) fn ports(&self) -> Vec<(&'a PortReading, &'a PortSpec)> {
        let (board, workers) = (self.board, self.workers);
        let readings = workers.iter().flat_map(|worker| &worker.ports);
        let mut ports: Vec<_> = readings
            .filter_map(|port| board.profile.port(port.id).map(|spec| (port, spec)))
            .collect();
        ports.sort_by_key(|(port, _)| port.id);
        ports
    }

    /// How long the switch has run.
    pub(crate) fn uptime(&self) -> Nanos {
        self.now.since(self.board.started)
    }
}
