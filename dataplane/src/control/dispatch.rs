//! From a line to its answer. Whatever the line says: an answer, and no harm (SPEC 14).

use super::console::{pg_if, queue_if};
use super::Console;
use crate::report::{self, Choice, EventQuery, FdbQuery, RingEvents, WatermarkQuery, WorkerWaits};
use holdfast_api::line::MAX_LINE;
use holdfast_api::message::{
    By, Call, ErrorBody, ErrorCode, Events, NeedView, Outcome, PgFilter, PongReply, PortFilter,
    ProfileReply, QueueFilter, Request, Response, ShowFdb, Trace, WatermarkFilter,
};
use holdfast_core::ids::PortId;
use holdfast_core::io::PortIo;
use holdfast_core::topology::Topology;
use serde::Serialize;
use serde_json::Value;
use std::os::fd::OwnedFd;

/// The result of a call: its reply as a value.
pub(super) type Answer = Result<Value, ErrorBody>;

/// What a client gets: a whole line, and with it the file that its call asked for.
pub(super) struct Answered {
    pub(super) line: String,
    pub(super) file: Option<OwnedFd>,
}

/// A reply as a value.
pub(super) fn reply<T: Serialize>(reply: &T) -> Answer {
    serde_json::to_value(reply).map_err(|error| {
        ErrorBody::new(ErrorCode::Unavailable, format!("the reply can't be written: {error}"))
    })
}

/// Whether the switch doesn't look at VLANs: then every frame is in the one VLAN 0.
pub(super) fn is_transparent(topology: &Topology) -> bool {
    topology.vlan(PortId::default(), 1) == Some(0)
}

impl<P: PortIo + 'static> Console<P> {
    /// The answer to one line, a whole line; `peer` says who asks, for the log of changes.
    pub(super) fn answer_line(&mut self, line: &[u8], peer: By) -> Answered {
        let mut file = None;
        self.notice();
        let (id, answer) = match Request::parse(line) {
            Ok(Request { id, call: Call::Segment(_) }) => {
                let handed = self.published.hand_over();
                (
                    Some(id),
                    handed.and_then(|(told, fd)| {
                        file = Some(fd);
                        reply(&told)
                    }),
                )
            }
            Ok(Request { id, call }) => (Some(id), self.call(&call, peer)),
            Err(bad) => (bad.id, Err(bad.error)),
        };
        self.notice_silence();
        let outcome = match answer {
            Ok(value) => Outcome::Ok(value),
            Err(error) => Outcome::Error(error),
        };
        let line = Response { id, outcome }.to_line();
        if line.len() <= MAX_LINE {
            return Answered { line, file };
        }
        let body = ErrorBody::new(ErrorCode::TooLong, "the answer would be longer than a line")
            .value(line.len())
            .limit(MAX_LINE)
            .fix("ask for one port");
        Answered { line: Response::error(id, body).to_line(), file: None }
    }

    fn profile_in_force(&mut self) -> Answer {
        self.barrier()?;
        let (names, notes) = (self.board.port_names(), self.board.notes.clone());
        let mut told = ProfileReply::new(&self.board.profile, &names, notes);
        told.need = Some(NeedView {
            smallest_lossless_frame: self.board.smallest_lossless_frame.0,
            formula: self.board.headroom_terms.iter().map(Into::into).collect(),
        });
        reply(&told)
    }

    fn call(&mut self, call: &Call, peer: By) -> Answer {
        match call {
            Call::Ping(_) => self.ping(),
            Call::ShowPorts(filter) => self.ports(filter),
            Call::ShowClassify(PortFilter { port }) => {
                let workers = self.read(self.port_if(port.as_ref())?)?;
                reply(&report::classify_reply(self.view(&workers)))
            }
            Call::ShowPg(PgFilter { port, pg }) => {
                let pg = pg_if(*pg)?;
                let workers = self.read(self.port_if(port.as_ref())?)?;
                reply(&report::pg_reply(self.view(&workers), pg))
            }
            Call::ShowQueue(QueueFilter { port, queue }) => {
                let queue = queue_if(*queue)?;
                let workers = self.read(self.port_if(port.as_ref())?)?;
                reply(&report::queue_reply(self.view(&workers), queue))
            }
            Call::ShowPfc(PortFilter { port }) => {
                let workers = self.read(self.port_if(port.as_ref())?)?;
                reply(&report::pfc_reply(self.view(&workers)))
            }
            Call::ShowEcn(QueueFilter { port, queue }) => {
                let queue = queue_if(*queue)?;
                let workers = self.read(self.port_if(port.as_ref())?)?;
                reply(&report::ecn_reply(self.view(&workers), queue))
            }
            Call::ShowBuffer(_) => {
                let workers = self.read(None)?;
                reply(&report::buffer_reply(self.view(&workers)))
            }
            Call::ShowWatchdog(QueueFilter { port, queue }) => {
                let queue = queue_if(*queue)?;
                let workers = self.read(self.port_if(port.as_ref())?)?;
                reply(&report::watchdog_reply(self.view(&workers), queue))
            }
            Call::ShowWaits(filter) => self.waits(filter),
            Call::ShowFdb(query) => self.fdb(query),
            Call::ShowHost(filter) => self.show_host(filter),
            Call::Segment(_) => self.published.hand_over().and_then(|(told, _)| reply(&told)),
            Call::ShowProfile(_) => self.profile_in_force(),
            Call::WatermarkShow(filter) => {
                let (port, query) = self.watermark_query(filter)?;
                let workers = self.read(port)?;
                reply(&report::watermark_reply(self.view(&workers), &query))
            }
            Call::Trace(query) => self.trace(query, peer),
            Call::Events(Events { since, max, severity }) => {
                reply(&self.witness.journal().page(*since, *max, *severity)?)
            }
            Call::WatermarkClear(_)
            | Call::PortHold(_)
            | Call::PortRelease(_)
            | Call::PortAdd(_)
            | Call::PortRemove(_)
            | Call::Preflight(_)
            | Call::Apply(_)
            | Call::SetPg(_)
            | Call::SetWred(_)
            | Call::FdbAdd(_)
            | Call::FdbDel(_) => self.change(call, peer),
        }
    }

    fn ping(&self) -> Answer {
        self.barrier()?;
        let now = self.now();
        reply(&PongReply {
            name: self.board.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_ns: now.since(self.board.started).0,
            generation: self.board.profile.generation(),
            now_ns: now.0,
        })
    }

    /// All ports are read, also for one of them: a worker's hand-overs are those of all of its.
    fn ports(&self, filter: &PortFilter) -> Answer {
        let only = self.port_if(filter.port.as_ref())?.map(|port| self.board.port_name(port));
        let workers = self.read(None)?;
        let mut ports = report::ports_reply(self.view(&workers));
        ports.ports.retain(|port| only.as_ref().is_none_or(|only| *only == port.port));
        reply(&ports)
    }

    fn waits(&self, filter: &PortFilter) -> Answer {
        let (only, clock) = (self.port_if(filter.port.as_ref())?, self.clock);
        let workers = self.ask(move |worker| WorkerWaits::take(worker, clock()))?;
        reply(&report::waits_reply(&self.board, &workers, only, self.now()))
    }

    fn fdb(&self, query: &ShowFdb) -> Answer {
        let query = FdbQuery {
            port: self.port_if(query.port.as_ref())?,
            vlan: query.vlan,
            from: query.from.unwrap_or_default(),
            max: query.max,
        };
        let workers = self.read(None)?;
        let transparent = is_transparent(&self.board.topology);
        reply(&report::fdb_reply(self.view(&workers), query, transparent))
    }

    pub(super) fn watermark_query(
        &self,
        filter: &WatermarkFilter,
    ) -> Result<(Option<PortId>, WatermarkQuery), ErrorBody> {
        let WatermarkFilter { port, pg, queue, pool } = filter;
        if let Some(pool) = pool {
            let spec = self.board.profile.spec();
            let pools = spec.pools.iter().map(|(name, _)| name.as_str());
            let pools: Vec<&str> = pools.chain([report::HEADROOM_POOL]).collect();
            if !pools.contains(&pool.as_str()) {
                let body = ErrorBody::new(ErrorCode::BadArgument, "there is no such pool");
                let fix = format!("use one of {}", pools.join(", "));
                return Err(body.at("pool").value(pool).fix(fix));
            }
        }
        let narrowed = pg.is_some() || queue.is_some() || pool.is_some();
        let query = WatermarkQuery {
            pgs: choice(pg_if(*pg)?, narrowed),
            queues: choice(queue_if(*queue)?, narrowed),
            pools: choice(pool.clone(), narrowed),
        };
        Ok((self.port_if(port.as_ref())?, query))
    }

    fn trace(&self, trace: &Trace, peer: By) -> Answer {
        let count = self.workers.count();
        if let Some(since) = trace.since.as_ref().filter(|since| since.len() != count) {
            let body = ErrorBody::new(ErrorCode::BadArgument, "the cursor isn't of this switch");
            let fix = "give `next` of the answer before, or leave `since` out";
            return Err(body.at("since").value(since.len()).limit(count).fix(fix));
        }
        if let Some(kinds) = &trace.record {
            let mask = report::mask_of(kinds);
            self.order(move |worker| worker.set_trace_mask(mask))?;
            log::info!("trace: records {kinds:?} from now on, by {peer}");
        }
        let query = EventQuery {
            since: trace.since.clone(),
            max: trace.max,
            kinds: trace.kinds.clone(),
            port: self.port_if(trace.port.as_ref())?,
        };
        // Before the workers are asked: up to here all of them have written what happened.
        let cut = self.now();
        let asked = query.clone();
        let rings = self.ask(move |worker| {
            RingEvents::take(worker.trace(), worker.id().index(), &asked, cut)
        })?;
        reply(&report::trace_reply(&self.board, &query, &rings))
    }
}

/// What a filter chooses of one kind; `narrowed`: it names something of some kind.
fn choice<T>(one: Option<T>, narrowed: bool) -> Choice<T> {
    match one {
        Some(one) => Choice::One(one),
        None if narrowed => Choice::None,
        None => Choice::All,
    }
}
