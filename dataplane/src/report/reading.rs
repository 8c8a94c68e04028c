//! What a worker tells of itself and its ports between two steps: plain data.

use super::RingReading;
use holdfast_api::message::PfcDirection;
use holdfast_core::context::EdgeCount;
use holdfast_core::counters::PortCounters;
use holdfast_core::durations::Durations;
use holdfast_core::ids::{PerPg, PerPriority, PerQueue, PgId, PortId, Priority, QueueId, WorkerId};
use holdfast_core::io::{FramePool, PortIo};
use holdfast_core::mmu::View as PeakView;
use holdfast_core::pfc::watchdog::QueueWatch;
use holdfast_core::pfc::{PauseCause, PauseCounts, Peer};
use holdfast_core::port::Port;
use holdfast_core::profile::Profile;
use holdfast_core::units::{Cells, Time};
use holdfast_core::worker::Worker;
use holdfast_wire::{InvalidKind, MacAddr};

/// One worker at one instant.
#[derive(Clone, Debug)]
pub(crate) struct WorkerReading {
    /// Its number.
    pub(crate) id: WorkerId,
    /// Generation of the profile it runs.
    pub(crate) generation: u64,
    /// Chunks that lie free at it.
    pub(crate) free_chunks: u64,
    /// Chunks that are on their way home to it.
    pub(crate) returning_chunks: u64,
    /// Edges it won, by port in the order of their numbers.
    pub(crate) edges: Vec<PerPg<EdgeCount>>,
    /// Its ports.
    pub(crate) ports: Vec<PortReading>,
}

/// One port at one instant.
#[derive(Clone, Debug)]
pub(crate) struct PortReading {
    /// Its number.
    pub(crate) id: PortId,
    /// Its own address.
    pub(crate) mac: MacAddr,
    /// Whether its link is usable.
    pub(crate) up: bool,
    /// Whether `port hold` stops its egress.
    pub(crate) held: bool,
    /// Bytes between TX ring and completion.
    pub(crate) in_ring_bytes: u64,
    /// What it has counted.
    pub(crate) counters: PortCounters,
    /// Its egress queues.
    pub(crate) queues: PerQueue<QueueReading>,
    /// PFC by priority.
    pub(crate) priorities: PerPriority<PriorityReading>,
    /// MAC control frames without effect, by kind.
    pub(crate) invalid: [u64; InvalidKind::COUNT],
    /// 802.3x PAUSE frames received, obeyed or not.
    pub(crate) link_pause_frames: u64,
    /// XOFF reaction times.
    pub(crate) reaction: Durations,
    /// Whether the peer obeys PFC.
    pub(crate) peer: Peer,
    /// Frames that were received and wait for room (SPEC 4.3).
    pub(crate) late: u32,
    /// What only the rings know.
    pub(crate) rings: RingReading,
}

/// One egress queue at one instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueReading {
    /// Whether a received pause stops it.
    pub(crate) paused: bool,
    /// Cells queued and in the TX ring.
    pub(crate) occupancy: Cells,
    /// Frames waiting.
    pub(crate) frames: u64,
    /// Highest occupancy since it was last cleared.
    pub(crate) user_peak: Cells,
    /// Highest occupancy since the start.
    pub(crate) persistent_peak: Cells,
    /// The averaged depth that WRED goes by.
    pub(crate) average: Cells,
    /// Its watchdog.
    pub(crate) watch: QueueWatch,
}

/// PFC of one priority at one instant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PriorityReading {
    /// Why it should be paused now, in the order of [`PauseCause::ALL`].
    pub(crate) causes: [bool; PauseCause::ALL.len()],
    /// What was sent.
    pub(crate) transmitted: PfcDirection,
    /// What was received.
    pub(crate) received: PfcDirection,
    /// Received and not obeyed.
    pub(crate) not_enabled: u64,
}

impl WorkerReading {
    /// Reads `worker` at the time `now`; only the port `only` where one is named. `rings` reads
    /// what the kind of port has beyond the core's seam.
    pub(crate) fn take<P: PortIo>(
        worker: &mut Worker<P>,
        rings: fn(&mut P) -> RingReading,
        only: Option<PortId>,
        now: Time,
    ) -> Self {
        let profile = std::sync::Arc::clone(worker.profile());
        let ids: Vec<PortId> = worker.ports().iter().map(Port::id).collect();
        let wanted = ids.into_iter().filter(|id| only.is_none_or(|only| only == *id));
        let ports = wanted
            .filter_map(|id| {
                let port = worker.port_mut(id)?;
                let rings = rings(port.io_mut());
                Some(PortReading::take(port, rings, &profile, now))
            })
            .collect();
        let edges = (0..profile.spec().ports.len())
            .map(|number| {
                let port = PortId::from_bits(number as u8);
                PerPg::from_fn(|pg: PgId| worker.edges(port, pg))
            })
            .collect();
        Self {
            id: worker.id(),
            generation: profile.generation(),
            free_chunks: worker.pool().free_chunks() as u64,
            returning_chunks: worker.pool().returning_chunks() as u64,
            edges,
            ports,
        }
    }
}

impl PortReading {
    fn take<P>(port: &Port<P>, rings: RingReading, profile: &Profile, now: Time) -> Self {
        let receiver = port.pause_receiver();
        let paused = match profile.port(port.id()) {
            Some(spec) => receiver.paused_queues(now, &spec.maps),
            None => Default::default(),
        };
        Self {
            id: port.id(),
            mac: port.mac(),
            up: port.is_up(),
            held: port.is_held(),
            in_ring_bytes: u64::from(port.in_ring_bytes()),
            peer: port.peer(),
            late: port.late_frames(),
            counters: port.counters().clone(),
            queues: PerQueue::from_fn(|id| QueueReading {
                paused: paused.contains(id),
                ..QueueReading::take(port, id)
            }),
            priorities: PerPriority::from_fn(|id| PriorityReading::take(port, id, now)),
            invalid: InvalidKind::ALL.map(|kind| receiver.invalid(kind)),
            link_pause_frames: receiver.link_frames(),
            reaction: *port.reaction(),
            rings,
        }
    }
}

impl QueueReading {
    fn take<P>(port: &Port<P>, id: QueueId) -> Self {
        let queue = port.queue(id);
        let account = queue.account();
        Self {
            paused: false,
            occupancy: account.occupancy(),
            frames: queue.frames() as u64,
            user_peak: account.watermark(PeakView::User),
            persistent_peak: account.watermark(PeakView::Persistent),
            average: queue.averaged_depth(),
            watch: port.watchdog(id).clone(),
        }
    }
}

impl PriorityReading {
    fn take<P>(port: &Port<P>, id: Priority, now: Time) -> Self {
        let (sender, receiver) = (port.pause_sender(), port.pause_receiver());
        let level = sender.level();
        let causes =
            PauseCause::ALL.map(|cause| sender.cause(cause).contains(id) && level.contains(id));
        Self {
            causes,
            transmitted: PfcDirection {
                paused: sender.paused().contains(id),
                remaining_ns: sender.remaining(id, now).0,
                paused_ns: sender.paused_time(id, now).0,
                transitions: sender.transitions(id),
                ..frames(sender.counts(id))
            },
            received: PfcDirection {
                paused: receiver.is_paused(id, now),
                remaining_ns: receiver.remaining(id, now).0,
                paused_ns: receiver.paused_time(id, now).0,
                transitions: receiver.transitions(id),
                ..frames(receiver.counts(id))
            },
            not_enabled: receiver.not_enabled(id),
        }
    }
}

fn frames(counts: PauseCounts) -> PfcDirection {
    let PauseCounts { xoff, refresh, xon } = counts;
    PfcDirection { xoff, refresh, xon, ..PfcDirection::default() }
}
