//! One client's course: its bytes come in, requests go out one at a time, each answered before the
//! next is looked at. Whatever the bytes are, it ends in an answer or in the end of the connection.

use super::request::{head_too_large, read_head, Head, MAX_HEAD};
use super::response::Shape;
use super::{HostPolicy, Method, Refusal, Request, Response, Status};
use holdfast_api::message::{ErrorBody, ErrorCode};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

/// The head must be there so long after its first byte.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(5);
/// The body must be there so long after its head.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(30);
/// A connection without a request ends after so long.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(30);
/// A client that takes nothing of its answer for so long is cut off.
pub(crate) const TAKE_TIME: Duration = Duration::from_secs(10);
/// How long a client that was told goodbye may go on sending: closed at once, it could lose the
/// answer that says why (RFC 9112 9.6).
pub(crate) const LINGER_TIME: Duration = Duration::from_secs(2);

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What a client has for the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A whole request, to be answered by [`Connection::answer`].
    Request(Request),
    /// It was refused, and told so.
    Refused(Refusal),
    /// Nothing now.
    Nothing,
}

/// What has run out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing has.
    Nothing,
    /// The request didn't come in time; the client is told so.
    Told(Refusal),
    /// The connection ends now.
    Over(&'static str),
}

#[derive(Debug)]
enum State {
    /// Between requests, or within a head.
    Head,
    /// Within a body.
    Body(Head),
    /// A request is being answered.
    Asked(Shape),
    /// The last answer was given; what comes is not looked at. Since when it was taken.
    Closing(Option<Instant>),
}

/// A connection without its socket.
#[derive(Debug)]
pub(crate) struct Connection {
    policy: Rc<HostPolicy>,
    local: IpAddr,
    state: State,
    input: Vec<u8>,
    /// The head is read again when so much is there: not once a byte.
    read_at: usize,
    /// Bytes of `input` in which no head ends.
    searched: usize,
    output: Vec<u8>,
    taken: usize,
    /// When the head's first byte, or the whole head, was there.
    begun: Option<Instant>,
    untaken_since: Option<Instant>,
    /// When it came, or had its last answer.
    active: Instant,
    /// The client sends no more.
    ended: bool,
    /// This answer is the last.
    draining: bool,
    /// Something has come that no step has looked at.
    fresh: bool,
}

impl Connection {
    /// A client that has come to our address `local`.
    pub(crate) fn new(policy: Rc<HostPolicy>, local: IpAddr, now: Instant) -> Self {
        Self {
            policy,
            local,
            state: State::Head,
            input: Vec::new(),
            read_at: 0,
            searched: 0,
            output: Vec::new(),
            taken: 0,
            begun: None,
            untaken_since: None,
            active: now,
            ended: false,
            draining: false,
            fresh: false,
        }
    }

    /// Whether bytes should be read for it: none are while a request is being answered.
    pub(crate) fn wants_input(&self) -> bool {
        match self.state {
            _ if self.ended => false,
            State::Head => self.output().is_empty(),
            State::Body(_) => true,
            State::Asked(_) => false,
            State::Closing(since) => since.is_some(),
        }
    }

    /// Takes what was read.
    pub(crate) fn receive(&mut self, bytes: &[u8], now: Instant) {
        if matches!(self.state, State::Closing(_)) || bytes.is_empty() {
            return;
        }
        self.input.extend_from_slice(bytes);
        self.begun.get_or_insert(now);
        self.fresh = true;
    }

    /// The client sends no more; it may still wait for answers.
    pub(crate) fn end_of_input(&mut self) {
        self.ended = true;
        self.fresh = true;
    }

    /// Whether a step may get somewhere.
    pub(crate) fn has_work(&self) -> bool {
        let blocked = matches!(self.state, State::Head) && !self.output().is_empty();
        self.fresh && !blocked && !matches!(self.state, State::Asked(_))
    }

    /// The next thing to do for it.
    pub(crate) fn step(&mut self, now: Instant) -> Step {
        if !self.has_work() {
            return Step::Nothing;
        }
        self.fresh = false;
        if matches!(self.state, State::Head) {
            match self.find_head() {
                Ok(None) => return Step::Nothing,
                Ok(Some(head)) => self.begin_body(head, now),
                Err(refusal) => return self.refuse(refusal, now),
            }
        }
        match &mut self.state {
            State::Body(head) if self.input.len() >= head.length => {
                let rest = self.input.split_off(head.length);
                let mut request = head.request.clone();
                request.body = core::mem::replace(&mut self.input, rest);
                let head_only = request.method == Method::Head;
                let shape = Shape { head_only, close: !head.keep_alive };
                self.state = State::Asked(shape);
                self.begun = None;
                Step::Request(request)
            }
            _ => Step::Nothing,
        }
    }

    fn find_head(&mut self) -> Result<Option<Head>, Refusal> {
        // Empty lines before a request are looked over (RFC 9112 2.2).
        let blank = self.input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.input.drain(..blank);
        if self.input.is_empty() {
            self.searched = 0;
            return Ok(None);
        }
        let ends = head_ends(&self.input, self.searched);
        self.searched = self.input.len();
        if !ends && self.input.len() < self.read_at && self.input.len() <= MAX_HEAD {
            return Ok(None);
        }
        let head = read_head(&self.input, &self.policy, self.local)?;
        if head.is_none() {
            if self.input.len() > MAX_HEAD {
                return Err(head_too_large());
            }
            self.read_at = self.input.len().saturating_mul(2);
        }
        Ok(head)
    }

    fn begin_body(&mut self, head: Head, now: Instant) {
        self.input.drain(..head.bytes);
        (self.searched, self.read_at) = (0, 0);
        self.begun = Some(now);
        if head.expects_continue && self.input.len() < head.length {
            self.put(CONTINUE.to_vec(), now);
        }
        self.state = State::Body(head);
    }

    /// Gives the answer to the request that was handed out last.
    pub(crate) fn answer(&mut self, response: &Response, now: Instant) {
        let State::Asked(mut shape) = self.state else { return };
        shape.close |= self.draining;
        self.put(response.encode(shape, SystemTime::now()), now);
        self.active = now;
        if shape.close {
            self.close();
        } else {
            self.state = State::Head;
            self.fresh = true;
            self.begun = (!self.input.is_empty()).then_some(now);
        }
    }

    /// Tells the client what is wrong, and goodbye.
    pub(crate) fn refuse(&mut self, refusal: Refusal, now: Instant) -> Step {
        let shape = Shape { head_only: self.input.starts_with(b"HEAD "), close: true };
        self.put(Response::from(&refusal).encode(shape, SystemTime::now()), now);
        self.close();
        Step::Refused(refusal)
    }

    fn close(&mut self) {
        self.state = State::Closing(None);
        self.input = Vec::new();
        self.begun = None;
    }

    fn put(&mut self, mut bytes: Vec<u8>, now: Instant) {
        self.output.drain(..self.taken);
        self.taken = 0;
        self.output.append(&mut bytes);
        self.untaken_since.get_or_insert(now);
    }

    /// What the client has yet to take.
    pub(crate) fn output(&self) -> &[u8] {
        self.output.get(self.taken..).unwrap_or_default()
    }

    /// It has taken so many bytes of it. `true`: that was its last answer, and nothing more is
    /// written to it.
    pub(crate) fn took(&mut self, count: usize, now: Instant) -> bool {
        self.taken += count;
        self.untaken_since = Some(now);
        if !self.output().is_empty() {
            return false;
        }
        // An answer can be a megabyte: not kept for a client that is idle.
        (self.output, self.taken, self.untaken_since) = (Vec::new(), 0, None);
        self.active = now;
        let State::Closing(since) = &mut self.state else { return false };
        since.get_or_insert(now);
        true
    }

    /// Whether nothing more can come of it: it sends no more, and all that it asked is answered.
    pub(crate) fn is_over(&self) -> bool {
        self.ended && self.output().is_empty() && !matches!(self.state, State::Asked(_))
    }

    /// Whether a request of it is being answered, or an answer is yet to be taken.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self.state, State::Asked(_)) || !self.output().is_empty()
    }

    /// Since when it has been waiting for nothing; `None` while something is under way.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let quiet = self.input.is_empty() && self.output().is_empty() && self.begun.is_none();
        (matches!(self.state, State::Head) && quiet).then_some(self.active)
    }

    /// From now on an answer is the last one of its connection.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    /// When [`Self::expire`] has something to do next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if let Some(since) = self.untaken_since {
            return Some(since + TAKE_TIME);
        }
        match (&self.state, self.begun) {
            (State::Asked(_), _) => None,
            (State::Closing(since), _) => since.map(|since| since + LINGER_TIME),
            (State::Head, Some(begun)) => Some(begun + HEAD_TIME),
            (State::Body(_), begun) => begun.map(|begun| begun + BODY_TIME),
            (State::Head, None) => Some(self.active + IDLE_TIME),
        }
    }

    /// Acts on what has run out.
    pub(crate) fn expire(&mut self, now: Instant) -> Due {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return Due::Nothing;
        }
        if self.untaken_since.is_some() {
            return Due::Over("it doesn't take its answer");
        }
        let (what, limit) = match (&self.state, self.begun) {
            (State::Closing(_), _) => return Due::Over("it was told so"),
            (State::Body(_), _) => ("body", BODY_TIME),
            (State::Head, Some(_)) => ("head", HEAD_TIME),
            _ => return Due::Over("it was idle"),
        };
        let message = format!("the request's {what} didn't come in time");
        let error = ErrorBody::new(ErrorCode::BadHttp, message)
            .at(what)
            .limit(format!("{} s", limit.as_secs()))
            .fix("send a request at once");
        let refusal = Refusal { status: Status::RequestTimeout, error };
        self.refuse(refusal.clone(), now);
        Due::Told(refusal)
    }
}

/// Whether an empty line ends a head in `bytes`, of which those before `searched` are known.
fn head_ends(bytes: &[u8], searched: usize) -> bool {
    let fresh = bytes.get(searched.saturating_sub(3)..).unwrap_or_default();
    fresh.windows(2).any(|two| two == b"\n\n") || fresh.windows(3).any(|three| three == b"\n\r\n")
}
