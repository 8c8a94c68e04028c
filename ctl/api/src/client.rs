//! A small blocking client of the control socket: for the CLI and for tests.

use crate::line::{LineBuffer, LineTooLong};
use crate::message::{Call, ErrorBody, Outcome, Request, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// How long an answer may take: workers have one second (SPEC 11), the rest is the machine's.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a call has no result.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The switch can't be reached.
    #[error("no switch answers at {path}: {source}")]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the switch at {path} didn't answer the call {call}: {source}")]
    Broken {
        /// The socket.
        path: PathBuf,
        /// The call's name.
        call: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The answer isn't one.
    #[error("the switch at {path} answered the call {call} with something else: {why}")]
    NotAnAnswer {
        /// The socket.
        path: PathBuf,
        /// The call's name.
        call: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The switch refused.
    #[error("{0}")]
    Refused(ErrorBody),
}

/// A connection to one switch.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    path: PathBuf,
    buffer: LineBuffer,
    next_id: u64,
}

impl Client {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let unreachable = |source| ClientError::Unreachable { path: path.to_path_buf(), source };
        let stream = UnixStream::connect(path).map_err(unreachable)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(unreachable)?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT)).map_err(unreachable)?;
        let path = path.to_path_buf();
        Ok(Self { stream, path, buffer: LineBuffer::new(), next_id: 1 })
    }

    /// The socket it is connected to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a call and reads its reply as `T`, the reply type named at the [`Call`].
    ///
    /// # Errors
    /// Any [`ClientError`]; after `Broken` and `NotAnAnswer` the connection is of no more use.
    pub fn call<T: DeserializeOwned>(&mut self, call: Call) -> Result<T, ClientError> {
        let name = call.name();
        let value = self.call_raw(call)?;
        serde_json::from_value(value).map_err(|error| self.not_an_answer(name, error.to_string()))
    }

    /// Makes a call and returns the `ok` object as it came.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn call_raw(&mut self, call: Call) -> Result<Value, ClientError> {
        let name = call.name();
        let id = self.next_id;
        self.next_id += 1;
        let mut line = Request { id, call }.to_line();
        line.push('\n');
        let line = match self.stream.write_all(line.as_bytes()) {
            Ok(()) => self.read_line(name)?,
            // A switch that has no place for us has said so and hung up: its word is waiting.
            Err(source) if is_hung_up(&source) => {
                self.read_line(name).map_err(|_| self.broken(name, source))?
            }
            Err(source) => return Err(self.broken(name, source)),
        };
        let response: Response = serde_json::from_slice(&line)
            .map_err(|error| self.not_an_answer(name, error.to_string()))?;
        match response.outcome {
            Outcome::Error(body) => Err(ClientError::Refused(body)),
            Outcome::Ok(value) if response.id == Some(id) => Ok(value),
            Outcome::Ok(_) => {
                let why = format!("it is number {:?}, the call was {id}", response.id);
                Err(self.not_an_answer(name, why))
            }
        }
    }

    fn read_line(&mut self, call: &'static str) -> Result<Vec<u8>, ClientError> {
        let mut chunk = [0u8; 16 * 1024];
        loop {
            match self.buffer.next_line() {
                Ok(Some(line)) => return Ok(line),
                Ok(None) => {}
                Err(LineTooLong) => {
                    return Err(self.not_an_answer(call, LineTooLong.to_string()));
                }
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(self.broken(call, io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.buffer.push(chunk.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.broken(call, error)),
            }
        }
    }

    fn broken(&self, call: &'static str, source: io::Error) -> ClientError {
        ClientError::Broken { path: self.path.clone(), call, source }
    }

    fn not_an_answer(&self, call: &'static str, why: String) -> ClientError {
        ClientError::NotAnAnswer { path: self.path.clone(), call, why }
    }
}

fn is_hung_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ErrorCode, Ping, PongReply};
    use std::os::unix::net::UnixListener;

    /// SPEC 11: a refusal is exit code 1, not "unreachable".
    #[test]
    fn a_word_said_before_hanging_up_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lab.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let mut client = Client::connect(&path).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let body = ErrorBody::new(ErrorCode::Unavailable, "too many clients");
        stream.write_all(Response::error(None, body).to_line().as_bytes()).unwrap();
        drop(stream);
        let answer = client.call::<PongReply>(Call::Ping(Ping {}));
        let Err(ClientError::Refused(body)) = &answer else { panic!("{answer:?}") };
        assert_eq!(body.code, ErrorCode::Unavailable);
        // Without a word it is a broken connection.
        let mut client = Client::connect(&path).unwrap();
        drop(listener.accept().unwrap());
        let answer = client.call::<PongReply>(Call::Ping(Ping {}));
        assert!(matches!(answer, Err(ClientError::Broken { .. })), "{answer:?}");
    }
}
