//! What the control thread knows of the switch, and the view that replies are made from.

use super::{PortFacts, PortReading, WorkerReading};
use crate::ports::Downs;
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
    /// Ports by their number; `None` where there is none now.
    pub(crate) ports: Vec<Option<PortFacts>>,
    /// The clockwork of each worker's thread, with the core it stays on.
    pub(crate) threads: Vec<(Arc<WorkerStats>, Option<u32>)>,
    /// Chunks of frame memory, all workers together.
    pub(crate) chunks: u64,
    /// When it started, by the clock of `Worker::step`.
    pub(crate) started: Time,
    /// The frame by which `show ports` states the stall that is survived (SPEC 4.3).
    pub(crate) smallest_lossless_frame: FrameLen,
    /// Why ports are down.
    pub(crate) downs: Downs,
}

impl Board {
    /// What is known of a port.
    pub(crate) fn facts(&self, number: usize) -> Option<&PortFacts> {
        self.ports.get(number)?.as_ref()
    }

    /// The port of this name.
    pub(crate) fn port(&self, name: &str) -> Option<PortId> {
        let named = |facts: &Option<PortFacts>| facts.as_ref().is_some_and(|it| it.name == name);
        let number = self.ports.iter().position(named)?;
        PortId::new(u8::try_from(number).ok()?)
    }

    /// The name of a port, its number where it has none.
    pub(crate) fn port_name(&self, port: PortId) -> String {
        self.facts(port.index()).map_or_else(|| port.to_string(), |facts| facts.name.clone())
    }

    /// Names by number: empty where there is no port now.
    pub(crate) fn port_names(&self) -> Vec<String> {
        let name = |facts: &Option<PortFacts>| facts.as_ref().map(|facts| facts.name.clone());
        self.ports.iter().map(|facts| name(facts).unwrap_or_default()).collect()
    }

    /// The names of the ports that there are, for people.
    pub(crate) fn names_text(&self) -> String {
        let names: Vec<&str> = self.ports.iter().flatten().map(|facts| &*facts.name).collect();
        names.join(", ")
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
