//! The switch in the control thread's hands: its workers to ask, and what is known besides.

use super::host::Below;
use super::published::Published;
use super::{Applying, ControlSettings, PortDesk, ReadRings, Witness};
use crate::host::Looker;
use crate::mailbox::{WorkerSilent, Workers};
use crate::report::{live_rings, Board, PortFacts, View, WorkerReading};
use crate::switch::Switch;
use holdfast_api::log_lines::Throttle;
use holdfast_api::message::{ErrorBody, ErrorCode};
use holdfast_core::ids::{PgId, PortId, QueueId};
use holdfast_core::io::PortIo;
use holdfast_core::units::{Nanos, Time};
use holdfast_core::worker::Worker;
use holdfast_xsk::{clock, XskPort};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The switch as the control thread holds it, of any kind of ports: AF_XDP, or memory in tests.
pub(crate) struct Console<P: PortIo> {
    pub(super) board: Board,
    pub(super) workers: Workers<Worker<P>>,
    pub(super) rings: ReadRings<P>,
    /// The clock that the workers step by.
    pub(super) clock: fn() -> Time,
    /// The last generation given to a profile, in force or not.
    pub(super) generation: u64,
    pub(super) applying: Applying,
    pub(super) published: Published,
    /// Refused changes in the log, by call and code.
    pub(super) refusals: Throttle<(&'static str, ErrorCode)>,
    pub(super) witness: Witness,
    pub(super) below: Below,
    /// What goes to and fro with the keeper of ports.
    pub(super) desk: PortDesk,
}

impl Console<XskPort> {
    /// The console of a switch with live ports; for the arguments see
    /// [`super::ControlSettings`].
    pub(crate) fn live(switch: Switch, settings: ControlSettings) -> Self {
        let ControlSettings { chunks, smallest_lossless_frame, applying, segment, .. } = settings;
        let ControlSettings { links, desk, downs, because, .. } = settings;
        let Switch { name, workers, shared, topology, profile, notes, headroom_terms, .. } = switch;
        let (ports, stats, cpus, started) =
            (switch.ports, switch.stats, switch.cpus, switch.started);
        let uptime = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let now = clock::now();
        let cpus = cpus.into_iter().map(|cpu| cpu.and_then(|cpu| u32::try_from(cpu).ok()));
        let mut known: Vec<Option<PortFacts>> =
            ports.into_iter().map(|port| Some(PortFacts::from(port))).collect();
        known.resize(profile.spec().ports.len(), None);
        let board = Board {
            name,
            shared,
            topology,
            profile,
            notes,
            headroom_terms,
            ports: known,
            threads: stats.into_iter().zip(cpus).collect(),
            chunks,
            started: Time(now.0.saturating_sub(uptime)),
            smallest_lossless_frame,
            downs,
        };
        let mut console = Self {
            generation: board.profile.generation(),
            published: Published::new(segment, &board),
            below: Below::new(Looker::new(), board.ports.len(), board.started),
            board,
            workers,
            rings: live_rings,
            clock: clock::now,
            applying,
            refusals: Throttle::new(),
            witness: Witness::new(links),
            desk,
        };
        console.record_start(because);
        console
    }
}

impl<P: PortIo + 'static> Console<P> {
    /// Now, by the workers' clock.
    pub(super) fn now(&self) -> Time {
        (self.clock)()
    }

    /// Reads all workers between two of their steps; only one port where it is named.
    pub(super) fn read(&self, only: Option<PortId>) -> Result<Vec<WorkerReading>, ErrorBody> {
        let (rings, clock) = (self.rings, self.clock);
        self.ask(move |worker| WorkerReading::take(worker, rings, only, clock()))
    }

    /// What replies are made from.
    pub(super) fn view<'a>(&'a self, workers: &'a [WorkerReading]) -> View<'a> {
        View { board: &self.board, workers, now: self.now() }
    }

    /// Has all workers answer a question that changes nothing.
    pub(super) fn ask<T, F>(&self, question: F) -> Result<Vec<T>, ErrorBody>
    where
        T: Send + 'static,
        F: Fn(&mut Worker<P>) -> T + Send + Sync + 'static,
    {
        self.workers.ask_all(question).map_err(|worker| self.silent(worker))
    }

    /// Waits until every worker has ended the step it was in.
    pub(super) fn barrier(&self) -> Result<(), ErrorBody> {
        self.ask(|_| ()).map(|_| ())
    }

    /// Has all workers do something. It is begun only when all of them answer, and one that falls
    /// silent meanwhile and comes back later finds that it shall not do it any more.
    pub(super) fn order<T, F>(&self, order: F) -> Result<Vec<T>, ErrorBody>
    where
        T: Send + Default + 'static,
        F: Fn(&mut Worker<P>) -> T + Send + Sync + 'static,
    {
        self.barrier()?;
        let void = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&void);
        let done = self.workers.ask_all(move |worker| {
            if seen.load(Ordering::Acquire) {
                return T::default();
            }
            order(worker)
        });
        done.map_err(|worker| {
            void.store(true, Ordering::Release);
            self.silent(worker)
        })
    }

    /// The port of a name.
    pub(super) fn port(&self, name: &str) -> Result<PortId, ErrorBody> {
        self.board.port(name).ok_or_else(|| {
            ErrorBody::new(ErrorCode::UnknownPort, "there is no such port")
                .at("port")
                .value(name)
                .fix(format!("use one of {}", self.board.names_text()))
        })
    }

    /// The port of a name that may be absent.
    pub(super) fn port_if(&self, name: Option<&String>) -> Result<Option<PortId>, ErrorBody> {
        name.map(|name| self.port(name)).transpose()
    }

    /// A worker that doesn't answer fails the call by its name (SPEC 11), and is in the journal.
    fn silent(&self, error: WorkerSilent) -> ErrorBody {
        self.witness.fell_silent(error);
        let patience = Nanos::millis(crate::mailbox::PATIENCE.as_millis() as u64);
        ErrorBody::new(ErrorCode::WorkerSilent, error.to_string())
            .at(format!("worker {}", error.worker))
            .limit(holdfast_api::amount::span_text(patience.0))
            .fix("its core is starved or its thread hangs: look at the machine's load")
    }
}

/// A PG by its number, if one is named.
pub(super) fn pg_if(number: Option<u8>) -> Result<Option<PgId>, ErrorBody> {
    let checked = |number| PgId::new(number).ok_or_else(|| out_of_range("pg", number));
    number.map(checked).transpose()
}

/// A queue by its number, if one is named.
pub(super) fn queue_if(number: Option<u8>) -> Result<Option<QueueId>, ErrorBody> {
    let checked = |number| QueueId::new(number).ok_or_else(|| out_of_range("queue", number));
    number.map(checked).transpose()
}

fn out_of_range(place: &str, number: u8) -> ErrorBody {
    ErrorBody::new(ErrorCode::BadArgument, format!("there is no {place} of that number"))
        .at(place)
        .value(number)
        .limit(7)
        .fix("use a number from 0 to 7")
}
