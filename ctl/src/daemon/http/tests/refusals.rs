//! What is refused, and with which status.

use super::{answer_to, GET, POST};

/// The one status of the answer to `request`; after a refusal the connection ends.
fn status(request: &str) -> u16 {
    let talk = answer_to(request);
    let statuses = talk.statuses();
    assert_eq!(statuses.len(), 1, "{request}: {}", talk.text());
    if statuses[0] != 200 {
        assert!(talk.over, "{request}");
        let text = talk.text();
        let body = text.lines().last().unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert!(body["error"]["fix"].is_string(), "{body}");
        assert_eq!(body["error"]["code"], "bad_http");
    }
    statuses[0]
}

fn host(value: &str) -> u16 {
    status(&GET.replace("Host: localhost:9468", value))
}

#[test]
fn the_host_decides_who_is_meant() {
    for ok in [
        "Host: localhost:9468",
        "host:LOCALHOST",
        "Host: 127.0.0.1",
        "Host: [::1]:80",
        "Host: switch.example:9468",
    ] {
        assert_eq!(host(ok), 200, "{ok}");
    }
    for foreign in
        ["Host: evil.example", "Host: evil.example:9468", "Host: 192.0.2.1", "Host: ", "Host: a b"]
    {
        assert_eq!(host(foreign), 421, "{foreign}");
    }
    assert_eq!(host("X: y"), 400, "none at all");
    assert_eq!(host("Host: localhost\r\nHost: localhost"), 400, "two of them");
    assert_eq!(status("GET / HTTP/1.0\r\n\r\n"), 400, "of the older version, too");
    // Who is asked for in the target is who is meant.
    assert_eq!(status(&GET.replace("/a?", "http://localhost/a?")), 200);
    assert_eq!(status(&GET.replace("/a?", "HTTP://evil.example/a?")), 421);
    assert_eq!(status(&GET.replace("/a?b=c", "http://localhost")), 200);
}

#[test]
fn a_page_of_another_origin_can_change_nothing() {
    let post = |fields: &str| status(&POST.replace("Content-Type: application/json", fields));
    let json = "Content-Type: application/json";
    assert_eq!(post(json), 200);
    assert_eq!(post("content-type: Application/JSON ; charset=utf-8"), 200);
    assert_eq!(post(&format!("{json}\r\nOrigin: http://127.0.0.1")), 200);
    for origin in ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:80", ""] {
        assert_eq!(post(&format!("{json}\r\nOrigin: {origin}")), 403, "{origin}");
    }
    // The origin is held against who was asked for, not against a Host that doesn't count then.
    let evil = POST.replace("Host: 127.0.0.1", "Host: evil");
    let to_us = evil.replacen(" /", " http://127.0.0.1/", 1);
    let from = |origin: &str| status(&to_us.replace(json, &format!("{json}\r\nOrigin: {origin}")));
    assert_eq!((from("http://evil"), from("http://127.0.0.1")), (403, 200));
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        assert_eq!(post(&format!("Content-Type: {kind}")), 415, "{kind}");
    }
    assert_eq!(post("X: y"), 415);
    assert_eq!(post(&format!("{json}\r\n{json}")), 400);
    let preflight = GET.replace("GET", "OPTIONS");
    assert_eq!(status(&preflight), 405, "no browser is told that it may");
}

#[test]
fn bodies_have_a_length_and_nothing_else() {
    let post = |fields: &str| status(&POST.replace("Content-Length: 7", fields));
    assert_eq!(post("Transfer-Encoding: chunked"), 411);
    assert_eq!(post("Transfer-Encoding: Chunked"), 411);
    assert_eq!(post("Transfer-Encoding: gzip"), 501);
    assert_eq!(post("Transfer-Encoding: gzip, chunked"), 501);
    assert_eq!(post("Transfer-Encoding: chunked\r\nContent-Length: 7"), 400);
    assert_eq!(post("Content-Length: 7\r\nContent-Length: 7"), 400);
    for length in ["", "x", "-1", "+7", "7, 7", "0x7", "7 7", "7.0"] {
        assert_eq!(post(&format!("Content-Length: {length}")), 400, "{length:?}");
    }
    let empty = POST.replace("Content-Length: 7\r\n", "").replace("{\"a\":1}", "");
    assert_eq!(status(&empty), 200, "without a length it is empty");
    let get = GET.replace("Host", "Content-Length: 3\r\nHost");
    assert_eq!(status(&format!("{get}abc")), 400);
}

#[test]
fn what_is_no_request_is_told_so() {
    assert_eq!(status("\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"), 400, "TLS");
    assert_eq!(status("hello\r\n\r\n"), 400);
    assert_eq!(status("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
    assert_eq!(status("GET / HTTP/0.9\r\n\r\n"), 505);
    assert_eq!(status("GET * HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400);
    assert_eq!(status("GET evil HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400);
    assert_eq!(status(&GET.replace("Host", " folded\r\nHost")), 400);
    assert_eq!(status(&GET.replace("Host", "a b: c\r\nHost")), 400);
    for method in ["DELETE", "PUT", "CONNECT", "TRACE", "get", "G"] {
        assert_eq!(status(&GET.replace("GET", method)), 405, "{method}");
    }
    let head = answer_to(GET.replace("GET", "HEAD").replace("localhost", "evil.example"));
    assert_eq!(head.statuses(), [421]);
    assert!(head.said.ends_with(b"\r\n\r\n"), "a refused HEAD has no body: {}", head.text());
    let text = answer_to(GET.replace("GET", "PUT")).text();
    assert!(text.contains("\nAllow: GET, HEAD, POST\n"), "{text}");
}
