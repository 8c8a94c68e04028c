//! The daemon's one connection to the switch: calls go out, numbered, and their answers come back
//! in any order. It is made anew for ever, and while it isn't there each call fails at once.

mod session;

use holdfast_api::message::{shortened, Call, ErrorBody, ErrorCode, Request, Response};
use mio::{Registry, Token};
use serde_json::Value;
use session::{Arrival, Session};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The first wait before the connection is made anew; each failure doubles it.
pub(crate) const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Characters of what the switch said that are kept as the last error.
const KEPT_ERROR: usize = 400;

/// Finds the socket, each time anew: a switch may be started after its daemon.
pub(crate) type FindSocket = Box<dyn Fn() -> Result<PathBuf, String>>;

/// Who asked, with the answer.
#[derive(Debug)]
pub(crate) struct Answer<A> {
    /// Who asked.
    pub asker: A,
    /// The call's name.
    pub call: &'static str,
    /// The reply; or what the switch, or the daemon itself, has to say instead.
    pub outcome: Result<Value, ErrorBody>,
    /// The descriptor that came with it. Whoever has no use for it drops it, which closes it.
    pub descriptor: Option<OwnedFd>,
}

/// What has happened.
#[derive(Debug)]
pub(crate) enum News<A> {
    /// There is a connection.
    Connected,
    /// There is none any more, or none could be made; the text says why.
    Lost(String),
    /// A call has its answer, or none will come.
    Answer(Answer<A>),
}

/// The connection, or the wait for one; `A` says who asked.
pub(crate) struct Upstream<A> {
    find_socket: FindSocket,
    token: Token,
    link: Link<A>,
    wait: Duration,
    next_id: u64,
    last_error: Option<String>,
    /// What the switch said unasked on this connection.
    said: Option<String>,
}

enum Link<A> {
    Down { retry_at: Instant },
    Up(Box<Session<A>>),
}

impl<A> Upstream<A> {
    /// Not connected yet; the first try is at `now`.
    pub(crate) fn new(find_socket: FindSocket, token: Token, now: Instant) -> Self {
        let link = Link::Down { retry_at: now };
        let (last_error, said) = (None, None);
        Self { find_socket, token, link, wait: FIRST_WAIT, next_id: 1, last_error, said }
    }

    /// Since when there is a connection.
    pub(crate) fn connected_since(&self) -> Option<Instant> {
        match &self.link {
            Link::Up(session) => Some(session.since()),
            Link::Down { .. } => None,
        }
    }

    /// Why the connection was lost last, or couldn't be made.
    pub(crate) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Sends a call; the answer comes as [`News::Answer`].
    ///
    /// # Errors
    /// Whoever asked, and why the call can't be sent at all.
    pub(crate) fn call(
        &mut self,
        call: Call,
        asker: A,
        now: Instant,
    ) -> Result<(), (A, ErrorBody)> {
        let Link::Up(session) = &mut self.link else {
            let error = self.last_error.as_deref().unwrap_or("not tried yet");
            let message = format!("the switch can't be reached: {error}");
            let body = ErrorBody::new(ErrorCode::Unavailable, message).at("switch");
            let fix = "start the switch, or name its socket; holdfastd goes on trying";
            return Err((asker, body.fix(fix)));
        };
        let name = call.name();
        let id = self.next_id;
        self.next_id += 1;
        session.send(id, Request { id, call }.to_line(), name, asker, now)
    }

    /// The poll says that the socket may be read or written again.
    pub(crate) fn ready(&mut self, readable: bool, writable: bool) {
        if let Link::Up(session) = &mut self.link {
            session.ready(readable, writable);
        }
    }

    /// Whether a step may get somewhere without waiting for the poll.
    pub(crate) fn has_work(&self) -> bool {
        matches!(&self.link, Link::Up(session) if session.has_work())
    }

    /// When a step has something to do next, whatever the poll says.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match &self.link {
            Link::Down { retry_at } => Some(*retry_at),
            Link::Up(session) => session.deadline(),
        }
    }

    /// Connects, writes, reads and counts the time, each as far as it gets now.
    pub(crate) fn step(&mut self, registry: &Registry, now: Instant) -> Vec<News<A>> {
        let mut news = Vec::new();
        match &mut self.link {
            Link::Down { retry_at } if now >= *retry_at => self.connect(registry, now, &mut news),
            Link::Down { .. } => {}
            Link::Up(session) => match session.step(now) {
                Ok(arrivals) => self.deliver(arrivals, &mut news),
                Err(why) => self.lose(registry, &why, now, &mut news),
            },
        }
        news
    }

    fn connect(&mut self, registry: &Registry, now: Instant, news: &mut Vec<News<A>>) {
        let opened = (self.find_socket)().and_then(|path| {
            let failed = |error| format!("no switch answers at {}: {error}", path.display());
            Session::open(&path, registry, self.token, now).map_err(failed)
        });
        match opened {
            Ok(session) => {
                self.link = Link::Up(Box::new(session));
                self.said = None;
                news.push(News::Connected);
            }
            Err(why) => {
                self.link = Link::Down { retry_at: now + self.wait };
                self.wait = (self.wait * 2).min(LONGEST_WAIT);
                self.last_error = Some(shortened(&why, KEPT_ERROR));
                news.push(News::Lost(why));
            }
        }
    }

    fn deliver(&mut self, arrivals: Vec<Arrival<A>>, news: &mut Vec<News<A>>) {
        for arrival in arrivals {
            match arrival {
                Arrival::Answer(answer) => {
                    self.wait = FIRST_WAIT;
                    news.push(News::Answer(answer));
                }
                // Such as "too many clients", before it hangs up.
                Arrival::Said(response) => self.said = Some(said(&response)),
            }
        }
    }

    /// Ends the connection, if there is one: what was asked gets no answer any more.
    fn lose(
        &mut self,
        registry: &Registry,
        why: &session::Broken,
        now: Instant,
        news: &mut Vec<News<A>>,
    ) {
        let retry_at = now + self.wait;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        let Link::Up(session) = core::mem::replace(&mut self.link, Link::Down { retry_at }) else {
            return;
        };
        news.extend(session.end(registry, why).into_iter().map(News::Answer));
        let mut text = why.to_string();
        if let (session::Broken::Closed, Some(said)) = (why, &self.said) {
            text = format!("{text}: {said}");
        }
        self.last_error = Some(shortened(&text, KEPT_ERROR));
        news.push(News::Lost(text));
    }
}

/// What the switch said without being asked.
fn said(response: &Response) -> String {
    match &response.outcome {
        holdfast_api::message::Outcome::Error(error) => shortened(&error.to_string(), KEPT_ERROR),
        holdfast_api::message::Outcome::Ok(_) => "an answer to nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests;
