//! The control protocol of SPEC 11: one JSON object a line, a call and its answer.
//!
//! `{"v":1,"id":n,"call":…}` is answered by `{"id":n,"ok":…}` or `{"id":n,"error":{…}}`. A call
//! is an object with one key, the call's name, and its arguments: `{"show_pg":{"port":"h1"}}`;
//! a call without arguments may be the bare name: `"ping"`.

use crate::amount::FIX_MARK;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

mod account;
mod call;
mod event;
mod forward;
mod host;
mod journal;
mod port;
mod profile;
mod waits;

pub use account::{
    BufferReply, EcnReply, EcnStatus, EgressUse, IngressUse, PgReply, PgStatus, PgThresholds,
    PgWatermark, PoolPg, PoolStatus, PoolWatermark, QueueReply, QueueStatus, QueueWatermark,
    Segments, WatchdogReply, WatchdogStatus, WatermarkReply, Watermarks, WredView,
};
pub use call::{
    Apply, Call, Effect, Events, FdbAdd, FdbDel, PgFilter, Ping, PortAdd, PortFilter, PortName,
    Preflight, PreflightKind, QueueFilter, Segment, SetPg, SetWred, ShowBuffer, ShowFdb,
    ShowProfile, Trace, WatermarkFilter, MAX_PREFLIGHT,
};
pub use event::{Edge, Event, EventKind, TraceReply};
pub use forward::{FdbEntry, FdbKind, FdbReply};
pub use host::{HostNetdev, HostPeer, HostPort, HostReply, HostWorker};
pub use journal::{By, DownReason, EventsReply, JournalEntry, Occurrence, Severity};
pub use port::{
    drop_counts, ClassMapsView, ClassifyReply, ClassifyStatus, Done, DropCounts, Histogram,
    HistogramBucket, Peer, PfcDirection, PfcPort, PfcPriority, PfcReply, PongReply, PortState,
    PortStatus, PortsReply, PreflightReply, SegmentReply, SetReply, WorkerStatus, XdpMode,
};
pub use profile::{
    service_name, ApplyReply, HeadroomNeed, NeedView, PgView, PoolView, ProfilePort, ProfileReply,
    QueueView, WatchdogView,
};
pub use waits::{WaitsHold, WaitsPg, WaitsPort, WaitsQueue, WaitsReply};

/// The version of the protocol; a request of another is refused (SPEC 11).
pub const VERSION: u64 = 1;

/// What a client that sends something else is told.
const ONE_OBJECT: &str = "send one object a line: {\"v\":1,\"id\":1,\"call\":\"ping\"}";

/// One call with its number, which the answer repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Chosen by the client; any number.
    pub id: u64,
    /// What is asked.
    pub call: Call,
}

/// A line that isn't a request, with the number to answer to where it could be read.
#[derive(Clone, Debug, PartialEq)]
pub struct BadRequest {
    /// The request's number, `None` if the line was too broken to have one.
    pub id: Option<u64>,
    /// What to answer.
    pub error: ErrorBody,
}

impl Request {
    /// Reads one line.
    ///
    /// # Errors
    /// [`BadRequest`] with the code `bad_json`, `bad_version`, `unknown_call` or `bad_argument`.
    pub fn parse(line: &[u8]) -> Result<Self, BadRequest> {
        let bad = |id, error| BadRequest { id, error };
        let value: Value = serde_json::from_slice(line).map_err(|error| {
            let body = ErrorBody::new(ErrorCode::BadJson, format!("not a JSON object: {error}"));
            bad(None, body.fix(ONE_OBJECT))
        })?;
        let Value::Object(mut object) = value else {
            let body = ErrorBody::new(ErrorCode::BadJson, "the line is JSON but not an object");
            return Err(bad(None, body.fix(ONE_OBJECT)));
        };
        let id = object.get("id").and_then(Value::as_u64);
        let call = take_call(&mut object, id).map_err(|error| bad(id, error))?;
        let id = id.unwrap_or_default();
        read_call(call).map(|call| Self { id, call }).map_err(|error| bad(Some(id), error))
    }

    /// The line without its newline.
    pub fn to_line(&self) -> String {
        let mut object = Map::new();
        object.insert("v".to_owned(), VERSION.into());
        object.insert("id".to_owned(), self.id.into());
        object.insert("call".to_owned(), serde_json::to_value(&self.call).unwrap_or_default());
        Value::Object(object).to_string()
    }
}

fn take_call(object: &mut Map<String, Value>, id: Option<u64>) -> Result<Value, ErrorBody> {
    if object.get("v").and_then(Value::as_u64) != Some(VERSION) {
        let sent = object.get("v").map_or_else(|| "none".to_owned(), Value::to_string);
        return Err(ErrorBody::new(ErrorCode::BadVersion, "unknown protocol version")
            .at("v")
            .value(sent)
            .limit(VERSION)
            .fix("use a client of the same release as the switch"));
    }
    if id.is_none() {
        let body = match object.get("id") {
            None => ErrorBody::new(ErrorCode::BadArgument, "the request has no number"),
            Some(sent) => {
                let message = "the request's number must be a whole number from 0 on";
                ErrorBody::new(ErrorCode::BadArgument, message).value(sent)
            }
        };
        let fix = "add \"id\": a whole number, 0 or more, that the answer will repeat";
        return Err(body.at("id").fix(fix));
    }
    if let Some(key) = object.keys().find(|key| !matches!(key.as_str(), "v" | "id" | "call")) {
        return Err(ErrorBody::new(ErrorCode::BadArgument, format!("unknown key {key:?}"))
            .at(key.as_str())
            .fix("a request has the keys v, id and call"));
    }
    object.remove("call").ok_or_else(|| {
        ErrorBody::new(ErrorCode::BadArgument, "the request has no call")
            .at("call")
            .fix("add \"call\": a name, or an object with one name and its arguments")
    })
}

fn read_call(call: Value) -> Result<Call, ErrorBody> {
    let (name, arguments) = match call {
        Value::String(name) => (name, Value::Object(Map::new())),
        Value::Object(object) if object.len() == 1 => object.into_iter().next().unwrap_or_default(),
        _ => {
            let body = ErrorBody::new(ErrorCode::BadArgument, "a call is a name or {name: {…}}");
            let fix = "write \"call\":\"ping\" or \"call\":{\"show_pg\":{\"port\":\"h1\"}}";
            return Err(body.at("call").fix(fix));
        }
    };
    arguments_of(&name, arguments)
}

/// The call `name` with its arguments: a JSON value, or whatever else they are written in.
///
/// # Errors
/// [`ErrorBody`] with the code `unknown_call` or `bad_argument`.
pub fn arguments_of<'de, D: Deserializer<'de>>(
    name: &str,
    arguments: D,
) -> Result<Call, ErrorBody> {
    let Some(call) = Call::read(name, arguments) else {
        return Err(ErrorBody::new(ErrorCode::UnknownCall, "there is no such call")
            .at("call")
            .value(name)
            .fix(format!("use one of {}", Call::NAMES.join(", "))));
    };
    call.map_err(|error| {
        let text = error.to_string();
        let general = "see the call's example in the documentation of the control socket";
        let (message, fix) = text.split_once(FIX_MARK).unwrap_or((&text, general));
        ErrorBody::new(ErrorCode::BadArgument, message).at(format!("call.{name}")).fix(fix)
    })
}

/// What kind of failure an answer reports; a program decides by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The line isn't a JSON object.
    BadJson,
    /// The line is longer than 1 MiB; the connection is closed after this answer.
    TooLong,
    /// The request's `v` isn't one this switch speaks.
    BadVersion,
    /// There is no call of that name.
    UnknownCall,
    /// An argument is missing, unknown or of the wrong type or range.
    BadArgument,
    /// No port has that name.
    UnknownPort,
    /// The change contradicts the profile; nothing was changed.
    Refused,
    /// A worker didn't acknowledge within a second; the message names it (SPEC 11).
    WorkerSilent,
    /// The switch is shutting down or has too many clients; from the daemon: it isn't there.
    Unavailable,
    /// The switch didn't answer the daemon in time: whether the call was done is unknown.
    Silent,
    /// The daemon doesn't allow it: over HTTP nothing is changed unless it was started so.
    NotAllowed,
    /// The daemon takes no such HTTP request.
    BadHttp,
}

/// The `error` of an answer (SPEC 11): what is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// For programs.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
    /// The key or argument, as `pg.3.xoff`.
    #[serde(rename = "where")]
    pub place: Option<Box<str>>,
    /// The offending value.
    pub value: Option<Box<str>>,
    /// What it would have to keep to.
    pub limit: Option<Box<str>>,
    /// What to do.
    pub fix: Option<String>,
}

/// Characters of an error's place and value at most: they repeat what the client sent.
const MOST_REPEATED: usize = 160;
/// Characters of an error's message at most.
const LONGEST_MESSAGE: usize = 1_000;

/// The first `most` characters, with a mark where some are missing.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl ErrorBody {
    /// An error with a code and a message; of a very long one the beginning.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = shortened(&message.into(), LONGEST_MESSAGE);
        Self { code, message, place: None, value: None, limit: None, fix: None }
    }

    /// With the key or argument it is about; of a very long one the beginning.
    #[must_use]
    pub fn at(mut self, place: impl Into<Box<str>>) -> Self {
        self.place = Some(shortened(&place.into(), MOST_REPEATED).into());
        self
    }

    /// With the offending value; of a very long one the beginning.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "numbers are written where they are known")]
    pub fn value(mut self, value: impl ToString) -> Self {
        self.value = Some(shortened(&value.to_string(), MOST_REPEATED).into());
        self
    }

    /// With the limit.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "numbers are written where they are known")]
    pub fn limit(mut self, limit: impl ToString) -> Self {
        self.limit = Some(limit.to_string().into());
        self
    }

    /// With what to do.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

impl core::fmt::Display for ErrorBody {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(value) = &self.value {
            write!(f, " (value {value}")?;
            if let Some(limit) = &self.limit {
                write!(f, ", limit {limit}")?;
            }
            f.write_str(")")?;
        }
        match &self.fix {
            Some(fix) => write!(f, "; {fix}"),
            None => Ok(()),
        }
    }
}

/// An answer: exactly one of `ok` and `error`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The request's number; `null` where the request had none that could be read.
    pub id: Option<u64>,
    /// The result.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// How a call went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Done; the call's reply as an object.
    Ok(Value),
    /// Nothing was changed.
    Error(ErrorBody),
}

impl Response {
    /// The answer to a call that was done; `reply` is one of this module's reply types.
    pub fn ok<T: Serialize>(id: u64, reply: &T) -> Self {
        // A reply type is plain data with string keys: it can't fail to become a value.
        let value = serde_json::to_value(reply).unwrap_or_default();
        Self { id: Some(id), outcome: Outcome::Ok(value) }
    }

    /// The answer to a call that was refused.
    pub const fn error(id: Option<u64>, error: ErrorBody) -> Self {
        Self { id, outcome: Outcome::Error(error) }
    }

    /// The line, newline included.
    pub fn to_line(&self) -> String {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests;
