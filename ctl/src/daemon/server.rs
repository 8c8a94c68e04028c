//! The event loop: one thread, which serves every client and the switch in turn, one step a turn,
//! so that none can starve the others.

use crate::client::{Client, Turn};
use crate::http::{Connection, HostPolicy, Refusal, Request, Response, Status};
use crate::service::{Connections, Place, Service};
use crate::signals::{Signals, Wish};
use holdfast_api::log_lines::{logged, Throttle};
use holdfast_api::message::{ErrorBody, ErrorCode};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// HTTP connections at once.
pub(crate) const MAX_CONNECTIONS: usize = 64;
/// Connections beyond, which are only told that there are too many.
const MAX_FAREWELLS: usize = 16;
/// After SIGTERM, answers have so long to be finished.
pub(crate) const DRAIN_TIME: Duration = Duration::from_secs(1);
/// Connections accepted before the clients have their turn again.
const ACCEPTS: usize = 64;
/// After so long it is tried again to accept those who couldn't be.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// After a poll that failed, so that a fault of the system doesn't fill the log.
const PAUSE: Duration = Duration::from_secs(1);

const SLOTS: usize = MAX_CONNECTIONS + MAX_FAREWELLS;
const LISTENER: Token = Token(SLOTS);
const SIGNALS: Token = Token(SLOTS + 1);
/// The connection to the switch.
pub(crate) const SWITCH: Token = Token(SLOTS + 2);

/// The daemon.
pub(crate) struct Server {
    poll: Poll,
    listener: Option<TcpListener>,
    /// More connections may wait.
    waiting: bool,
    /// When it is tried again to accept those who couldn't be.
    accept_at: Option<Instant>,
    policy: Rc<HostPolicy>,
    /// The last [`MAX_FAREWELLS`] are for those who are turned away.
    clients: Vec<Option<Client>>,
    next_serial: u64,
    service: Service,
    signals: Signals,
    /// It is ending: until when.
    until: Option<Instant>,
    lines: Throttle<&'static str>,
}

impl Server {
    /// A server that has not begun.
    ///
    /// # Errors
    /// The system's, where it gives no epoll.
    pub(crate) fn new(
        mut listener: TcpListener,
        policy: HostPolicy,
        service: Service,
        mut signals: Signals,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        signals.register(poll.registry(), SIGNALS)?;
        Ok(Self {
            poll,
            listener: Some(listener),
            waiting: true,
            accept_at: None,
            policy: Rc::new(policy),
            clients: (0..SLOTS).map(|_| None).collect(),
            next_serial: 0,
            service,
            signals,
            until: None,
            lines: Throttle::new(),
        })
    }

    /// Serves until a signal ends it.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(2 * SLOTS);
        loop {
            let timeout = self.timeout(Instant::now());
            if let Err(error) = self.poll.poll(&mut events, timeout) {
                if error.kind() != io::ErrorKind::Interrupted {
                    log::error!("the sockets can't be polled: {error}");
                    std::thread::sleep(PAUSE);
                }
            }
            for event in &events {
                let (readable, writable) = (event.is_readable(), event.is_writable());
                match event.token() {
                    LISTENER => self.waiting = true,
                    SIGNALS => self.signals.ready(),
                    SWITCH => self.service.switch_ready(readable, writable),
                    Token(slot) => {
                        if let Some(Some(client)) = self.clients.get_mut(slot) {
                            client.ready(readable, writable);
                        }
                    }
                }
            }
            let now = Instant::now();
            self.obey_signals(now);
            if self.accept_at.is_some_and(|at| now >= at) {
                (self.accept_at, self.waiting) = (None, true);
            }
            self.accept(now);
            for slot in 0..self.clients.len() {
                self.serve(slot, now);
            }
            for (place, response) in self.service.step(self.poll.registry(), now) {
                self.give(place, &response, now);
            }
            if self.until.is_some_and(|until| now >= until || self.is_drained()) {
                return;
            }
        }
    }

    /// How long the poll may wait; `None` for ever.
    fn timeout(&self, now: Instant) -> Option<Duration> {
        let busy = self.clients.iter().flatten().any(Client::has_work);
        if busy || self.waiting || self.service.has_work() {
            return Some(Duration::ZERO);
        }
        let clients = self.clients.iter().flatten();
        let deadlines = clients.filter_map(|client| client.connection.deadline());
        let ours = deadlines.chain(self.service.deadline()).chain(self.until);
        let next = ours.chain(self.accept_at).min()?;
        // epoll counts in milliseconds: woken just before the time, it would spin.
        Some(next.saturating_duration_since(now) + Duration::from_millis(1))
    }

    fn obey_signals(&mut self, now: Instant) {
        for wish in self.signals.take() {
            match wish {
                Wish::Reload => self.service.asked(now),
                Wish::End if self.until.is_some() => {}
                Wish::End => {
                    log::info!("told to end: answers under way are finished");
                    self.until = Some(now + DRAIN_TIME);
                    // Who has connected already has asked already, as far as it knows.
                    self.waiting = true;
                    self.accept(now);
                    self.listener = None;
                    self.waiting = false;
                    for client in self.clients.iter_mut().flatten() {
                        client.connection.drain();
                    }
                }
            }
        }
    }

    /// Whether nobody waits for anything any more.
    fn is_drained(&self) -> bool {
        let mut clients = self.clients.iter().flatten();
        clients.all(|client| !client.connection.is_served())
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTS {
            if !self.waiting {
                return;
            }
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((stream, peer)) => self.admit(stream, peer, now),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.waiting = false,
                Err(error) => {
                    // Out of descriptors, say: who waits is not told again by the poll.
                    self.waiting = false;
                    self.accept_at = Some(now + ACCEPT_AGAIN);
                    if let Some(left_out) = self.lines.line("accept", now) {
                        log::warn!("no client can be accepted: {error} ({left_out} more before)");
                    }
                }
            }
        }
    }

    fn admit(&mut self, mut stream: TcpStream, peer: SocketAddr, now: Instant) {
        // Else the end of an answer may wait for the other side's acknowledgement.
        let local = stream.set_nodelay(true).and_then(|()| stream.local_addr());
        let (Ok(local), Some(slot)) = (local, self.make_room()) else { return };
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(&mut stream, Token(slot), interest) {
            log::warn!("a client can't be served: {error}");
            return;
        }
        let mut connection = Connection::new(Rc::clone(&self.policy), local.ip(), now);
        if slot >= MAX_CONNECTIONS {
            let error = ErrorBody::new(ErrorCode::Unavailable, "there are too many connections")
                .at("connections")
                .value(MAX_CONNECTIONS + 1)
                .limit(MAX_CONNECTIONS)
                .fix("end one, or try again later");
            let refusal = Refusal { status: Status::ServiceUnavailable, error };
            connection.refuse(refusal.clone(), now);
            self.refused(&refusal, peer, now);
        }
        self.next_serial += 1;
        let client = Client::new(stream, peer, connection, self.next_serial);
        if let Some(place) = self.clients.get_mut(slot) {
            *place = Some(client);
        }
    }

    /// A free slot; that of the client that has been idle longest, where there is none; one to be
    /// turned away in, where none is idle.
    fn make_room(&mut self) -> Option<usize> {
        let free = |client: &Option<Client>| client.is_none();
        let (serving, _) = self.clients.split_at(MAX_CONNECTIONS);
        if let Some(slot) = serving.iter().position(free) {
            return Some(slot);
        }
        let idle = serving.iter().enumerate().filter_map(|(slot, client)| {
            client.as_ref().and_then(|client| Some((client.connection.idle_since()?, slot)))
        });
        if let Some((_, slot)) = idle.min() {
            self.cut_off(slot, "it was idle, and others wait");
            return Some(slot);
        }
        self.clients.iter().position(free)
    }

    fn serve(&mut self, slot: usize, now: Instant) {
        let Some(Some(client)) = self.clients.get_mut(slot) else { return };
        let place = Place { slot, serial: client.serial, peer: client.peer };
        match client.turn(now) {
            Turn::Nothing => {}
            Turn::Gone(why) => self.cut_off(slot, why),
            Turn::Refused(refusal) => self.refused(&refusal, place.peer, now),
            Turn::Request(request) => self.ask(&request, place, now),
        }
    }

    fn ask(&mut self, request: &Request, place: Place, now: Instant) {
        let now_connected = self.clients.iter().flatten().count();
        let connections = Connections { now: now_connected, limit: MAX_CONNECTIONS };
        if let Some(response) = self.service.request(request, place, connections, now) {
            self.give(place, &response, now);
        }
    }

    /// Gives an answer to a client, if it is still there.
    fn give(&mut self, place: Place, response: &Response, now: Instant) {
        let client = self.clients.get_mut(place.slot).and_then(Option::as_mut);
        if let Some(client) = client.filter(|client| client.serial == place.serial) {
            log::debug!("HTTP client {}: {}", place.peer, response.status.code());
            client.answer(response, now);
            self.service.count(response.status);
        }
    }

    fn refused(&mut self, refusal: &Refusal, peer: SocketAddr, now: Instant) {
        self.service.count(refusal.status);
        if let Some(left_out) = self.lines.line(refusal.status.reason(), now) {
            let text = logged(&refusal.error.to_string());
            let code = refusal.status.code();
            log::info!("HTTP client {peer}: {code}: {text} ({left_out} more before)");
        }
    }

    fn cut_off(&mut self, slot: usize, why: &str) {
        let Some(mut client) = self.clients.get_mut(slot).and_then(Option::take) else { return };
        log::debug!("HTTP client {} ends: {why}", client.peer);
        if let Err(error) = self.poll.registry().deregister(&mut client.stream) {
            log::debug!("HTTP client {}: {error}", client.peer);
        }
    }
}
