//! Answers, and how they are written.

use super::Refusal;
use holdfast_api::message::{ErrorBody, ErrorCode};
use serde::Serialize;
use serde_json::{json, Value};
use std::time::SystemTime;

/// Defines the statuses that are used, with their reason phrases (RFC 9110 15).
macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $code:literal $reason:literal,)*) => {
        /// A status code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Status {
            $($(#[$doc])* $name,)*
        }

        impl Status {
            /// The number.
            pub(crate) const fn code(self) -> u16 {
                match self { $(Self::$name => $code,)* }
            }

            /// What it is called.
            pub(crate) const fn reason(self) -> &'static str {
                match self { $(Self::$name => $reason,)* }
            }
        }
    };
}

statuses! {
    /// Done.
    Ok = 200 "OK",
    /// The request, or an argument of the call, is wrong.
    BadRequest = 400 "Bad Request",
    /// Not allowed here.
    Forbidden = 403 "Forbidden",
    /// No such path, call or port.
    NotFound = 404 "Not Found",
    /// Not by this method.
    MethodNotAllowed = 405 "Method Not Allowed",
    /// The request didn't come whole in time.
    RequestTimeout = 408 "Request Timeout",
    /// The switch refuses the change.
    Conflict = 409 "Conflict",
    /// A body without Content-Length.
    LengthRequired = 411 "Length Required",
    /// The body is too long.
    ContentTooLarge = 413 "Content Too Large",
    /// The body isn't said to be JSON.
    UnsupportedMediaType = 415 "Unsupported Media Type",
    /// An expectation other than 100-continue.
    ExpectationFailed = 417 "Expectation Failed",
    /// The name in Host isn't one of this daemon's.
    MisdirectedRequest = 421 "Misdirected Request",
    /// The answer would be too long.
    UnprocessableContent = 422 "Unprocessable Content",
    /// The head is too long.
    HeadTooLarge = 431 "Request Header Fields Too Large",
    /// A transfer coding that this server doesn't know.
    NotImplemented = 501 "Not Implemented",
    /// The switch speaks another version of the protocol.
    BadGateway = 502 "Bad Gateway",
    /// The switch isn't there, or too many want something.
    ServiceUnavailable = 503 "Service Unavailable",
    /// The switch, or one of its workers, is silent.
    GatewayTimeout = 504 "Gateway Timeout",
    /// A version of HTTP other than 1.0 and 1.1.
    VersionNotSupported = 505 "HTTP Version Not Supported",
}

impl Status {
    /// The status that fits an error of the control protocol.
    pub(crate) const fn of(code: ErrorCode) -> Self {
        match code {
            ErrorCode::BadJson | ErrorCode::BadArgument | ErrorCode::BadHttp => Self::BadRequest,
            ErrorCode::NotAllowed => Self::Forbidden,
            ErrorCode::UnknownCall | ErrorCode::UnknownPort => Self::NotFound,
            ErrorCode::Refused => Self::Conflict,
            ErrorCode::TooLong => Self::UnprocessableContent,
            ErrorCode::BadVersion => Self::BadGateway,
            ErrorCode::Unavailable => Self::ServiceUnavailable,
            ErrorCode::WorkerSilent | ErrorCode::Silent => Self::GatewayTimeout,
        }
    }
}

/// An answer without what the connection adds to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    /// The status.
    pub status: Status,
    /// What the body is.
    pub content_type: &'static str,
    /// The methods that are allowed, where that is what is wrong.
    pub allow: Option<&'static str>,
    /// The body.
    pub body: Vec<u8>,
}

/// How the request wants its answer written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Without the body: the request was HEAD.
    pub head_only: bool,
    /// The connection ends after it.
    pub close: bool,
}

impl Response {
    /// Text for people.
    pub(crate) fn text(body: String) -> Self {
        Self::page("text/plain; charset=utf-8", body)
    }

    /// Text of this media type.
    pub(crate) fn page(content_type: &'static str, body: String) -> Self {
        Self { status: Status::Ok, content_type, allow: None, body: body.into_bytes() }
    }

    fn json(status: Status, value: &Value) -> Self {
        let mut body = value.to_string().into_bytes();
        body.push(b'\n');
        Self { status, content_type: "application/json", allow: None, body }
    }

    /// `{"ok":…}`.
    pub(crate) fn ok<T: Serialize>(reply: &T) -> Self {
        Self::json(Status::Ok, &json!({ "ok": reply }))
    }

    /// `{"error":…}` with the status that fits its code.
    pub(crate) fn error(error: &ErrorBody) -> Self {
        Self::with_status(Status::of(error.code), error)
    }

    /// `{"error":…}` with a status that says more than the code.
    pub(crate) fn with_status(status: Status, error: &ErrorBody) -> Self {
        Self::json(status, &json!({ "error": error }))
    }

    /// With the methods that are allowed.
    #[must_use]
    pub(crate) const fn allowing(mut self, methods: &'static str) -> Self {
        self.allow = Some(methods);
        self
    }

    /// All of it as bytes; `now` is its date (RFC 9110 6.6.1).
    pub(crate) fn encode(&self, shape: Shape, now: SystemTime) -> Vec<u8> {
        let Self { status, content_type, allow, body } = self;
        let allow = allow.map_or_else(String::new, |methods| format!("Allow: {methods}\r\n"));
        let close = if shape.close { "Connection: close\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
             X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n{allow}{close}\r\n",
            status.code(),
            status.reason(),
            httpdate::fmt_http_date(now),
            body.len(),
        );
        let mut bytes = head.into_bytes();
        if !shape.head_only {
            bytes.extend_from_slice(body);
        }
        bytes
    }
}

impl From<&Refusal> for Response {
    fn from(refusal: &Refusal) -> Self {
        let response = Self::with_status(refusal.status, &refusal.error);
        match refusal.status {
            Status::MethodNotAllowed => response.allowing("GET, HEAD, POST"),
            _ => response,
        }
    }
}
