//! HTTP/1 (RFC 9110, RFC 9112) as far as a control port needs it, without a socket and without a
//! clock: bytes and the time come in, requests and bytes come out.
//!
//! [`request`] reads a head and says what is wrong with it, [`host`] holds `Host` and `Origin`
//! against DNS rebinding, [`response`] writes answers, [`connection`] is one client's course from
//! its first byte to its last, with every limit.

pub(crate) mod connection;
pub(crate) mod host;
pub(crate) mod request;
pub(crate) mod response;

pub(crate) use connection::{Connection, Due, Step};
pub(crate) use host::HostPolicy;
pub(crate) use request::{Method, Request};
pub(crate) use response::{Response, Status};

use holdfast_api::message::ErrorBody;

/// Why a request is refused: what is said, and with which status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The status of the answer.
    pub status: Status,
    /// What is wrong, and what to do.
    pub error: ErrorBody,
}

#[cfg(test)]
mod tests;
