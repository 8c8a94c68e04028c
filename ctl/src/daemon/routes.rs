//! From a request to what is done for it. Everything that is served is in [`PATHS`] and [`route`].

use crate::http::{Method, Request, Response, Status};
use crate::query;
use holdfast_api::message::{arguments_of, Call, Effect, ErrorBody, ErrorCode};
use serde::Serialize;
use serde_json::{Map, Value};

/// Where the calls are: `/api/v1/CALL`.
const CALLS: &str = "/api/v1/";

/// The paths, as they are told to people.
const PATHS: [(&str, &str); 6] = [
    ("/", "this text"),
    ("/healthz", "200 while the switch answers, else 503"),
    ("/metrics", "the switch's counters for Prometheus"),
    ("/api/v1", "the calls, and which of them are allowed"),
    ("/api/v1/CALL", "one call: arguments as ?port=h1&pg=3, or by POST as a JSON object"),
    ("/api/v1/status", "this daemon: connection, profile, requests"),
];

/// What is done for a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// It is answered at once.
    Answer(Response),
    /// It is answered with this daemon's state.
    Status,
    /// It is answered with the switch's counters.
    Metrics,
    /// The switch is asked whether it is there.
    Health,
    /// The switch is asked this.
    Call(Call),
}

/// What is done for `request`; `may_change`: calls that change the switch are allowed.
pub(crate) fn route(request: &Request, may_change: bool) -> Action {
    match request.path.as_str() {
        "/" => to_read(request, || Action::Answer(index())),
        "/metrics" => to_read(request, || Action::Metrics),
        "/healthz" => to_read(request, || Action::Health),
        "/api/v1" | CALLS => to_read(request, || Action::Answer(calls(may_change))),
        "/api/v1/status" => to_read(request, || Action::Status),
        path => match path.strip_prefix(CALLS) {
            Some(name) => call(name, request, may_change),
            None => {
                let body = ErrorBody::new(ErrorCode::BadHttp, "there is nothing at this path");
                let paths = PATHS.map(|(path, _)| path).join(", ");
                let body = body.at("path").value(path).fix(format!("use one of {paths}"));
                Action::Answer(Response::with_status(Status::NotFound, &body))
            }
        },
    }
}

/// For what is there to be read and takes no arguments.
fn to_read(request: &Request, action: impl FnOnce() -> Action) -> Action {
    match request.method {
        Method::Get | Method::Head => action(),
        Method::Post => {
            let body = ErrorBody::new(ErrorCode::BadHttp, "nothing can be sent to this path");
            Action::Answer(wrong_method(&body.fix("use GET"), "GET, HEAD"))
        }
    }
}

fn wrong_method(error: &ErrorBody, allowed: &'static str) -> Response {
    Response::with_status(Status::MethodNotAllowed, error).allowing(allowed)
}

fn call(name: &str, request: &Request, may_change: bool) -> Action {
    if Call::effect_of(name) == Some(Effect::HandsOver) {
        let message = "this call's answer comes with a file, which HTTP can't carry";
        let body = ErrorBody::new(ErrorCode::NotAllowed, message).at("call").value(name);
        return Action::Answer(Response::error(&body.fix("use the switch's control socket")));
    }
    let refused = |changes| refuse_change(changes, name, request.method, may_change);
    // Before its arguments are looked at: they don't matter then.
    if let Some(response) = refused(Call::effect_of(name) == Some(Effect::Changes)) {
        return Action::Answer(response);
    }
    let read = match request.method {
        Method::Get | Method::Head => query::read_call(name, &request.query),
        Method::Post => posted(name, request),
    };
    match read {
        Err(error) => Action::Answer(Response::error(&error)),
        Ok(call) => match refused(call.changes()) {
            Some(response) => Action::Answer(response),
            None => Action::Call(call),
        },
    }
}

/// Why a call that `changes` something isn't made, if it isn't.
fn refuse_change(changes: bool, name: &str, by: Method, may_change: bool) -> Option<Response> {
    if changes && !may_change {
        let message = "this daemon only reads: over HTTP nothing is changed";
        let body = ErrorBody::new(ErrorCode::NotAllowed, message).at("call").value(name);
        let fix = "start holdfastd with --allow-apply, or use the command holdfast";
        return Some(Response::error(&body.fix(fix)));
    }
    if changes && by != Method::Post {
        let body = ErrorBody::new(ErrorCode::BadHttp, "what changes something needs a POST");
        let body = body.at("call").value(name).fix("send the arguments as JSON by POST");
        return Some(wrong_method(&body, "POST"));
    }
    None
}

fn posted(name: &str, request: &Request) -> Result<Call, ErrorBody> {
    const FIX: &str = "send the arguments as one JSON object, or nothing";
    if !request.query.is_empty() {
        let message = "a POST has its arguments in its body, not in its query";
        return Err(ErrorBody::new(ErrorCode::BadArgument, message).at("query").fix(FIX));
    }
    if request.body.iter().all(u8::is_ascii_whitespace) {
        return arguments_of(name, Value::Object(Map::new()));
    }
    let value: Value = serde_json::from_slice(&request.body).map_err(|error| {
        let message = format!("the body is no JSON: {error}");
        ErrorBody::new(ErrorCode::BadJson, message).at("body").fix(FIX)
    })?;
    if !value.is_object() {
        let body = ErrorBody::new(ErrorCode::BadJson, "the body is JSON but no object");
        return Err(body.at("body").fix(FIX));
    }
    arguments_of(name, value)
}

fn index() -> Response {
    let mut text = format!("holdfastd {}\n\n", env!("CARGO_PKG_VERSION"));
    for (path, what) in PATHS {
        text.push_str(&format!("{path:16}{what}\n"));
    }
    Response::text(text)
}

/// The answer to `GET /api/v1`.
#[derive(Debug, Serialize)]
struct CallsReply {
    version: &'static str,
    calls: Vec<CallEntry>,
}

#[derive(Debug, Serialize)]
struct CallEntry {
    call: &'static str,
    path: String,
    /// `never`, `always`, or with which argument it changes the switch.
    changes: &'static str,
    /// The methods it takes.
    methods: &'static [&'static str],
    /// Whether it may be made, as far as it only reads where it may change.
    allowed: bool,
}

fn calls(may_change: bool) -> Response {
    let entry = |name: &&'static str| {
        let effect = Call::effect_of(name)?;
        let (changes, methods): (_, &[&str]) = match effect {
            Effect::HandsOver => return None,
            Effect::Reads => ("never", &["GET", "HEAD", "POST"]),
            Effect::MayChange => ("with record", &["GET", "HEAD", "POST"]),
            Effect::Changes => ("always", &["POST"]),
        };
        let allowed = effect != Effect::Changes || may_change;
        Some(CallEntry { call: name, path: format!("{CALLS}{name}"), changes, methods, allowed })
    };
    let calls = Call::NAMES.iter().filter_map(entry).collect();
    Response::ok(&CallsReply { version: env!("CARGO_PKG_VERSION"), calls })
}

#[cfg(test)]
mod tests;
