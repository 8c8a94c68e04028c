//! What the daemon does with a request and with what the switch says. It knows no HTTP socket:
//! answers that come later are given to a [`Place`].

use crate::http::{Request, Response, Status};
use crate::reconcile::{ProfileFile, Reconciler, TRY_AGAIN};
use crate::routes::{route, Action};
use crate::status::{
    Answers, DesiredStatus, Hello, HttpStatus, Running, RunningStatus, StatusReply, SwitchStatus,
};
use crate::upstream::{Answer, News, Upstream};
use crate::watched::Watched;
use holdfast_api::log_lines::{logged, Throttle};
use holdfast_api::message::{ApplyReply, Call, ErrorBody, ErrorCode, Ping, Segment, ShowProfile};
use holdfast_shm::directory::ProfileEntry;
use mio::Registry;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Instant;

/// Whose request it was: a client's slot, and the client's own number, for slots are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The slot.
    pub slot: usize,
    /// The client.
    pub serial: u64,
    /// Its address, for the log.
    pub peer: SocketAddr,
}

/// Connections of now, for the status.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connections {
    /// So many.
    pub now: usize,
    /// At most.
    pub limit: usize,
}

/// Who asked the switch something.
#[derive(Debug)]
pub(crate) enum Asker {
    /// We greet it, and compare profiles then.
    Greeting,
    /// We look what is in force: to hold it against the desired profile, or only to know it.
    Running { compare: bool },
    /// We are putting the desired profile into force.
    Reconcile,
    /// We want its counters segment.
    Segment,
    /// A client makes a call.
    Client { place: Place, changes: bool },
    /// A client asks whether the switch is there.
    Health { place: Place },
}

/// The daemon without its sockets.
pub(crate) struct Service {
    upstream: Upstream<Asker>,
    reconciler: Option<Reconciler>,
    may_change: bool,
    started: Instant,
    hello: Option<Hello>,
    running: Option<(Running, Instant)>,
    watched: Watched,
    /// When the switch is greeted again, after it gave no proper answer.
    greet_at: Option<Instant>,
    answers: Answers,
    lines: Throttle<&'static str>,
    /// Why there was no connection, as it was logged last.
    told: Option<String>,
}

impl Service {
    /// A daemon that has not begun.
    pub(crate) fn new(
        upstream: Upstream<Asker>,
        reconciler: Option<Reconciler>,
        may_change: bool,
        now: Instant,
    ) -> Self {
        Self {
            upstream,
            reconciler,
            may_change,
            started: now,
            hello: None,
            running: None,
            watched: Watched::default(),
            greet_at: None,
            answers: Answers::default(),
            lines: Throttle::new(),
            told: None,
        }
    }

    /// Counts an answer.
    pub(crate) fn count(&mut self, status: Status) {
        self.answers.count(status);
    }

    /// The answer to a request; `None` if it comes later.
    pub(crate) fn request(
        &mut self,
        request: &Request,
        place: Place,
        connections: Connections,
        now: Instant,
    ) -> Option<Response> {
        let (call, asker) = match route(request, self.may_change) {
            Action::Answer(response) => return Some(response),
            Action::Status => return Some(Response::ok(&self.status(connections, now))),
            Action::Metrics => return Some(self.watched.page(self.is_up())),
            Action::Health => (Call::Ping(Ping {}), Asker::Health { place }),
            Action::Call(call) => {
                let changes = call.changes();
                (call, Asker::Client { place, changes })
            }
        };
        let (_, error) = self.upstream.call(call, asker, now).err()?;
        Some(Response::error(&error))
    }

    /// Whether the switch is there, and has said who it is.
    fn is_up(&self) -> bool {
        self.upstream.connected_since().is_some() && self.hello.is_some()
    }

    /// The connection to the switch may be read or written.
    pub(crate) fn switch_ready(&mut self, readable: bool, writable: bool) {
        self.upstream.ready(readable, writable);
    }

    /// Whether a step may get somewhere without waiting for the poll.
    pub(crate) fn has_work(&self) -> bool {
        self.upstream.has_work()
    }

    /// When a step has something to do next, whatever the poll says.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let again = self.reconciler.as_ref().and_then(Reconciler::again_at);
        [self.upstream.deadline(), self.greet_at, again].into_iter().flatten().min()
    }

    /// Goes on with the switch; gives the answers that clients wait for.
    pub(crate) fn step(&mut self, registry: &Registry, now: Instant) -> Vec<(Place, Response)> {
        let mut answers = Vec::new();
        for news in self.upstream.step(registry, now) {
            match news {
                News::Connected => self.connected(now),
                News::Lost(why) => self.lost(why, now),
                News::Answer(answer) => answers.extend(self.answered(answer, now)),
            }
        }
        let is_due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        if is_due(self.greet_at) {
            self.greet_at = None;
            self.greet(now);
        } else if is_due(self.reconciler.as_ref().and_then(Reconciler::again_at)) {
            if let Some(reconciler) = &mut self.reconciler {
                reconciler.begins_again();
            }
            self.greet(now);
        }
        answers
    }

    /// SIGHUP: the desired profile is read again, and what was refused is tried again.
    pub(crate) fn asked(&mut self, now: Instant) {
        match &mut self.reconciler {
            None => log::info!("SIGHUP: there is no --profile, so there is nothing to do"),
            Some(reconciler) => {
                log::info!("SIGHUP: the desired profile is read again");
                reconciler.forget_refusal();
                self.greet(now);
            }
        }
    }

    fn connected(&mut self, now: Instant) {
        if let Some(left_out) = self.lines.line("connected", now) {
            log::info!("connected to the switch ({left_out} more before)");
        }
        self.told = None;
        self.greet(now);
    }

    fn lost(&mut self, why: String, now: Instant) {
        if self.told.as_ref() != Some(&why) {
            if let Some(left_out) = self.lines.line("lost", now) {
                log::warn!("{} ({left_out} more before)", logged(&why));
            }
        }
        self.told = Some(why);
        self.hello = None;
        self.watched.lost();
        self.greet_at = None;
        if let Some(reconciler) = &mut self.reconciler {
            reconciler.lost();
        }
    }

    /// Asks who the switch is; what follows comes with the answers.
    fn greet(&mut self, now: Instant) {
        self.ask(Call::Ping(Ping {}), Asker::Greeting, now);
    }

    fn ask(&mut self, call: Call, asker: Asker, now: Instant) {
        if let Err((_, error)) = self.upstream.call(call, asker, now) {
            // Without a connection all of it begins anew with the next one.
            log::debug!("the switch can't be asked: {error}");
            self.greet_at = self.upstream.connected_since().map(|_| now + TRY_AGAIN);
        }
    }

    fn answered(&mut self, answer: Answer<Asker>, now: Instant) -> Option<(Place, Response)> {
        let Answer { asker, call, outcome, descriptor } = answer;
        if matches!(asker, Asker::Segment) {
            let trouble = self.watched.handed(outcome.map(|_| ()), descriptor);
            let line = trouble.and_then(|why| Some((why, self.lines.line(call, now)?)));
            if let Some((why, left_out)) = line {
                log::warn!("no metrics: {} ({left_out} more before)", logged(why));
            }
            return None;
        }
        if descriptor.is_some() {
            // It is closed here.
            if let Some(left_out) = self.lines.line("descriptor", now) {
                log::warn!("{call}: the switch sent a descriptor unasked ({left_out} more before)");
            }
        }
        match asker {
            Asker::Segment => {}
            Asker::Greeting => self.greeted(read(call, outcome), now),
            Asker::Running { compare } => self.seen(read(call, outcome), compare, now),
            Asker::Reconcile => self.reconciled(read(call, outcome), now),
            Asker::Health { place } => {
                let response = match outcome {
                    Ok(reply) => Response::ok(&reply),
                    Err(error) => Response::with_status(Status::ServiceUnavailable, &error),
                };
                return Some((place, response));
            }
            Asker::Client { place, changes } => {
                if changes {
                    self.changed(call, place, &outcome, now);
                }
                let response = match outcome {
                    Ok(reply) => Response::ok(&reply),
                    Err(error) => Response::error(&error),
                };
                return Some((place, response));
            }
        }
        None
    }

    fn greeted(&mut self, hello: Result<Hello, ErrorBody>, now: Instant) {
        match hello {
            Err(error) => self.not_answered("ping", &error, now),
            Ok(hello) => {
                if hello.differs() {
                    if let Some(left_out) = self.lines.line("version", now) {
                        log::warn!(
                            "the switch {} is release {}, this daemon {}: install the same release \
                             of both ({left_out} more before)",
                            logged(&hello.name),
                            logged(&hello.version),
                            env!("CARGO_PKG_VERSION")
                        );
                    }
                }
                if let Some(reconciler) = &mut self.reconciler {
                    reconciler.switch_is(hello.pid);
                }
                self.hello = Some(hello);
                self.ask(Call::Segment(Segment {}), Asker::Segment, now);
                self.ask(Call::ShowProfile(ShowProfile {}), Asker::Running { compare: true }, now);
            }
        }
    }

    fn seen(&mut self, running: Result<Running, ErrorBody>, compare: bool, now: Instant) {
        let running = match running {
            Ok(running) => running,
            Err(error) => return self.not_answered("show_profile", &error, now),
        };
        if let Some(reconciler) = self.reconciler.as_mut().filter(|_| compare) {
            let file = ProfileFile::read(reconciler.path());
            let next = reconciler.begin(&running.sha256, file, now);
            self.reconcile(next, now);
        }
        self.running = Some((running, now));
    }

    /// Asks what the reconciler wants to know or done. That it can't be asked is an answer, too: a
    /// profile may be too long for a line.
    fn reconcile(&mut self, next: Option<Call>, now: Instant) {
        let Some(call) = next else { return };
        let Err((_, error)) = self.upstream.call(call, Asker::Reconcile, now) else { return };
        if let Some(reconciler) = &mut self.reconciler {
            // After an error there is nothing to ask next.
            let _ = reconciler.answered(Err(error), now);
        }
    }

    fn reconciled(&mut self, answer: Result<ApplyReply, ErrorBody>, now: Instant) {
        let applied = answer.as_ref().is_ok_and(|reply| reply.applied);
        let Some(reconciler) = &mut self.reconciler else { return };
        let next = reconciler.answered(answer, now);
        self.reconcile(next, now);
        if applied {
            self.ask(Call::ShowProfile(ShowProfile {}), Asker::Running { compare: false }, now);
        }
    }

    /// The switch gave us no proper answer: later again, unless the connection is lost anyway.
    fn not_answered(&mut self, call: &'static str, error: &ErrorBody, now: Instant) {
        if self.upstream.connected_since().is_none() {
            return;
        }
        if let Some(left_out) = self.lines.line(call, now) {
            log::warn!("{call}: {} ({left_out} more before)", logged(&error.to_string()));
        }
        self.greet_at = Some(now + TRY_AGAIN);
    }

    /// A client has changed the switch, or tried to.
    fn changed(
        &mut self,
        call: &'static str,
        place: Place,
        outcome: &Result<Value, ErrorBody>,
        now: Instant,
    ) {
        if let Some(left_out) = self.lines.line(call, now) {
            let how = match outcome {
                Ok(_) => "done".to_owned(),
                Err(error) => logged(&error.to_string()),
            };
            log::info!("{call} over HTTP by {}: {how} ({left_out} more before)", place.peer);
        }
        if outcome.is_ok() {
            self.ask(Call::ShowProfile(ShowProfile {}), Asker::Running { compare: false }, now);
        }
    }

    /// What the switch that is there says of itself without being asked: others change it, too.
    fn running_now(&self) -> Option<RunningStatus> {
        let profile = self.watched.profile().filter(|_| self.is_up())?;
        let ProfileEntry { name, sha256, generation } = profile;
        Some(RunningStatus { name, sha256, generation, seen_seconds_ago: 0 })
    }

    fn status(&self, connections: Connections, now: Instant) -> StatusReply<'_> {
        let seconds = |since: Instant| now.saturating_duration_since(since).as_secs();
        let since = self.upstream.connected_since();
        let hello = self.hello.as_ref();
        StatusReply {
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: seconds(self.started),
            may_change: self.may_change,
            switch: SwitchStatus {
                connected: since.is_some(),
                connected_seconds: since.map(seconds),
                last_error: self.upstream.last_error(),
                name: hello.map(|hello| hello.name.as_str()),
                pid: hello.map(|hello| hello.pid),
                version: hello.map(|hello| hello.version.as_str()),
                version_differs: hello.is_some_and(Hello::differs),
                no_metrics: self.watched.trouble(),
            },
            running: self.running_now().or_else(|| {
                let (running, seen) = self.running.as_ref()?;
                Some(RunningStatus {
                    name: running.name.clone(),
                    sha256: running.sha256.clone(),
                    generation: running.generation,
                    seen_seconds_ago: seconds(*seen),
                })
            }),
            desired: self.reconciler.as_ref().map(|reconciler| {
                DesiredStatus::new(reconciler.path().display().to_string(), reconciler.tally())
            }),
            http: HttpStatus {
                connections: connections.now,
                connections_limit: connections.limit,
                answers: &self.answers,
            },
        }
    }
}

/// A reply as the type that we read it as.
fn read<T: DeserializeOwned>(
    call: &'static str,
    outcome: Result<Value, ErrorBody>,
) -> Result<T, ErrorBody> {
    serde_json::from_value(outcome?).map_err(|error| {
        let message = format!("the switch answered {call} with something else: {error}");
        let fix = "install the same release of switch and daemon";
        ErrorBody::new(ErrorCode::BadVersion, message).at(call).fix(fix)
    })
}
