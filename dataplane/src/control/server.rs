//! The event loop: every client in turn, one line a turn, so that none can starve the others.

use super::client::{Client, Turn};
use super::{Console, Listener};
use holdfast_api::line::LineTooLong;
use holdfast_api::log_lines::Throttle;
use holdfast_api::message::{ErrorBody, ErrorCode, Response};
use holdfast_core::io::PortIo;
use mio::net::UnixStream;
use mio::{Events, Interest, Poll, Token, Waker};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Clients at once (SPEC 11).
pub(super) const MAX_CLIENTS: usize = 64;
/// A client idle for longer makes room for a new one where there is none, the longest idle first:
/// nobody can lock others out by connections alone.
pub(super) const IDLE_LIMIT: Duration = Duration::from_secs(1);
/// How often patience is checked, and the journal written, while nothing happens.
const TICK: Duration = Duration::from_secs(1);
/// Connections accepted before the clients have their turn again.
const ACCEPTS: usize = 64;
/// After so long it is tried again to accept those who couldn't be.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

const LISTENER: Token = Token(MAX_CLIENTS);
const WAKER: Token = Token(MAX_CLIENTS + 1);

/// The control thread's state.
pub(super) struct Server<P: PortIo> {
    console: Console<P>,
    poll: Poll,
    listener: Listener,
    /// More connections may wait.
    waiting: bool,
    /// When it is tried again to accept those who couldn't be.
    accept_at: Option<Instant>,
    clients: Vec<Option<Client>>,
    unaccepted: Throttle<()>,
    stop: Arc<AtomicBool>,
}

impl<P: PortIo + 'static> Server<P> {
    /// A server that has not begun; the waker makes it look at `stop`.
    ///
    /// # Errors
    /// The system's, where it gives no epoll or eventfd.
    pub(super) fn new(
        console: Console<P>,
        mut listener: Listener,
        stop: Arc<AtomicBool>,
    ) -> io::Result<(Self, Arc<Waker>)> {
        let poll = Poll::new()?;
        poll.registry().register(&mut listener.socket, LISTENER, Interest::READABLE)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let clients = (0..MAX_CLIENTS).map(|_| None).collect();
        let unaccepted = Throttle::new();
        Ok((
            Self {
                console,
                poll,
                listener,
                waiting: true,
                accept_at: None,
                clients,
                unaccepted,
                stop,
            },
            waker,
        ))
    }

    /// Serves until `stop`.
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(2 * MAX_CLIENTS);
        let mut noticed = Instant::now();
        while !self.stop.load(Ordering::Acquire) {
            let busy = self.waiting || self.clients.iter().flatten().any(Client::has_work);
            let timeout = match (busy, self.accept_at) {
                (true, _) => Duration::ZERO,
                (false, Some(_)) => ACCEPT_AGAIN,
                (false, None) => TICK,
            };
            if let Err(error) = self.poll.poll(&mut events, Some(timeout)) {
                if error.kind() != io::ErrorKind::Interrupted {
                    log::error!("the control socket can't be polled: {error}");
                    std::thread::sleep(TICK);
                }
                continue;
            }
            for event in &events {
                if event.token() == LISTENER {
                    self.waiting = true;
                } else if let Some(Some(client)) = self.clients.get_mut(event.token().0) {
                    client.ready(event.is_readable(), event.is_writable());
                }
            }
            self.console.serve_ports();
            let now = Instant::now();
            if self.accept_at.is_some_and(|at| now >= at) {
                (self.accept_at, self.waiting) = (None, true);
            }
            if self.waiting {
                self.accept(now);
            }
            if now.saturating_duration_since(noticed) >= TICK {
                self.console.notice();
                noticed = now;
            }
            for number in 0..self.clients.len() {
                self.serve(number, now);
            }
        }
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTS {
            match self.listener.socket.accept() {
                Ok((stream, _)) => self.admit(stream, now),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.waiting = false;
                    if error.kind() != io::ErrorKind::WouldBlock {
                        // Out of descriptors, say: who waits is not told again by the poll.
                        self.accept_at = Some(now + ACCEPT_AGAIN);
                        if let Some(left_out) = self.unaccepted.line((), now) {
                            log::warn!(
                                "a client of the control socket can't be accepted: {error} \
                                 ({left_out} more before)"
                            );
                        }
                    }
                    return;
                }
            }
        }
    }

    fn admit(&mut self, mut stream: UnixStream, now: Instant) {
        let Some(number) = self.make_room(now) else {
            let body = ErrorBody::new(ErrorCode::Unavailable, "the switch has too many clients")
                .at("socket")
                .value(MAX_CLIENTS + 1)
                .limit(MAX_CLIENTS)
                .fix("end a client, or try again later");
            // Best effort: a fresh socket has room for a line.
            let _ = stream.write(Response::error(None, body).to_line().as_bytes());
            return;
        };
        let interest = Interest::READABLE | Interest::WRITABLE;
        let admitted = self
            .poll
            .registry()
            .register(&mut stream, Token(number), interest)
            .and_then(|()| Client::new(stream, now));
        match (admitted, self.clients.get_mut(number)) {
            (Ok(client), Some(place)) => {
                log::debug!("control client {number}: {}", client.peer);
                *place = Some(client);
            }
            (Err(error), _) => log::warn!("a control client can't be served: {error}"),
            (Ok(_), None) => {}
        }
    }

    /// A free place; that of the client that has been idle longest, where there is none.
    fn make_room(&mut self, now: Instant) -> Option<usize> {
        if let Some(free) = self.clients.iter().position(Option::is_none) {
            return Some(free);
        }
        let idle = self.clients.iter().flatten().map(|client| client.idle(now)).enumerate();
        let (number, _) =
            idle.filter(|(_, idle)| *idle > IDLE_LIMIT).max_by_key(|(_, idle)| *idle)?;
        let body = ErrorBody::new(ErrorCode::Unavailable, "this client made room for another one")
            .at("socket")
            .value(MAX_CLIENTS + 1)
            .limit(MAX_CLIENTS)
            .fix("connect again");
        if let Some(Some(client)) = self.clients.get_mut(number) {
            // Best effort, as above: all that it was given before is taken.
            let _ = client.stream.write(Response::error(None, body).to_line().as_bytes());
        }
        self.cut_off(number, "it was idle, and others wait");
        Some(number)
    }

    fn serve(&mut self, number: usize, now: Instant) {
        let Some(Some(client)) = self.clients.get_mut(number) else { return };
        if let Some(why) = client.overdue(now) {
            return self.cut_off(number, why);
        }
        let peer = client.peer;
        match client.turn(now) {
            Turn::Nothing => {}
            Turn::Gone => self.cut_off(number, "it went away"),
            Turn::Line(line) => {
                let answer = self.console.answer_line(&line, peer);
                // The answer may have taken its time: not the client's.
                self.give(number, |client| client.answer(answer, Instant::now()));
            }
            Turn::TooLong => {
                let body = ErrorBody::new(ErrorCode::TooLong, LineTooLong.to_string())
                    .limit(holdfast_api::line::MAX_LINE)
                    .fix("send one object a line; the connection ends here");
                let line = Response::error(None, body).to_line();
                self.give(number, |client| client.answer_last(line, now));
            }
        }
    }

    fn give(&mut self, number: usize, answer: impl FnOnce(&mut Client) -> bool) {
        if let Some(Some(client)) = self.clients.get_mut(number) {
            if !answer(client) {
                self.cut_off(number, "it went away");
            }
        }
    }

    fn cut_off(&mut self, number: usize, why: &str) {
        let Some(mut client) = self.clients.get_mut(number).and_then(Option::take) else { return };
        log::debug!("control client {number} ({}) ends: {why}", client.peer);
        if let Err(error) = self.poll.registry().deregister(&mut client.stream) {
            log::debug!("control client {number}: {error}");
        }
    }
}
