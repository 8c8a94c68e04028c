//! One port as its owner sees it: rings, egress queues, schedulers and PFC state machines.

use crate::counters::PortCounters;
use crate::deadlock::standstill::Standstill;
use crate::deadlock::PgSuspicion;
use crate::durations::Durations;
use crate::frame::Descriptor;
use crate::ids::{PerPg, PerQueue, PgId, PortId, QueueId, QueueSet};
use crate::io::{Losses, PortIo};
use crate::late::LateFrames;
use crate::mmu::QueueAccount;
use crate::pfc::watchdog::QueueWatch;
use crate::pfc::{PauseReceiver, PauseSender, Peer, PeerWatch};
use crate::profile::PortSpec;
use crate::sched::{Pacer, Scheduler, Shaper};
use crate::units::{CellSize, Cells, Time};
use crate::watch::PortWatch;
use crate::wred::Wred;
use holdfast_wire::MacAddr;
use std::collections::VecDeque;

/// One egress queue: its frames in order, its account, its marking.
pub struct EgressQueue {
    pub(crate) fifo: VecDeque<Descriptor>,
    pub(crate) account: QueueAccount,
    pub(crate) wred: Wred,
}

impl EgressQueue {
    /// Frames that wait; what is in the TX ring has left the queue but not its account.
    pub fn frames(&self) -> usize {
        self.fifo.len()
    }

    /// What each of them is charged to, from the head on, with its cells.
    pub fn charges(&self, cell: CellSize) -> impl Iterator<Item = ((PortId, PgId), Cells)> + '_ {
        self.fifo.iter().map(move |frame| (frame.account(), frame.len().to_cells(cell)))
    }

    /// Cells queued and in the TX ring, with their watermarks.
    pub const fn account(&self) -> &QueueAccount {
        &self.account
    }

    /// The average depth by which WRED decided last (SPEC 5, `ewma_weight`).
    pub const fn averaged_depth(&self) -> Cells {
        self.wred.average()
    }
}

/// A port of the switch, owned by one worker (DESIGN law 2).
pub struct Port<P> {
    pub(crate) id: PortId,
    pub(crate) mac: MacAddr,
    pub(crate) io: P,
    pub(crate) queues: PerQueue<EgressQueue>,
    /// Queues that hold frames.
    pub(crate) waiting: QueueSet,
    pub(crate) scheduler: Scheduler,
    pub(crate) shaper: Shaper,
    pub(crate) pacer: Pacer,
    pub(crate) sender: PauseSender,
    pub(crate) receiver: PauseReceiver,
    pub(crate) peer: PeerWatch,
    pub(crate) held: bool,
    pub(crate) backlogged: bool,
    pub(crate) up: bool,
    pub(crate) counters: PortCounters,
    pub(crate) reaction: Durations,
    pub(crate) latency: Durations,
    /// Received, and waiting for room.
    pub(crate) late: LateFrames,
    /// What its driver had lost when it was asked last.
    pub(crate) losses: Losses,
    pub(crate) watch: PortWatch,
    /// Its queues that stand.
    pub(crate) standstill: Standstill,
    /// Its PGs none of whose frames can move.
    pub(crate) suspicions: PerPg<PgSuspicion>,
    /// Whether there is one now.
    pub(crate) suspected: bool,
}

impl<P> Port<P> {
    /// A port as `spec` wants it. `frames` bounds what one queue can ever hold, so that no queue
    /// grows after boot; `seed` starts the generators of its queues' WRED.
    pub fn new(id: PortId, mac: MacAddr, io: P, spec: &PortSpec, frames: usize, seed: u64) -> Self
    where
        P: PortIo,
    {
        let late = LateFrames::new(io.rx_ring());
        Self {
            id,
            mac,
            io,
            queues: PerQueue::from_fn(|queue| EgressQueue {
                fifo: VecDeque::with_capacity(frames),
                account: QueueAccount::default(),
                wred: Wred::new(seed ^ (u64::from(id.number()) << 8 | u64::from(queue.number()))),
            }),
            waiting: QueueSet::EMPTY,
            scheduler: Scheduler::new(spec),
            shaper: Shaper::new(spec.speed, spec.catch_up),
            pacer: Pacer::new(spec.tx_inflight),
            sender: PauseSender::new(&spec.pfc, spec.speed),
            receiver: PauseReceiver::new(&spec.pfc, spec.speed),
            peer: PeerWatch::default(),
            held: false,
            backlogged: false,
            up: true,
            counters: PortCounters::default(),
            reaction: Durations::default(),
            latency: Durations::default(),
            late,
            losses: Losses::default(),
            watch: PortWatch::default(),
            standstill: Standstill::default(),
            suspicions: PerPg::default(),
            suspected: false,
        }
    }

    /// Its number.
    pub const fn id(&self) -> PortId {
        self.id
    }

    /// Its own address: the source of its PFC frames.
    pub const fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Its rings.
    pub const fn io(&self) -> &P {
        &self.io
    }

    /// Its rings, to read their statistics.
    pub fn io_mut(&mut self) -> &mut P {
        &mut self.io
    }

    /// Takes its rings out, of a port that no worker has any more; `closed` is in their place then.
    pub fn take_io(&mut self, closed: P) -> P {
        std::mem::replace(&mut self.io, closed)
    }

    /// What it has counted.
    pub const fn counters(&self) -> &PortCounters {
        &self.counters
    }

    /// What it has counted, for losses that only the rings' owner sees.
    pub fn counters_mut(&mut self) -> &mut PortCounters {
        &mut self.counters
    }

    /// One of its queues.
    pub fn queue(&self, queue: QueueId) -> &EgressQueue {
        &self.queues[queue]
    }

    /// The side that pauses the peer.
    pub const fn pause_sender(&self) -> &PauseSender {
        &self.sender
    }

    /// The side that the peer pauses.
    pub const fn pause_receiver(&self) -> &PauseReceiver {
        &self.receiver
    }

    /// The watchdog of one of its queues.
    pub fn watchdog(&self, queue: QueueId) -> &QueueWatch {
        self.watch.queue(queue)
    }

    /// Since when one of its queues has been paused with frames in it and sent none; `None` if it
    /// isn't so.
    pub fn stands_since(&self, queue: QueueId) -> Option<Time> {
        self.standstill.since(queue)
    }

    /// Whether one of its PGs is suspected of a deadlock (SPEC 8).
    pub fn suspicion(&self, pg: PgId) -> &PgSuspicion {
        &self.suspicions[pg]
    }

    /// Whether the peer obeys PFC (SPEC 4.3).
    pub fn peer(&self) -> Peer {
        self.peer.known()
    }

    /// From the charge that decided XOFF to the kick that sent its frame (SPEC 4.1).
    pub const fn reaction(&self) -> &Durations {
        &self.reaction
    }

    /// From the RX burst in which frames were taken to the kick that sent them here: sampled, see
    /// [`crate::probe`].
    pub const fn latency(&self) -> &Durations {
        &self.latency
    }

    /// Frames that were received and wait for room in their PG (SPEC 4.3).
    pub const fn late_frames(&self) -> u32 {
        self.late.frames()
    }

    /// Whether `port hold` stops its egress.
    pub const fn is_held(&self) -> bool {
        self.held
    }

    /// Whether its link is usable.
    pub const fn is_up(&self) -> bool {
        self.up
    }

    /// Bytes of its data frames between TX ring and completion (`tx_inflight`, SPEC 4.2).
    pub const fn in_ring_bytes(&self) -> u32 {
        self.pacer.inflight()
    }

    /// Lowers one queue's user watermark to the present occupancy.
    pub fn clear_queue_watermark(&mut self, queue: QueueId) {
        self.queues[queue].account.clear_user_watermark();
    }

    /// Lowers its queues' user watermarks to the present occupancy.
    pub fn clear_watermarks(&mut self) {
        for (_, queue) in self.queues.iter_mut() {
            queue.account.clear_user_watermark();
        }
    }

    /// Takes over a new profile's word on scheduling and PFC.
    pub(crate) fn adopt(&mut self, spec: &PortSpec, now: Time) {
        self.scheduler.adopt(spec);
        self.shaper.adopt(spec.speed, spec.catch_up);
        self.pacer.adopt(spec.tx_inflight);
        self.sender.adopt(&spec.pfc, spec.speed);
        self.receiver.adopt(&spec.pfc, spec.speed, now);
        self.peer.begin_anew();
    }
}
