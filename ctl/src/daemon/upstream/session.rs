//! One connection to the switch, from its first byte to its last.

use super::Answer;
use holdfast_api::line::{LineBuffer, LineTooLong, MAX_LINE};
use holdfast_api::message::{ErrorBody, ErrorCode, Outcome, Response};
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use rustix::net::{recvmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::collections::BTreeMap;
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};
use thiserror::Error;

/// A call without an answer for so long has failed, and the connection with it.
pub(crate) const CALL_TIME: Duration = Duration::from_secs(5);
/// Calls under way at once: more than all HTTP connections can make.
pub(crate) const MAX_CALLS: usize = 256;
/// Bytes that wait for the switch to read them; the call that exceeds it is refused.
const MAX_UNSENT: usize = 8 << 20;
/// Bytes read at once.
const CHUNK: usize = 64 << 10;

/// Why a connection is of no more use.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum Broken {
    /// The switch hung up.
    #[error("the switch closed the connection")]
    Closed,
    /// The system says so.
    #[error("the connection to the switch broke: {0}")]
    Io(String),
    /// What came is no answer.
    #[error("the switch answered with something else: {0}")]
    NotAnAnswer(String),
    /// A call wasn't answered.
    #[error("the switch didn't answer the call {0} within {limit} s", limit = CALL_TIME.as_secs())]
    Silent(&'static str),
}

/// A line that came.
#[derive(Debug)]
pub(super) enum Arrival<A> {
    /// To a call.
    Answer(Answer<A>),
    /// To nothing that was asked.
    Said(Response),
}

#[derive(Debug)]
struct Pending<A> {
    asker: A,
    call: &'static str,
    deadline: Instant,
}

/// The connection.
#[derive(Debug)]
pub(super) struct Session<A> {
    stream: UnixStream,
    since: Instant,
    lines: LineBuffer,
    /// The line that came, or is coming, with a descriptor.
    descriptor: Option<OwnedFd>,
    unsent: Vec<u8>,
    sent: usize,
    pending: BTreeMap<u64, Pending<A>>,
    readable: bool,
    writable: bool,
}

impl<A> Session<A> {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn open(
        path: &Path,
        registry: &Registry,
        token: Token,
        now: Instant,
    ) -> io::Result<Self> {
        let mut stream = UnixStream::connect(path)?;
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self {
            stream,
            since: now,
            lines: LineBuffer::new(),
            descriptor: None,
            unsent: Vec::new(),
            sent: 0,
            pending: BTreeMap::new(),
            readable: true,
            writable: true,
        })
    }

    pub(super) const fn since(&self) -> Instant {
        self.since
    }

    pub(super) fn ready(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.writable |= writable;
    }

    pub(super) fn has_work(&self) -> bool {
        self.readable || (self.writable && self.sent < self.unsent.len())
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        // Every call has as long as any other: the oldest number is the next to run out.
        self.pending.values().next().map(|pending| pending.deadline)
    }

    /// Queues a line under its number, which must be higher than any before.
    pub(super) fn send(
        &mut self,
        id: u64,
        line: String,
        call: &'static str,
        asker: A,
        now: Instant,
    ) -> Result<(), (A, ErrorBody)> {
        if line.len() >= MAX_LINE {
            let body = ErrorBody::new(ErrorCode::TooLong, "the call is longer than a line may be");
            let body = body.at("call").value(line.len() + 1).limit(MAX_LINE);
            return Err((asker, body.fix("send less at once")));
        }
        let unsent = self.unsent.len() - self.sent + line.len();
        if self.pending.len() >= MAX_CALLS || unsent > MAX_UNSENT {
            let message = "too many calls wait for the switch";
            let body = ErrorBody::new(ErrorCode::Unavailable, message).at("switch");
            let body = body.value(self.pending.len() + 1).limit(MAX_CALLS);
            return Err((asker, body.fix("try again later")));
        }
        self.unsent.drain(..self.sent);
        self.sent = 0;
        self.unsent.extend_from_slice(line.as_bytes());
        self.unsent.push(b'\n');
        self.pending.insert(id, Pending { asker, call, deadline: now + CALL_TIME });
        Ok(())
    }

    /// Writes, reads once, and counts the time.
    pub(super) fn step(&mut self, now: Instant) -> Result<Vec<Arrival<A>>, Broken> {
        self.write()?;
        let arrivals = if self.readable { self.read()? } else { Vec::new() };
        match self.pending.values().next() {
            // Read first: an answer that is there was not late because we were.
            Some(oldest) if arrivals.is_empty() && now >= oldest.deadline => {
                Err(Broken::Silent(oldest.call))
            }
            _ => Ok(arrivals),
        }
    }

    fn write(&mut self) -> Result<(), Broken> {
        while self.writable && self.sent < self.unsent.len() {
            match self.stream.write(self.unsent.get(self.sent..).unwrap_or_default()) {
                Ok(0) => return Err(Broken::Closed),
                Ok(count) => self.sent += count,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => self.writable = false,
                    io::ErrorKind::Interrupted => {}
                    // It has hung up; what it said before that is still to be read.
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                        self.sent = self.unsent.len();
                    }
                    _ => return Err(Broken::Io(error.to_string())),
                },
            }
        }
        if self.sent == self.unsent.len() {
            // A profile can be a megabyte: not kept.
            (self.unsent, self.sent) = (Vec::new(), 0);
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<Arrival<A>>, Broken> {
        let mut chunk = vec![0; CHUNK];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut chunk)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let count = match recvmsg(&self.stream, &mut parts, &mut ancillary, flags) {
            Ok(message) if message.bytes == 0 => return Err(Broken::Closed),
            Ok(message) => message.bytes,
            Err(rustix::io::Errno::AGAIN) => {
                self.readable = false;
                return Ok(Vec::new());
            }
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(Broken::Io(error.to_string())),
        };
        let rights = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let descriptor = rights.flatten().next();
        let bytes = chunk.get(..count).unwrap_or_default();
        self.lines.push(bytes);
        let whole = bytes.last() == Some(&b'\n');
        self.take_lines(descriptor, whole)
    }

    /// A descriptor belongs to the line of the last byte that came with it: the kernel ends a read
    /// after the bytes that were sent with one, and may put bytes sent earlier before them
    /// (unix(7), SCM_RIGHTS). `whole`: that line has ended.
    fn take_lines(
        &mut self,
        descriptor: Option<OwnedFd>,
        whole: bool,
    ) -> Result<Vec<Arrival<A>>, Broken> {
        let not_an_answer = |error: &dyn core::fmt::Display| Broken::NotAnAnswer(error.to_string());
        let mut lines = Vec::new();
        loop {
            match self.lines.next_line() {
                Ok(Some(line)) => lines.push(line),
                Ok(None) => break,
                Err(error @ LineTooLong) => return Err(not_an_answer(&error)),
            }
        }
        let mut arrivals = Vec::new();
        let mut earlier = if lines.is_empty() { None } else { self.descriptor.take() };
        let mut fresh = descriptor;
        let last = lines.len().saturating_sub(1);
        for (number, line) in lines.iter().enumerate() {
            let response: Response =
                serde_json::from_slice(line).map_err(|error| not_an_answer(&error))?;
            let late = if whole && number == last { fresh.take() } else { None };
            arrivals.push(self.arrival(response, earlier.take().or(late)));
        }
        self.descriptor = fresh.or(self.descriptor.take());
        Ok(arrivals)
    }

    fn arrival(&mut self, response: Response, descriptor: Option<OwnedFd>) -> Arrival<A> {
        match response.id.and_then(|id| self.pending.remove(&id)) {
            Some(Pending { asker, call, .. }) => {
                let outcome = match response.outcome {
                    Outcome::Ok(reply) => Ok(reply),
                    Outcome::Error(error) => Err(error),
                };
                Arrival::Answer(Answer { asker, call, outcome, descriptor })
            }
            None => Arrival::Said(response),
        }
    }

    /// Ends it: what was asked fails.
    pub(super) fn end(mut self, registry: &Registry, why: &Broken) -> Vec<Answer<A>> {
        // It ends with the socket anyway.
        let _ = registry.deregister(&mut self.stream);
        let silent = matches!(why, Broken::Silent(_));
        let pending = self.pending.into_values();
        let fails = |(number, Pending { asker, call, .. })| {
            let code = match (silent, number) {
                (true, 0) => ErrorCode::Silent,
                _ => ErrorCode::Unavailable,
            };
            let body = ErrorBody::new(code, format!("no answer to the call {call}: {why}"));
            let fix = "ask the switch what is in force, then try again";
            let outcome = Err(body.at("switch").fix(fix));
            Answer { asker, call, outcome, descriptor: None }
        };
        pending.enumerate().map(fails).collect()
    }
}
