use super::*;
use holdfast_api::message::Request as Line;
use std::collections::BTreeSet;

/// The documented examples: each call's name, arguments, and the call that they are.
fn examples() -> Vec<(String, Value, Call)> {
    let text = include_str!("../../../api/README.md");
    let lines = text.lines().filter(|line| line.starts_with("{\"v\""));
    lines
        .map(|line| {
            let call = Line::parse(line.as_bytes()).unwrap().call;
            let value: Value = serde_json::from_str(line).unwrap();
            let arguments = value["call"].get(call.name()).cloned();
            let arguments = arguments.unwrap_or_else(|| Value::Object(Map::new()));
            (call.name().to_owned(), arguments, call)
        })
        .collect()
}

fn get(path: &str, query: &str) -> Request {
    let (path, query) = (path.to_owned(), query.to_owned());
    Request { method: Method::Get, path, query, body: Vec::new() }
}

fn post(path: &str, body: &str) -> Request {
    let path = path.to_owned();
    Request { method: Method::Post, path, query: String::new(), body: body.into() }
}

fn query_of(arguments: &Value) -> String {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let words = list.iter().map(|item| item.as_str().map_or(item.to_string(), Into::into));
            words.collect::<Vec<String>>().join(",")
        }
        other => other.to_string(),
    };
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (key, value) in arguments.as_object().unwrap() {
        query.append_pair(key, &word(value));
    }
    query.finish()
}

fn status(action: &Action) -> Status {
    match action {
        Action::Answer(response) => response.status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_call_is_reached_by_post_and_every_reading_one_by_get() {
    let mut seen = BTreeSet::new();
    for (name, arguments, call) in examples() {
        let path = format!("/api/v1/{name}");
        let posted = route(&post(&path, &arguments.to_string()), true);
        if call.effect() == Effect::HandsOver {
            // HTTP can't carry its file.
            assert_eq!(status(&posted), Status::Forbidden, "{name}");
            assert_eq!(status(&route(&get(&path, ""), true)), Status::Forbidden, "{name}");
            seen.insert(name);
            continue;
        }
        assert_eq!(posted, Action::Call(call.clone()), "{name}");
        // Every argument can be written as a query, also of calls that aren't made so.
        assert_eq!(query::read_call(&name, &query_of(&arguments)), Ok(call.clone()), "{name}");
        let got = route(&get(&path, &query_of(&arguments)), true);
        let read_only = route(&post(&path, &arguments.to_string()), false);
        let read_only_get = route(&get(&path, &query_of(&arguments)), false);
        if call.changes() {
            assert_eq!(status(&got), Status::MethodNotAllowed, "{name}");
            assert_eq!(status(&read_only), Status::Forbidden, "{name}");
            assert_eq!(status(&read_only_get), Status::Forbidden, "{name}");
        } else {
            for action in [got, read_only, read_only_get] {
                assert_eq!(action, Action::Call(call.clone()), "{name}");
            }
        }
        seen.insert(name);
    }
    let names: BTreeSet<String> = Call::NAMES.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(seen, names);
}

#[test]
fn a_trace_is_read_unless_it_says_what_is_recorded() {
    let trace = |query: &str, may| route(&get("/api/v1/trace", query), may);
    assert!(matches!(trace("max=5", false), Action::Call(_)));
    assert_eq!(status(&trace("record=drop", false)), Status::Forbidden);
    assert_eq!(status(&trace("record=drop", true)), Status::MethodNotAllowed);
    assert_eq!(status(&trace("record=", false)), Status::Forbidden);
}

#[test]
fn a_refusal_says_how_it_is_allowed() {
    let Action::Answer(response) = route(&post("/api/v1/apply", "no JSON"), false) else {
        panic!("it was made");
    };
    let text = String::from_utf8(response.body).unwrap();
    assert!(text.contains("not_allowed") && text.contains("--allow-apply"), "{text}");
    let Action::Answer(response) = route(&get("/api/v1/apply", ""), true) else {
        panic!("it was made");
    };
    assert_eq!(response.allow, Some("POST"));
}

#[test]
fn wrong_arguments_are_named() {
    let answer = |request: Request| match route(&request, true) {
        Action::Answer(response) => {
            (response.status.code(), String::from_utf8(response.body).unwrap())
        }
        other => panic!("{other:?}"),
    };
    let path = "/api/v1/show_pg";
    for (body, word) in [
        ("[1]", "no object"),
        ("null", "no object"),
        ("{", "no JSON"),
        ("\u{0}", "no JSON"),
        ("{\"prot\":1}", "`prot`"),
        ("{\"pg\":\"3\"}", "expected u8"),
        ("{} {}", "no JSON"),
    ] {
        let (code, text) = answer(post(path, body));
        assert_eq!(code, 400, "{body}");
        assert!(text.contains(word), "{body}: {text}");
    }
    let deep = "[".repeat(1 << 20);
    assert_eq!(answer(post(path, &deep)).0, 400);
    for body in ["", " \r\n\t", "{}"] {
        assert!(matches!(route(&post(path, body), false), Action::Call(_)), "{body:?}");
    }
    let mut both = post(path, "{}");
    both.query = "pg=3".to_owned();
    assert_eq!(answer(both).0, 400);
    assert_eq!(answer(get("/api/v1/pong", "")).0, 404);
    assert_eq!(answer(post("/api/v1/pong", "")).0, 404);
    let (code, text) = answer(get("/api/v1/set_pg", "pg=3"));
    assert_eq!(code, 405, "{text}");
}

#[test]
fn paths_are_served_and_others_told_which_there_are() {
    assert_eq!(route(&get("/api/v1/status", ""), false), Action::Status);
    assert_eq!(route(&get("/healthz", ""), false), Action::Health);
    for path in ["/", "/api/v1", "/api/v1/"] {
        assert_eq!(status(&route(&get(path, ""), false)), Status::Ok, "{path}");
        assert_eq!(status(&route(&post(path, ""), true)), Status::MethodNotAllowed, "{path}");
    }
    for path in ["/x", "/api", "/api/v2", "/api/v1x", "//", "/..", "/healthz/"] {
        assert_eq!(status(&route(&get(path, ""), true)), Status::NotFound, "{path}");
    }
    let Action::Answer(index) = route(&get("/", ""), false) else { panic!("no index") };
    let text = String::from_utf8(index.body).unwrap();
    for (path, _) in PATHS {
        assert!(text.contains(path), "{path}: {text}");
    }
}

#[test]
fn the_list_says_which_calls_are_allowed() {
    let allowed = |may| {
        let Action::Answer(response) = route(&get("/api/v1", ""), may) else { panic!("no list") };
        let value: Value = serde_json::from_slice(&response.body).unwrap();
        let calls = value["ok"]["calls"].as_array().unwrap().clone();
        // All but the one that hands over a file.
        assert_eq!(calls.len(), Call::NAMES.len() - 1);
        let names = calls.iter().filter(|call| call["allowed"] == true);
        names.map(|call| call["call"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(allowed(true).len(), Call::NAMES.len() - 1);
    let reading = allowed(false);
    assert!(reading.contains(&"show_pg".to_owned()) && reading.contains(&"trace".to_owned()));
    assert!(!reading.contains(&"apply".to_owned()) && !reading.contains(&"port_hold".to_owned()));
}
