//! What a worker publishes of itself and its ports for whoever reads the counters segment (SPEC
//! 11): one block a turn between two steps, each block every 10 ms while there is work.
//!
//! It costs the same whether anybody reads or not, and no frame waits for more than one block.

mod blocks;

use crate::worker_thread::WorkerStats;
use blocks::{fill_port, fill_shared, fill_worker};
use holdfast_core::ids::PortId;
use holdfast_core::io::PortIo;
use holdfast_core::units::{Nanos, Time};
use holdfast_core::worker::Worker;
use holdfast_shm::counters::{PortBlock, SharedBlock, WorkerBlock};
use holdfast_shm::{BlockWriter, Segment};

/// How old a block is at most while its worker has work.
pub(crate) const PUBLISH_EVERY: Nanos = Nanos::millis(10);
/// Over how long the busy ratio is taken.
const BUSY_WINDOW: Nanos = Nanos::millis(1_000);

/// Where one worker publishes. It allocates here and never again.
#[derive(Debug)]
pub(crate) struct Publication {
    ports: Vec<(PortId, BlockWriter<PortBlock>)>,
    worker: Option<BlockWriter<WorkerBlock>>,
    /// What all share, where this is the worker that publishes it.
    shared: Option<BlockWriter<SharedBlock>>,
    port_block: Box<PortBlock>,
    /// Which block is next: a port's, or after the last of them those that aren't a port's.
    next: usize,
    round_began: Time,
    next_round: Time,
    busy: BusyWindow,
}

impl Publication {
    /// The blocks of the worker of this number, which owns `ports`, or will: a port that isn't
    /// there is passed over.
    pub(crate) fn new(
        segment: &mut Segment,
        worker: usize,
        ports: impl Iterator<Item = PortId>,
    ) -> Self {
        let writers = ports.filter_map(|id| Some((id, segment.port(id.index())?)));
        Self {
            ports: writers.collect(),
            worker: segment.worker(worker),
            shared: if worker == 0 { segment.shared() } else { None },
            port_block: Box::default(),
            next: 0,
            round_began: Time::default(),
            next_round: Time::default(),
            busy: BusyWindow::default(),
        }
    }

    /// When the last round began: what happened since may not be published yet.
    pub(crate) const fn round_began(&self) -> Time {
        self.round_began
    }

    /// When the next round begins, which a worker that sleeps must wake for if it has worked since
    /// the last one.
    pub(crate) const fn due(&self) -> Time {
        self.next_round
    }

    /// Publishes one block, if one is due.
    #[inline]
    pub(crate) fn turn<P: PortIo>(
        &mut self,
        worker: &mut Worker<P>,
        stats: &WorkerStats,
        now: Time,
    ) {
        if now >= self.next_round {
            self.publish_next(worker, stats, now);
        }
    }

    /// Publishes what is left of a round: before a long sleep.
    pub(crate) fn finish_round<P: PortIo>(
        &mut self,
        worker: &mut Worker<P>,
        stats: &WorkerStats,
        now: Time,
    ) {
        while now >= self.next_round {
            self.publish_next(worker, stats, now);
        }
    }

    #[cold]
    fn publish_next<P: PortIo>(&mut self, worker: &mut Worker<P>, stats: &WorkerStats, now: Time) {
        if self.next == 0 {
            self.round_began = now;
        }
        if let Some((id, writer)) = self.ports.get_mut(self.next) {
            if fill_port(&mut self.port_block, worker, *id, now) {
                writer.publish(&self.port_block);
            }
            self.next += 1;
            return;
        }
        if let Some(writer) = &mut self.shared {
            writer.publish(&fill_shared(worker, now));
        }
        if let Some(writer) = &mut self.worker {
            let busy_millionths = self.busy.at(stats, now);
            writer.publish(&WorkerBlock { busy_millionths, ..fill_worker(worker, stats, now) });
        }
        self.next = 0;
        self.next_round = now.after(PUBLISH_EVERY);
    }
}

/// The share of a second that went into steps that found work.
#[derive(Debug, Default)]
struct BusyWindow {
    began: Time,
    busy_ns: u64,
    millionths: u64,
}

impl BusyWindow {
    /// The share of the last whole window.
    fn at(&mut self, stats: &WorkerStats, now: Time) -> u64 {
        let span = now.since(self.began);
        if span >= BUSY_WINDOW {
            let busy_ns = stats.busy_ns.load(std::sync::atomic::Ordering::Relaxed);
            let busy = u128::from(busy_ns - self.busy_ns) * 1_000_000 / u128::from(span.0);
            self.millionths = u64::try_from(busy).unwrap_or(u64::MAX).min(1_000_000);
            (self.began, self.busy_ns) = (now, busy_ns);
        }
        self.millionths
    }
}

#[cfg(test)]
mod tests;
