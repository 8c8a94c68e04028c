//! What the control thread notices by itself and writes into the journal: links, losses, storms,
//! silent workers. It looks before each call and once a second, and only at what others have left
//! for it: a channel of the link watcher, and words that each worker keeps up to date anyway.

use super::journal::{Journal, Moment};
use super::suspicions::ToldSuspicions;
use super::Console;
use crate::mailbox::{WorkerSilent, PATIENCE};
use crate::worker_thread::PortLosses;
use crossbeam::channel::Receiver;
use holdfast_api::last_good::sha256;
use holdfast_api::log_lines::{logged, Throttle};
use holdfast_api::message::{
    Apply, ApplyReply, By, Call, DownReason, ErrorBody, Occurrence, ProfileReply, SetReply,
};
use holdfast_core::ids::{PortId, QueueSet, MAX_PORTS};
use holdfast_core::io::PortIo;
use holdfast_core::units::{Nanos, Time};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Losses of one kind at one port have an entry at once, and then one in this time with the sum.
const LOSSES_EVERY: Nanos = Nanos::millis(10_000);

/// What happened to a port.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// Its link came up.
    Up,
    /// It is down.
    Down(DownReason),
    /// Its netdev's MTU is another one now, bytes.
    Mtu(u32),
    /// News of its link were lost.
    Missed,
    /// It was opened again.
    Opened {
        /// Its address now.
        mac: String,
        /// Its MTU now, bytes.
        mtu: u32,
        /// Its RX queues now.
        queues: u32,
    },
    /// It can't be opened again yet.
    NotOpened(String),
}

/// News of one port, from the link watcher and the keeper of ports.
#[derive(Clone, Debug)]
pub(crate) struct LinkNews {
    /// The port's number.
    pub(crate) port: usize,
    /// What happened.
    pub(crate) news: News,
    /// When.
    pub(crate) at: Moment,
}

/// How far the losses of one kind at one port have been told.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    total: u64,
    at: Option<Time>,
}

impl Told {
    /// The frames to tell now, if there are some.
    fn news(&mut self, total: u64, now: Time) -> Option<u64> {
        let frames = total.checked_sub(self.total).filter(|frames| *frames > 0)?;
        if self.at.is_some_and(|at| now.since(at) < LOSSES_EVERY) {
            return None;
        }
        *self = Self { total, at: Some(now) };
        Some(frames)
    }
}

/// The journal and what is left to be written into it.
pub(crate) struct Witness {
    journal: Journal,
    links: Receiver<LinkNews>,
    /// Receive overruns and lossless violations, by port.
    losses: Vec<[Told; 2]>,
    /// Storms by port: how many were told, and of which queues.
    storms: Vec<(u64, QueueSet)>,
    /// Suspected deadlocks by port.
    pub(super) suspicions: Vec<ToldSuspicions>,
    /// A worker that didn't answer the call that is being answered.
    silent: Cell<Option<WorkerSilent>>,
    /// Entries of silent workers.
    silences: Throttle<usize>,
}

impl Witness {
    /// Nothing has happened yet; `links` is where the link watcher tells.
    pub(crate) fn new(links: Receiver<LinkNews>) -> Self {
        let (silent, silences) = (Cell::new(None), Throttle::new());
        let (losses, storms, suspicions) = (Vec::new(), Vec::new(), Vec::new());
        Self { journal: Journal::new(), links, losses, storms, suspicions, silent, silences }
    }

    pub(super) const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// A port's number is given to another one: what was told of the one before doesn't count.
    pub(super) fn forget(&mut self, number: usize) {
        self.losses.get_mut(number).into_iter().for_each(|told| *told = Default::default());
        self.storms.get_mut(number).into_iter().for_each(|told| *told = Default::default());
    }

    /// A worker didn't answer: told when the call ends.
    pub(super) fn fell_silent(&self, worker: WorkerSilent) {
        self.silent.set(Some(worker));
    }
}

impl<P: PortIo + 'static> Console<P> {
    pub(super) fn record(&mut self, what: Occurrence) {
        self.record_at(Moment::now(self.now()), what);
    }

    pub(super) fn record_at(&mut self, at: Moment, what: Occurrence) {
        self.witness.journal.record(at, what);
    }

    /// Writes down that the switch runs, and why it took another profile than its file names.
    pub(super) fn record_start(&mut self, because: Vec<String>) {
        let names = self.board.port_names();
        let profile = ProfileReply::new(&self.board.profile, &names, Vec::new());
        let ports = self.board.ports.iter().flatten().count();
        self.record(Occurrence::Started {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            profile: profile.name,
            sha256: profile.sha256,
            ports,
            workers: self.workers.count(),
        });
        because.into_iter().for_each(|why| self.record(Occurrence::LastGood { why: logged(&why) }));
    }

    /// Writes down what has happened since it last looked, and remembers what is asked for later.
    pub(super) fn notice(&mut self) {
        self.notice_links();
        self.notice_losses();
        self.notice_storms();
        self.notice_suspicions();
        self.notice_lossless();
    }

    fn notice_storms(&mut self) {
        let ports: Vec<PortId> = self.board.topology.ports().map(|(port, _)| port).collect();
        self.witness.storms.resize(MAX_PORTS, Default::default());
        for id in ports {
            let number = id.index();
            let total = self.lost(id, |losses| &losses.storms);
            let now = QueueSet(self.lost(id, |losses| &losses.stormed) as u8);
            let Some(told) = self.witness.storms.get_mut(number) else { continue };
            let (before, port) = (*told, self.board.port_name(id));
            *told = (total, now);
            let mut ended = QueueSet(before.1 .0 & !now.0);
            if total > before.0 {
                // One that was over before anybody looked is told of, too, with its end.
                let last = QueueSet(self.lost(id, |losses| &losses.last_stormed) as u8);
                ended = ended.or(QueueSet(last.0 & !now.0));
                let at = Time(self.lost(id, |losses| &losses.last_storm_ns));
                let what =
                    Occurrence::StormBegan { port: port.clone(), queues: numbers(last), total };
                self.witness.journal.record(Moment::now(self.now()).back_to(at), what);
            }
            if !ended.is_empty() {
                self.record(Occurrence::StormEnded { port, queues: numbers(ended) });
            }
        }
    }

    /// Writes down that a worker didn't answer the call that has just ended.
    pub(super) fn notice_silence(&mut self) {
        let Some(WorkerSilent { worker }) = self.witness.silent.take() else { return };
        if let Some(left_out) = self.witness.silences.line(worker, Instant::now()) {
            let waited_ns = PATIENCE.as_nanos() as u64;
            self.record(Occurrence::WorkerSilent { worker, waited_ns, left_out });
        }
    }

    fn notice_links(&mut self) {
        // What didn't fit was left out, and a full channel is all that is known of it.
        if self.witness.links.is_full() {
            self.record(Occurrence::LinkNewsLost { port: None });
        }
        while let Ok(LinkNews { port, news, at }) = self.witness.links.try_recv() {
            let port = self.board.port_name(PortId::from_bits(port as u8));
            let what = match news {
                News::Up => Occurrence::PortUp { port },
                News::Down(reason) => Occurrence::PortDown { port, reason },
                News::Mtu(mtu) => Occurrence::PortMtu { port, mtu },
                News::Missed => Occurrence::LinkNewsLost { port: Some(port) },
                News::Opened { mac, mtu, queues } => {
                    Occurrence::PortOpened { port, mac, mtu, queues }
                }
                News::NotOpened(error) => Occurrence::PortNotOpened { port, error: logged(&error) },
            };
            self.witness.journal.record(at, what);
        }
    }

    fn notice_losses(&mut self) {
        let now = self.now();
        let ports: Vec<PortId> = self.board.topology.ports().map(|(port, _)| port).collect();
        self.witness.losses.resize(MAX_PORTS, <[Told; 2]>::default());
        for id in ports {
            let number = id.index();
            let (overrun, violations) = (
                self.lost(id, |losses| &losses.overrun),
                self.lost(id, |losses| &losses.violations),
            );
            let Some([told_overrun, told_violations]) = self.witness.losses.get_mut(number) else {
                continue;
            };
            let overran = told_overrun.news(overrun, now);
            let violated = told_violations.news(violations, now);
            let port = self.board.port_name(id);
            if let Some(frames) = overran {
                let port = port.clone();
                self.record(Occurrence::ReceiveOverrun { port, frames, total: overrun });
            }
            if let Some(frames) = violated {
                self.record(Occurrence::LosslessViolation { port, frames, total: violations });
            }
        }
    }

    /// What a port's owner has left for us.
    pub(super) fn lost(&self, port: PortId, pick: fn(&PortLosses) -> &AtomicU64) -> u64 {
        let words = self.board.threads.iter().map(|(stats, _)| pick(&stats.losses[port]));
        words.map(|word| word.load(Ordering::Relaxed)).sum()
    }

    /// What a change that was made is in the journal; `None` for one that changes nothing.
    pub(super) fn made(&self, call: &Call, answer: &Value, by: By) -> Option<Occurrence> {
        Some(match call {
            Call::Apply(_) => {
                let reply: ApplyReply = read(answer)?;
                reply.applied.then_some(Occurrence::ProfileApplied {
                    by,
                    name: logged(&reply.name),
                    sha256: reply.sha256,
                    generation: reply.generation,
                    changes: reply.changed.len(),
                    not_kept: reply.not_kept.as_deref().map(logged),
                })?
            }
            Call::SetPg(_) | Call::SetWred(_) => {
                let reply: SetReply = read(answer)?;
                Occurrence::ProfileChanged {
                    by,
                    call: call.name().to_owned(),
                    generation: reply.generation,
                    changes: reply.changed.len(),
                    first: reply.changed.first().map(|line| logged(line)),
                }
            }
            Call::PortAdd(add) => {
                Occurrence::PortAdded { by, port: add.port.clone(), ifname: logged(&add.ifname) }
            }
            Call::PortRemove(name) => Occurrence::PortRemoved { by, port: name.port.clone() },
            Call::PortHold(name) => Occurrence::PortHeld { by, port: name.port.clone() },
            Call::PortRelease(name) => Occurrence::PortReleased { by, port: name.port.clone() },
            Call::FdbAdd(entry) => Occurrence::FdbAdded {
                by,
                mac: entry.mac.clone(),
                vlan: entry.vlan,
                port: entry.port.clone(),
            },
            Call::FdbDel(entry) => {
                Occurrence::FdbRemoved { by, mac: entry.mac.clone(), vlan: entry.vlan }
            }
            Call::WatermarkClear(filter) => Occurrence::WatermarksCleared {
                by,
                port: filter.port.clone(),
                pg: filter.pg,
                queue: filter.queue,
                pool: filter.pool.clone(),
            },
            _ => return None,
        })
    }

    /// What a change that was refused is in the journal; `None` for a dry run.
    pub(super) fn refused(
        &self,
        call: &Call,
        error: &ErrorBody,
        by: By,
        left_out: u64,
    ) -> Option<Occurrence> {
        let error = logged(&error.to_string());
        Some(match call {
            Call::Apply(Apply { dry_run: true, .. }) => return None,
            Call::Apply(Apply { profile, file, .. }) => Occurrence::ProfileRefused {
                by,
                file: file.as_deref().map(logged),
                document_sha256: sha256(profile),
                generation: self.board.profile.generation(),
                error,
                left_out,
            },
            _ => Occurrence::ChangeRefused { by, call: call.name().to_owned(), error, left_out },
        })
    }
}

fn numbers(queues: QueueSet) -> Vec<u8> {
    queues.iter().map(|queue| queue.number()).collect()
}

fn read<T: DeserializeOwned>(answer: &Value) -> Option<T> {
    serde_json::from_value(answer.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_at_once_and_then_as_a_sum_now_and_then() {
        let mut told = Told::default();
        let at = |ms| Time(Nanos::millis(ms).0);
        assert_eq!(told.news(0, at(1)), None);
        assert_eq!(told.news(3, at(1_000)), Some(3));
        assert_eq!(told.news(3, at(2_000)), None);
        assert_eq!(told.news(9, at(10_999)), None, "within ten seconds of the entry before");
        assert_eq!(told.news(10, at(11_000)), Some(7));
        assert_eq!(told.news(10, at(60_000)), None);
        assert_eq!(told.news(11, at(60_001)), Some(1));
    }
}
