//! One HTTP client: its socket, and its course ([`Connection`]).

use crate::http::{Connection, Due, Refusal, Request, Response, Step};
use mio::net::TcpStream;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Instant;

/// Bytes read at once.
const CHUNK: usize = 16 << 10;

/// What a client has for the server.
#[derive(Debug)]
pub(crate) enum Turn {
    /// A request, to be answered.
    Request(Request),
    /// It was refused, and told so.
    Refused(Refusal),
    /// Nothing now.
    Nothing,
    /// It is gone, or is to be cut off.
    Gone(&'static str),
}

/// A client.
#[derive(Debug)]
pub(crate) struct Client {
    /// Its socket.
    pub stream: TcpStream,
    /// Who it is.
    pub peer: SocketAddr,
    /// Its course.
    pub connection: Connection,
    /// No other client has this number.
    pub serial: u64,
    readable: bool,
    writable: bool,
}

impl Client {
    /// One that has just come.
    pub(crate) fn new(
        stream: TcpStream,
        peer: SocketAddr,
        connection: Connection,
        serial: u64,
    ) -> Self {
        Self { stream, peer, connection, serial, readable: true, writable: true }
    }

    /// The poll says that the socket may be read or written again.
    pub(crate) fn ready(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.writable |= writable;
    }

    /// Whether a turn may get somewhere without waiting for the poll.
    pub(crate) fn has_work(&self) -> bool {
        let writes = self.writable && !self.connection.output().is_empty();
        let reads = self.readable && self.connection.wants_input();
        writes || reads || self.connection.has_work()
    }

    /// One turn: writes, reads once, and finds the next request.
    pub(crate) fn turn(&mut self, now: Instant) -> Turn {
        match self.connection.expire(now) {
            Due::Nothing => {}
            Due::Told(refusal) => return Turn::Refused(refusal),
            Due::Over(why) => return Turn::Gone(why),
        }
        if self.write(now).is_err() || self.read(now).is_err() {
            return Turn::Gone("it went away");
        }
        match self.connection.step(now) {
            Step::Request(request) => Turn::Request(request),
            Step::Refused(refusal) => Turn::Refused(refusal),
            Step::Nothing if self.connection.is_over() => Turn::Gone("it has its answers"),
            Step::Nothing => Turn::Nothing,
        }
    }

    /// Gives it its answer, as much as it takes now.
    pub(crate) fn answer(&mut self, response: &Response, now: Instant) {
        self.connection.answer(response, now);
        if let Err(error) = self.write(now) {
            // The next turn finds it, too.
            log::debug!("HTTP client {}: {error}", self.peer);
        }
    }

    fn write(&mut self, now: Instant) -> io::Result<()> {
        while self.writable && !self.connection.output().is_empty() {
            match self.stream.write(self.connection.output()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    if self.connection.took(count, now) {
                        self.stream.shutdown(Shutdown::Write)?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read(&mut self, now: Instant) -> io::Result<()> {
        if !self.readable || !self.connection.wants_input() {
            return Ok(());
        }
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(0) => self.connection.end_of_input(),
            Ok(count) => self.connection.receive(chunk.get(..count).unwrap_or_default(), now),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
