//! The daemon as a process, between HTTP clients and a switch of the test's own.
// A test fails by panicking, in its own functions too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "daemon/process.rs"]
mod process;
#[path = "daemon/switch.rs"]
mod switch;

use holdfast_api::last_good::sha256;
use nix::sys::signal::Signal;
use process::{ask, command, read_all, until, Daemon};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;
use switch::{State, Switch};

#[test]
fn calls_pass_and_what_changes_something_only_with_allow_apply() {
    let state = State::new();
    let daemon = Daemon::start(&[]);
    let _switch = Switch::start(&daemon.socket(), &state);
    daemon.until_healthy();
    let reply = daemon.get("/api/v1/show_queue?port=h1&queue=3");
    assert_eq!((reply.status, reply.body.as_str()), (200, "{\"ok\":{}}\n"));
    assert!(reply.head.contains("X-Content-Type-Options: nosniff"), "{}", reply.head);
    assert_eq!(daemon.post("/api/v1/show_queue", "{\"queue\":3}").status, 200);
    let reply = daemon.post("/api/v1/port_hold", "{\"port\":\"h1\"}");
    assert_eq!(reply.status, 403);
    assert!(reply.body.contains("--allow-apply"), "{}", reply.body);
    assert_eq!(daemon.get("/api/v1/port_hold?port=h1").status, 403);
    assert_eq!(daemon.get("/api/v1/trace?record=drop").status, 403);
    assert_eq!(state.lock().unwrap().calls, ["show_queue", "show_queue"], "nothing else was asked");
    assert_eq!(daemon.status()["may_change"], false);

    let daemon = Daemon::start(&["--allow-apply"]);
    let _switch = Switch::start(&daemon.socket(), &state);
    daemon.until_healthy();
    assert_eq!(daemon.post("/api/v1/port_hold", "{\"port\":\"h1\"}").status, 200);
    let reply = daemon.post("/api/v1/port_hold", "{\"port\":\"no-such\"}");
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (404, &"unknown_port".into()));
    assert_eq!(daemon.get("/api/v1/port_hold?port=h1").status, 405);
    assert_eq!(daemon.post("/api/v1/apply", "{\"profile\":\"a\"}").status, 200);
    state.lock().unwrap().refuses = true;
    assert_eq!(daemon.post("/api/v1/apply", "{\"profile\":\"b\"}").status, 409);
    assert_eq!(state.lock().unwrap().applied, ["a"]);
    let log = daemon.log();
    assert!(log.contains("port_hold over HTTP by 127.0.0.1:"), "{log}");
    until("the change is seen", || {
        (daemon.status()["running"]["sha256"] == sha256("a")).then_some(())
    });
}

#[test]
fn without_a_switch_it_serves_and_finds_it_when_it_comes_and_comes_again() {
    let state = State::new();
    let daemon = Daemon::start(&[]);
    for _ in 0..3 {
        let reply = daemon.get("/api/v1/ping");
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (503, &"unavailable".into()));
        assert_eq!(daemon.get("/healthz").status, 503);
        assert_eq!(daemon.get("/").status, 200);
        let switch = Switch::start(&daemon.socket(), &state);
        daemon.until_healthy();
        assert_eq!(daemon.status()["switch"]["connected"], true);
        assert_eq!(daemon.get("/api/v1/ping").status, 200);
        drop(switch);
        until("the loss is seen", || (daemon.get("/healthz").status == 503).then_some(()));
    }
    let status = daemon.status();
    assert_eq!(status["switch"]["connected"], false);
    assert!(status["switch"]["last_error"].is_string(), "{status}");
}

#[test]
fn a_release_that_differs_is_named() {
    let state = State::new();
    let daemon = Daemon::start(&[]);
    state.lock().unwrap().version = "0.0.9".to_owned();
    let _switch = Switch::start(&daemon.socket(), &state);
    let status = until("the switch is known", || {
        Some(daemon.status()).filter(|status| status["switch"]["version"].is_string())
    });
    assert_eq!(status["switch"]["version_differs"], true);
    assert_eq!(status["switch"]["version"], "0.0.9");
    assert!(daemon.log().contains("is release 0.0.9"), "{}", daemon.log());
}

/// A daemon with a desired profile of this text.
fn with_profile(text: &str) -> Daemon {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.toml");
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    Daemon::start_in(folder, &["--profile", &path])
}

fn until_tally(daemon: &Daemon, key: &str, count: u64) {
    until(key, || (daemon.status()["desired"][key] == count).then_some(()));
}

#[test]
fn the_desired_profile_is_applied_once_and_again_when_it_changes() {
    let state = State::new();
    let daemon = with_profile("a");
    let switch = Switch::start(&daemon.socket(), &state);
    until_tally(&daemon, "accepted", 1);
    assert_eq!(state.lock().unwrap().calls, ["apply", "apply"], "a dry run, then in earnest");
    drop(switch);
    let switch = Switch::start(&daemon.socket(), &state);
    let calls = || state.lock().unwrap().calls.len();
    until("it is compared again", || (calls() >= 3).then_some(()));
    daemon.until_healthy();
    assert_eq!(state.lock().unwrap().applied, ["a"], "it is in force");
    // Somebody else has put another one into force while we weren't there.
    drop(switch);
    state.lock().unwrap().running = "other".to_owned();
    let _switch = Switch::start(&daemon.socket(), &state);
    until_tally(&daemon, "accepted", 2);
    fs::write(daemon.path().join("p.toml"), "b").unwrap();
    daemon.signal(Signal::SIGHUP);
    until_tally(&daemon, "accepted", 3);
    assert_eq!(state.lock().unwrap().applied, ["a", "a", "b"]);
    let status = daemon.status();
    assert_eq!(status["desired"]["sha256"], sha256("b"));
    assert_eq!(status["desired"]["refused"], 0);
    until("the outcome is seen", || {
        (daemon.status()["running"]["sha256"] == sha256("b")).then_some(())
    });
}

#[test]
fn a_refused_profile_is_not_sent_again_until_somebody_asks() {
    let state = State::new();
    state.lock().unwrap().refuses = true;
    let daemon = with_profile("a");
    let switch = Switch::start(&daemon.socket(), &state);
    until_tally(&daemon, "refused", 1);
    drop(switch);
    let _switch = Switch::start(&daemon.socket(), &state);
    daemon.until_healthy();
    until("what is in force is seen again", || {
        let status = daemon.status();
        (status["running"]["seen_seconds_ago"].as_u64()? < 1).then_some(())
    });
    daemon.signal(Signal::SIGHUP);
    until_tally(&daemon, "refused", 2);
    assert_eq!(state.lock().unwrap().calls, ["apply", "apply"]);
    let status = daemon.status();
    assert_eq!(status["desired"]["accepted"], 0);
    assert_eq!(status["desired"]["problem"], "pg.3.xoff: XOFF is too high; lower it");
    let log = daemon.log();
    assert_eq!(log.matches("refused: pg.3.xoff: XOFF is too high").count(), 2, "{log}");
    // Another text is tried at once when asked.
    state.lock().unwrap().refuses = false;
    fs::write(daemon.path().join("p.toml"), "b").unwrap();
    daemon.signal(Signal::SIGHUP);
    until_tally(&daemon, "accepted", 1);
    assert!(daemon.status()["desired"]["problem"].is_null());
}

#[test]
fn a_profile_too_long_for_a_line_is_refused_once() {
    let state = State::new();
    // As JSON each line's end is two bytes.
    let daemon = with_profile(&"\n".repeat(600_000));
    let _switch = Switch::start(&daemon.socket(), &state);
    until_tally(&daemon, "refused", 1);
    let problem = daemon.status()["desired"]["problem"].to_string();
    assert!(problem.contains("longer than a line"), "{problem}");
    fs::write(daemon.path().join("p.toml"), "a").unwrap();
    daemon.signal(Signal::SIGHUP);
    until_tally(&daemon, "accepted", 1);
    assert_eq!(state.lock().unwrap().applied, ["a"]);
}

#[test]
fn without_a_profile_it_changes_nothing() {
    let state = State::new();
    let daemon = Daemon::start(&["--allow-apply"]);
    let _switch = Switch::start(&daemon.socket(), &state);
    daemon.until_healthy();
    daemon.signal(Signal::SIGHUP);
    until("SIGHUP is logged", || daemon.log().contains("no --profile").then_some(()));
    daemon.until_healthy();
    assert!(state.lock().unwrap().calls.is_empty());
    assert!(daemon.status()["desired"].is_null());
}

#[test]
fn answers_out_of_order_go_to_who_asked() {
    let state = State::new();
    let daemon = Daemon::start(&[]);
    let _switch = Switch::start(&daemon.socket(), &state);
    daemon.until_healthy();
    let mut first = daemon.connect();
    ask(&mut first, "/api/v1/show_pg?pg=1");
    until("the first is asked", || (!state.lock().unwrap().calls.is_empty()).then_some(()));
    // One that asks and goes away gets nobody else's answer, and nobody gets its.
    drop({
        let mut gone = daemon.connect();
        ask(&mut gone, "/api/v1/show_ports");
        gone
    });
    let second = daemon.get("/api/v1/show_pg?pg=2");
    assert_eq!(second.json()["ok"]["pg"], 2);
    assert_eq!(read_all(first).json()["ok"]["pg"], 1);
}

#[test]
fn a_silent_switch_is_an_error_and_other_paths_are_served_meanwhile() {
    let state = State::new();
    state.lock().unwrap().silent = true;
    let daemon = Daemon::start(&[]);
    let _switch = Switch::start(&daemon.socket(), &state);
    daemon.until_healthy();
    let mut waits = daemon.connect();
    ask(&mut waits, "/api/v1/show_ports");
    assert_eq!(daemon.get("/healthz").status, 200);
    let reply = read_all(waits);
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (504, &"silent".into()));
    daemon.until_healthy();
}

#[test]
fn the_65th_connection_gets_the_room_of_an_idle_one_or_is_told() {
    let daemon = Daemon::start(&[]);
    let mut idle: Vec<_> = (0..64).map(|_| daemon.connect()).collect();
    until("all are there", || {
        // This one makes room for itself once all are.
        (daemon.status()["http"]["connections"] == 64).then_some(())
    });
    let gone = |stream: &mut std::net::TcpStream| {
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        matches!(stream.read(&mut [0; 1]), Ok(0))
    };
    assert!(gone(&mut idle[0]), "the one that was idle longest made room");
    assert!(!gone(&mut idle[63]));
    drop(idle);
    let begin = || {
        let mut stream = daemon.connect();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: local").unwrap();
        stream
    };
    let mut busy: Vec<_> = (0..64).map(|_| begin()).collect();
    let told = until("one is turned away", || {
        // One of which nothing was read yet counts as idle and makes room: then this takes it.
        busy.push(begin());
        Some(daemon.get("/api/v1/status")).filter(|reply| reply.status != 200)
    });
    assert_eq!(told.status, 503);
    assert!(told.body.contains("too many connections"), "{}", told.body);
    drop(busy);
    until("there is room again", || (daemon.get("/").status == 200).then_some(()));
}

/// Who connects while there are no descriptors is served when there are some again, although
/// nobody else comes.
#[test]
fn who_waits_for_a_descriptor_is_served_when_there_is_one() {
    let daemon = Daemon::start(&[]);
    daemon.limit_descriptors(30);
    let idle: Vec<_> = (0..60).map(|_| daemon.connect()).collect();
    let mut waiting = daemon.connect();
    ask(&mut waiting, "/");
    until("it has run out", || daemon.log().contains("can be accepted").then_some(()));
    drop(idle);
    assert_eq!(read_all(waiting).status, 200);
}

#[test]
fn garbage_is_refused_without_a_line_of_log_each() {
    let daemon = Daemon::start(&[]);
    for number in 0..300u32 {
        let mut stream = daemon.connect();
        stream.write_all(&number.to_le_bytes()).unwrap();
        // It may have been refused already.
        let _ = stream.write_all(b"\x16\x03\x01 garbage\r\n\r\n");
        let _ = stream.read(&mut [0; 64]);
    }
    let answers = daemon.status()["http"]["answers"].clone();
    assert!(answers["400"].as_u64().unwrap() >= 290, "{answers}");
    let lines = daemon.log().lines().count();
    assert!(lines < 60, "{lines} lines");
}

#[test]
fn sigterm_finishes_what_is_under_way_and_ends_well() {
    let state = State::new();
    let mut daemon = Daemon::start(&[]);
    let switch = Switch::start(&daemon.socket(), &state);
    daemon.until_healthy();
    let mut waits = daemon.connect();
    ask(&mut waits, "/api/v1/show_pg?pg=1");
    let mut idle = daemon.connect();
    until("it is asked", || (!state.lock().unwrap().calls.is_empty()).then_some(()));
    // It is asked for the other one only just before the end, and answers both.
    let mut other = daemon.connect();
    ask(&mut other, "/api/v1/show_pg?pg=2");
    daemon.signal(Signal::SIGTERM);
    assert_eq!(read_all(waits).status, 200);
    assert_eq!(read_all(other).status, 200);
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(matches!(idle.read(&mut [0; 1]), Ok(0) | Err(_)));
    assert!(std::net::TcpStream::connect(("127.0.0.1", daemon.port)).is_err());
    drop(switch);
    // Without anything under way, too; and by SIGINT, with a call that gets no answer.
    let mut daemon = Daemon::start(&[]);
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.wait().code(), Some(0));
    state.lock().unwrap().silent = true;
    let mut daemon = Daemon::start(&[]);
    let _switch = Switch::start(&daemon.socket(), &state);
    daemon.until_healthy();
    ask(&mut daemon.connect(), "/api/v1/show_ports");
    daemon.signal(Signal::SIGINT);
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn only_names_that_were_given_are_served_and_an_open_address_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_on("0.0.0.0:0", folder, &["--host", "switch.example"]);
    for host in ["127.0.0.1", "localhost:1", "switch.example:9468"] {
        assert_eq!(daemon.status_at(host), 200, "{host}");
    }
    for host in ["evil.example", "192.0.2.1", "0.0.0.0"] {
        assert_eq!(daemon.status_at(host), 421, "{host}");
    }
    assert!(daemon.log().contains("is no loopback address: whoever reaches it reads everything"));
    assert!(!Daemon::start(&[]).log().contains("is no loopback address"));
}

#[test]
fn what_keeps_it_from_serving_is_said() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = command().args(["--listen", &address]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("holdfastd: {address} is in use")), "{text}");
    for wrong in [["--listen", "9468"], ["--listen", "localhost:1"], ["--no-such", "x"]] {
        let output = command().args(wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
    let help = command().arg("--help").output().unwrap();
    assert!(String::from_utf8(help.stdout).unwrap().contains("Example:"));
}
