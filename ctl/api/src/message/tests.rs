use super::*;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// The example lines of the documentation: a request and its answer, over and over.
fn examples() -> Vec<(&'static str, &'static str)> {
    let mut lines = include_str!("../../README.md").lines().filter(|line| line.starts_with("{\""));
    let mut pairs = Vec::new();
    while let (Some(request), Some(response)) = (lines.next(), lines.next()) {
        pairs.push((request, response));
    }
    pairs
}

/// The reply is read as `T` and written again: nothing is lost, nothing is made up.
fn same<T: DeserializeOwned + Serialize>(ok: &Value) {
    let reply: T = serde_json::from_value(ok.clone()).unwrap();
    assert_eq!(serde_json::to_value(&reply).unwrap(), *ok);
}

fn check_reply(call: &Call, ok: &Value) {
    match call {
        Call::Ping(_) => same::<PongReply>(ok),
        Call::ShowPorts(_) => same::<PortsReply>(ok),
        Call::ShowClassify(_) => same::<ClassifyReply>(ok),
        Call::ShowPg(_) => same::<PgReply>(ok),
        Call::ShowQueue(_) => same::<QueueReply>(ok),
        Call::ShowPfc(_) => same::<PfcReply>(ok),
        Call::ShowEcn(_) => same::<EcnReply>(ok),
        Call::ShowBuffer(_) => same::<BufferReply>(ok),
        Call::ShowWatchdog(_) => same::<WatchdogReply>(ok),
        Call::ShowWaits(_) => same::<WaitsReply>(ok),
        Call::ShowFdb(_) => same::<FdbReply>(ok),
        Call::ShowProfile(_) => same::<ProfileReply>(ok),
        Call::ShowHost(_) => same::<HostReply>(ok),
        Call::Segment(_) => same::<SegmentReply>(ok),
        Call::WatermarkShow(_) => same::<WatermarkReply>(ok),
        Call::SetPg(_) | Call::SetWred(_) => same::<SetReply>(ok),
        Call::Preflight(_) => same::<PreflightReply>(ok),
        Call::Apply(_) => same::<ApplyReply>(ok),
        Call::Trace(_) => same::<TraceReply>(ok),
        Call::Events(_) => same::<EventsReply>(ok),
        Call::WatermarkClear(_)
        | Call::PortHold(_)
        | Call::PortRelease(_)
        | Call::PortAdd(_)
        | Call::PortRemove(_)
        | Call::FdbAdd(_)
        | Call::FdbDel(_) => same::<Done>(ok),
    }
}

#[test]
fn every_call_has_an_example_that_is_read_and_answered() {
    let mut seen = BTreeSet::new();
    for (request, response) in examples() {
        let parsed = Request::parse(request.as_bytes()).unwrap();
        assert_eq!(Request::parse(parsed.to_line().as_bytes()), Ok(parsed.clone()));
        seen.insert(parsed.call.name());
        let response: Response = serde_json::from_str(response).unwrap();
        assert_eq!(response.id, Some(parsed.id));
        match &response.outcome {
            Outcome::Ok(ok) => check_reply(&parsed.call, ok),
            Outcome::Error(body) => assert_eq!(body.code, ErrorCode::Refused),
        }
        let line = response.to_line();
        assert_eq!(serde_json::from_str::<Response>(line.trim_end()).unwrap(), response);
    }
    let names: BTreeSet<&str> = Call::NAMES.iter().copied().collect();
    assert_eq!(seen, names);
}

/// SPEC 11: HTTP is read-only by default. A new call that is counted to the wrong side shows here.
#[test]
fn what_changes_the_switch_is_known_of_every_call() {
    let changing: BTreeSet<&str> = examples()
        .into_iter()
        .map(|(request, _)| Request::parse(request.as_bytes()).unwrap().call)
        .filter(Call::changes)
        .map(|call| call.name())
        .collect();
    let expected = [
        "apply",
        "fdb_add",
        "fdb_del",
        "port_add",
        "port_hold",
        "port_release",
        "port_remove",
        "preflight",
        "set_pg",
        "set_wred",
        "trace",
        "watermark_clear",
    ];
    assert_eq!(changing, expected.into_iter().collect());
    let trace = |record| Call::Trace(Trace { record, ..Trace::default() });
    assert!(!trace(None).changes());
    assert!(trace(Some(Vec::new())).changes(), "it records nothing more from now on");
    for name in Call::NAMES {
        assert!(Call::effect_of(name).is_some(), "{name}");
    }
    assert_eq!(Call::effect_of("pong"), None);
}

fn refused(line: &str) -> (Option<u64>, ErrorBody) {
    let bad = Request::parse(line.as_bytes()).unwrap_err();
    (bad.id, bad.error)
}

#[test]
fn what_is_no_request_is_refused_by_kind() {
    let code = |line: &str| {
        let (id, error) = refused(line);
        (id, error.code)
    };
    assert_eq!(code("hello"), (None, ErrorCode::BadJson));
    assert_eq!(code(""), (None, ErrorCode::BadJson));
    assert_eq!(code("[1]"), (None, ErrorCode::BadJson));
    assert_eq!(code("{\"id\":7,\"call\":\"ping\"}"), (Some(7), ErrorCode::BadVersion));
    assert_eq!(code("{\"v\":2,\"id\":7,\"call\":\"ping\"}"), (Some(7), ErrorCode::BadVersion));
    assert_eq!(code("{\"v\":1,\"id\":-7,\"call\":\"ping\"}"), (None, ErrorCode::BadArgument));
    assert_eq!(code("{\"v\":1,\"id\":7}"), (Some(7), ErrorCode::BadArgument));
    assert_eq!(code("{\"v\":1,\"id\":7,\"call\":\"pong\"}"), (Some(7), ErrorCode::UnknownCall));
    assert_eq!(
        code("{\"v\":1,\"id\":7,\"call\":\"port_hold\"}"),
        (Some(7), ErrorCode::BadArgument)
    );
    assert_eq!(code("{\"v\":1,\"id\":7,\"call\":{\"a\":{},\"b\":{}}}").1, ErrorCode::BadArgument);
    assert_eq!(code("{\"v\":1,\"id\":7,\"call\":\"ping\",\"x\":1}").1, ErrorCode::BadArgument);
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(code(&nested), (None, ErrorCode::BadJson));
}

#[test]
fn a_misspelt_argument_and_a_bad_amount_are_named() {
    let (_, error) = refused("{\"v\":1,\"id\":1,\"call\":{\"show_pg\":{\"prot\":\"h1\"}}}");
    assert!(error.message.contains("`prot`"), "{error}");
    let (_, error) = refused("{\"v\":1,\"id\":1,\"call\":{\"set_pg\":{\"pg\":3,\"xoff\":\"5x\"}}}");
    assert_eq!(error.place.as_deref(), Some("call.set_pg"));
    assert!(error.message.contains("\"5x\" is not an XOFF watermark"), "{error}");
    assert!(error.fix.is_some_and(|fix| fix.starts_with("write cells")));
}

#[test]
fn an_error_reads_as_one_sentence() {
    let body = ErrorBody::new(ErrorCode::Refused, "too high")
        .at("pg.3.xoff")
        .value(9_000)
        .limit(8_191)
        .fix("lower it");
    assert_eq!(body.to_string(), "pg.3.xoff: too high (value 9000, limit 8191); lower it");
}

#[test]
fn whatever_is_wrong_with_a_line_is_said_with_what_to_do() {
    let request = |id: &str, call: &str| format!("{{\"v\":1,\"id\":{id},\"call\":{call}}}");
    let bad = |line: &str| Request::parse(line.as_bytes()).unwrap_err().error;
    for line in ["[]", "null", "7", "{}", "x", &request("1", "[\"ping\"]"), &request("1", "3")] {
        assert!(bad(line).fix.is_some(), "{line}: {}", bad(line));
    }
    for id in ["-1", "1.5", "\"1\""] {
        let error = bad(&request(id, "\"ping\""));
        assert!(error.message.contains("whole number from 0 on"), "{error}");
        assert_eq!(error.value.as_deref(), Some(id));
    }
}

#[test]
fn an_error_repeats_only_the_beginning_of_what_was_sent() {
    let long = "ä".repeat(100_000);
    let body = ErrorBody::new(ErrorCode::BadArgument, format!("unknown key {long}"));
    let line = Response::error(None, body.at(&*long).value(&long).fix("no")).to_line();
    assert!(line.len() < 4_096, "{} bytes", line.len());
    assert!(line.contains('…'));
}
