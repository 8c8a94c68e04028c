//! A stream of bytes on the control socket: lines, requests, calls, answers (SPEC 11, 14).

use crate::profile::FACTS;
use holdfast_api::doc::Source;
use holdfast_api::line::LineBuffer;
use holdfast_api::message::{Call, ErrorBody, ErrorCode, Outcome, Request, Response};
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_core::ids::{PgId, QueueId};
use holdfast_plan::edit::{set_pg, set_wred, Edit};
use holdfast_plan::{resolve, PlanError, ProfilePlan};
use serde_json::Value;
use std::sync::LazyLock;

/// The profile that a switch runs when it is asked to change it.
static RUNNING: LazyLock<ProfilePlan> = LazyLock::new(|| {
    let text = include_str!("../../../deploy/profiles/veth-lab-10g.toml");
    let doc = ProfileDoc::load(&Source::new("running", text)).unwrap();
    resolve(&doc, &FACTS).unwrap()
});

/// Cuts the stream as its first byte says, and answers each line.
pub fn target(data: &[u8]) {
    let Some((cut, stream)) = data.split_first() else { return };
    let mut lines = LineBuffer::new();
    let mut got = Vec::new();
    for part in stream.chunks(usize::from(*cut).max(1)) {
        lines.push(part);
        while let Ok(Some(line)) = lines.next_line() {
            got.push(line);
        }
    }
    let mut expected: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    expected.pop();
    assert_eq!(got, expected, "lines depend on how they are cut");
    for line in stream.split(|byte| *byte == b'\n') {
        answer(line);
        read_answer(line);
    }
}

/// As the switch answers a line: what it says is itself one line, and is read as it was meant.
fn answer(line: &[u8]) {
    let (id, outcome) = match Request::parse(line) {
        Ok(request) => {
            check_request(&request);
            let done = call(&request.call);
            (Some(request.id), done.map_or_else(Outcome::Error, Outcome::Ok))
        }
        Err(bad) => {
            assert!(bad.error.fix.is_some(), "an error without a remedy: {}", bad.error);
            (bad.id, Outcome::Error(bad.error))
        }
    };
    let response = Response { id, outcome };
    let line = response.to_line();
    assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "{line:?}");
    let again: Response = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
    assert_eq!(again, response);
}

/// What a client reads of what claims to be an answer.
fn read_answer(line: &[u8]) {
    if let Ok(response) = serde_json::from_slice::<Response>(line) {
        let again: Response = serde_json::from_str(&response.to_line()).unwrap();
        let text = response.to_line();
        assert!(again == response || has_fraction(&text), "{text}");
    }
}

fn check_request(request: &Request) {
    let line = request.to_line();
    let again = Request::parse(line.as_bytes());
    let again = again.unwrap_or_else(|bad| panic!("{}: {line}", bad.error));
    assert!(again == *request || has_fraction(&line), "{line}: {again:?} {request:?}");
}

/// Numbers with a fraction aren't read to their last bit: serde_json says so.
fn has_fraction(line: &str) -> bool {
    fn within(value: &Value) -> bool {
        match value {
            Value::Number(number) => number.is_f64(),
            Value::Array(all) => all.iter().any(within),
            Value::Object(all) => all.values().any(within),
            _ => false,
        }
    }
    serde_json::from_str(line).is_ok_and(|value: Value| within(&value))
}

/// What the switch makes of a call before it asks a worker.
fn call(call: &Call) -> Result<Value, ErrorBody> {
    let (spec, names, terms) = (RUNNING.spec(), RUNNING.port_names(), RUNNING.headroom_terms());
    let edited = |edit: Result<Edit, PlanError>| {
        let edit = edit.map_err(ErrorBody::from)?;
        edit.profile(2)?;
        assert_eq!(edit.changed.is_empty(), edit.spec == *spec, "{:?}", edit.changed);
        Ok(Value::from(edit.changed))
    };
    match call {
        Call::SetPg(patch) => edited(set_pg(spec, names, terms, patch)),
        Call::SetWred(patch) => edited(set_wred(spec, names, patch)),
        Call::Apply(apply) => {
            let file = apply.file.clone().unwrap_or_else(|| "profile".to_owned());
            let source = Source::new(file, apply.profile.clone());
            let doc = ProfileDoc::load(&source)?;
            let plan = resolve(&doc, &FACTS);
            let plan = plan.map_err(|error| source.locate(error.finding(names)))?;
            Ok(Value::from(plan.notes().to_vec()))
        }
        Call::ShowPg(filter) => in_range(filter.pg.is_none_or(|pg| PgId::new(pg).is_some())),
        Call::ShowQueue(filter) => {
            in_range(filter.queue.is_none_or(|queue| QueueId::new(queue).is_some()))
        }
        _ => in_range(true),
    }
}

fn in_range(is: bool) -> Result<Value, ErrorBody> {
    let error = || ErrorBody::new(ErrorCode::BadArgument, "out of range").fix("use 0 to 7");
    is.then(|| Value::from(true)).ok_or_else(error)
}
