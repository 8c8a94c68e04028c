//! One client: what it has sent, what it has yet to take, and for how long it may keep us waiting.

use super::dispatch::Answered;
use holdfast_api::line::{LineBuffer, LineTooLong};
use holdfast_api::message::By;
use mio::net::UnixStream;
use nix::sys::socket::{getsockopt, sendmsg, sockopt::PeerCredentials, ControlMessage, MsgFlags};
use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// A client that takes nothing of its answer for so long is cut off.
pub(super) const TAKE_PATIENCE: Duration = Duration::from_secs(10);
/// A client that doesn't end a line for so long is cut off.
pub(super) const LINE_PATIENCE: Duration = Duration::from_secs(30);
/// How long a client that is being cut off may go on sending before the socket is closed: closed
/// at once, the answer that says why could be lost.
const LINGER: Duration = Duration::from_secs(2);
/// Bytes read at once.
const CHUNK: usize = 64 << 10;

/// Who is at the other end, as the kernel says (SO_PEERCRED, unix(7)).
fn peer_of(stream: &UnixStream) -> io::Result<By> {
    let credentials = getsockopt(stream, PeerCredentials)?;
    Ok(By { pid: credentials.pid(), uid: credentials.uid(), gid: credentials.gid() })
}

/// Writes what the socket takes of `bytes`, and the file with the first of them (unix(7),
/// SCM_RIGHTS).
fn send_with(stream: &UnixStream, bytes: &[u8], file: BorrowedFd<'_>) -> io::Result<usize> {
    let files = [file.as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&files)];
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    let pieces = [IoSlice::new(bytes)];
    Ok(sendmsg::<()>(stream.as_raw_fd(), &pieces, &rights, flags, None)?)
}

/// What a client has for the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// A whole line, to be answered.
    Line(Vec<u8>),
    /// A line that is too long: to be answered, then cut off.
    TooLong,
    /// Nothing now.
    Nothing,
    /// It is gone, or was cut off.
    Gone,
}

/// A connected client. Not a line of it is looked at while it hasn't taken the answer before.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) stream: UnixStream,
    pub(super) peer: By,
    lines: LineBuffer,
    /// The buffer may hold a whole line.
    buffered: bool,
    /// What was read last doesn't end a line.
    open_end: bool,
    answer: Vec<u8>,
    /// The file that goes with the first byte of the answer.
    file: Option<OwnedFd>,
    taken: usize,
    readable: bool,
    writable: bool,
    unfinished_since: Option<Instant>,
    untaken_since: Option<Instant>,
    /// When it was last answered, or came.
    active: Instant,
    /// It is being cut off: until when.
    closing: Option<Instant>,
}

impl Client {
    /// A client that has just connected.
    ///
    /// # Errors
    /// The system's, where it doesn't say who that is.
    pub(super) fn new(stream: UnixStream, now: Instant) -> io::Result<Self> {
        Ok(Self {
            peer: peer_of(&stream)?,
            stream,
            lines: LineBuffer::new(),
            buffered: false,
            open_end: false,
            answer: Vec::new(),
            file: None,
            taken: 0,
            readable: true,
            writable: true,
            unfinished_since: None,
            untaken_since: None,
            active: now,
            closing: None,
        })
    }

    /// The poll says that the socket may be read or written again.
    pub(super) fn ready(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.writable |= writable;
    }

    /// Whether a turn may get somewhere without waiting for the poll.
    pub(super) fn has_work(&self) -> bool {
        if self.untaken() {
            return self.writable;
        }
        self.readable || (self.buffered && self.closing.is_none())
    }

    fn untaken(&self) -> bool {
        self.taken < self.answer.len()
    }

    /// One step: hands over what is left of the last answer, then finds the next line.
    pub(super) fn turn(&mut self, now: Instant) -> Turn {
        if !self.push_answer(now) {
            return Turn::Gone;
        }
        if self.untaken() {
            return Turn::Nothing;
        }
        if self.closing.is_some() {
            return self.discard();
        }
        if self.buffered {
            match self.lines.next_line() {
                Ok(Some(line)) => {
                    self.unfinished_since = None;
                    return Turn::Line(line);
                }
                Ok(None) => {
                    self.buffered = false;
                    if self.open_end {
                        self.unfinished_since.get_or_insert(now);
                    }
                }
                Err(LineTooLong) => return Turn::TooLong,
            }
        }
        self.read()
    }

    fn read(&mut self) -> Turn {
        if !self.readable {
            return Turn::Nothing;
        }
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(0) => Turn::Gone,
            Ok(count) => {
                self.lines.push(chunk.get(..count).unwrap_or_default());
                self.buffered = true;
                self.open_end = chunk.get(count - 1) != Some(&b'\n');
                Turn::Nothing
            }
            Err(error) => self.stalled(&error),
        }
    }

    /// Reads what a client still sends that is being cut off.
    fn discard(&mut self) -> Turn {
        if !self.readable {
            return Turn::Nothing;
        }
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(0) => Turn::Gone,
            Ok(_) => Turn::Nothing,
            Err(error) => self.stalled(&error),
        }
    }

    fn stalled(&mut self, error: &io::Error) -> Turn {
        match error.kind() {
            io::ErrorKind::WouldBlock => {
                self.readable = false;
                Turn::Nothing
            }
            io::ErrorKind::Interrupted => Turn::Nothing,
            _ => Turn::Gone,
        }
    }

    /// Gives the client its answer, a whole line, and a file if there is one.
    pub(super) fn answer(&mut self, answered: Answered, now: Instant) -> bool {
        self.answer = answered.line.into_bytes();
        self.file = answered.file;
        self.taken = 0;
        self.active = now;
        self.push_answer(now)
    }

    /// Gives it a last answer; what it sends from now on is not looked at.
    pub(super) fn answer_last(&mut self, line: String, now: Instant) -> bool {
        self.closing = Some(now + LINGER);
        self.lines = LineBuffer::new();
        self.buffered = false;
        self.answer(Answered { line, file: None }, now)
    }

    /// Writes what the socket takes; `false` if the client is gone.
    fn push_answer(&mut self, now: Instant) -> bool {
        while self.untaken() && self.writable {
            let rest = self.answer.get(self.taken..).unwrap_or_default();
            let written = match &self.file {
                Some(file) => send_with(&self.stream, rest, file.as_fd()),
                None => self.stream.write(rest),
            };
            match written {
                Ok(0) => return false,
                Ok(count) => {
                    self.file = None;
                    self.taken += count;
                    self.untaken_since = None;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        if self.untaken() {
            self.untaken_since.get_or_insert(now);
        } else if self.taken > 0 {
            // An answer can be a megabyte: not kept for a client that is idle.
            self.answer = Vec::new();
            self.taken = 0;
            if self.closing.is_some() {
                return self.stream.shutdown(Shutdown::Write).is_ok();
            }
        }
        true
    }

    /// Why the client must be cut off now, if it must.
    pub(super) fn overdue(&self, now: Instant) -> Option<&'static str> {
        let longer = |since: Option<Instant>, patience| {
            since.is_some_and(|since| now.saturating_duration_since(since) > patience)
        };
        if longer(self.untaken_since, TAKE_PATIENCE) {
            return Some("it doesn't take its answer");
        }
        if longer(self.unfinished_since, LINE_PATIENCE) && !self.untaken() {
            return Some("it doesn't end its line");
        }
        self.closing.is_some_and(|until| now > until).then_some("it was told so")
    }

    /// How long it has been idle: neither asking nor being answered.
    pub(super) fn idle(&self, now: Instant) -> Duration {
        if self.untaken() {
            return Duration::ZERO;
        }
        now.saturating_duration_since(self.active)
    }
}
