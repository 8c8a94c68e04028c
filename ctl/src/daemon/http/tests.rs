//! The connection driven by bytes and by a clock of the test's own.

use super::connection::{Due, BODY_TIME, HEAD_TIME, IDLE_TIME, LINGER_TIME, TAKE_TIME};
use super::request::{MAX_BODY, MAX_FIELDS, MAX_HEAD};
use super::{Connection, HostPolicy, Response, Step};
use proptest::prelude::*;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::{Duration, Instant};

mod refusals;

/// A connection to a server that answers with what it was asked.
struct Talk {
    connection: Connection,
    now: Instant,
    said: Vec<u8>,
    over: bool,
}

impl Talk {
    fn new() -> Self {
        let policy = Rc::new(HostPolicy::new(&["switch.example".to_owned()]));
        let (local, now) = (IpAddr::V4(Ipv4Addr::LOCALHOST), Instant::now());
        let connection = Connection::new(policy, local, now);
        Self { connection, now, said: Vec::new(), over: false }
    }

    fn hear(&mut self, bytes: &[u8]) {
        // As the socket is read: not while a request or an answer is under way.
        assert!(self.connection.wants_input() || self.over);
        self.connection.receive(bytes, self.now);
        self.go_on();
    }

    fn go_on(&mut self) {
        loop {
            self.take();
            match self.connection.step(self.now) {
                Step::Request(request) => {
                    let body = String::from_utf8_lossy(&request.body).into_owned();
                    let echo =
                        json!([format!("{:?}", request.method), request.path, request.query, body]);
                    self.connection.answer(&Response::ok(&echo), self.now);
                }
                Step::Refused(_) => {}
                Step::Nothing => break,
            }
        }
        self.take();
    }

    fn take(&mut self) {
        let output = self.connection.output().to_vec();
        self.said.extend_from_slice(&output);
        if !output.is_empty() && self.connection.took(output.len(), self.now) {
            self.over = true;
        }
    }

    /// Lets time go by; what ran out.
    fn wait(&mut self, time: Duration) -> Due {
        self.now += time;
        let due = self.connection.expire(self.now);
        self.take();
        due
    }

    /// What was said, without the dates.
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.said);
        text.lines()
            .filter(|line| !line.starts_with("Date: "))
            .fold(String::new(), |all, line| all + line.trim_end() + "\n")
    }

    fn statuses(&self) -> Vec<u16> {
        let text = self.text();
        let lines = text.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 "));
        lines.map(|line| line[..3].parse().unwrap()).collect()
    }
}

/// What is said to `bytes`, in one piece.
fn answer_to(bytes: impl AsRef<[u8]>) -> Talk {
    let mut talk = Talk::new();
    talk.hear(bytes.as_ref());
    talk
}

const GET: &str = "GET /a?b=c HTTP/1.1\r\nHost: localhost:9468\r\n\r\n";
const POST: &str = "POST /p HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
                    Content-Length: 7\r\n\r\n{\"a\":1}";

#[test]
fn requests_are_read_whole_and_answered_in_order_however_they_are_cut() {
    let head = GET.replace("GET", "HEAD");
    let stream = format!("\r\n{GET}{POST}{head}{POST}\r\n\r\n{GET}");
    let whole = answer_to(&stream).text();
    let bodies: Vec<&str> = whole.lines().filter(|line| line.starts_with("{\"ok\"")).collect();
    let (get, post) = (r#"["Get","/a","b=c",""]"#, r#"["Post","/p","","{\"a\":1}"]"#);
    let expected = [get, post, post, get].map(|body| format!("{{\"ok\":{body}}}"));
    assert_eq!(bodies, expected, "{whole}");
    for cut in 1..stream.len() {
        let mut talk = Talk::new();
        talk.hear(&stream.as_bytes()[..cut]);
        talk.hear(&stream.as_bytes()[cut..]);
        assert_eq!(talk.text(), whole, "cut at {cut}");
    }
    let mut talk = Talk::new();
    for byte in stream.as_bytes() {
        talk.hear(&[*byte]);
    }
    assert_eq!(talk.text(), whole, "byte by byte");
}

#[test]
fn an_answer_has_its_fields_and_head_only_the_length() {
    let text = answer_to(GET).text();
    let expected = "HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: 31\n\
                    X-Content-Type-Options: nosniff\nCache-Control: no-store\n\n\
                    {\"ok\":[\"Get\",\"/a\",\"b=c\",\"\"]}\n";
    let length = "{\"ok\":[\"Get\",\"/a\",\"b=c\",\"\"]}\n".len().to_string();
    assert_eq!(text, expected.replace("31", &length));
    assert!(String::from_utf8_lossy(&answer_to(GET).said).contains("\r\nDate: "));
    let head = answer_to(GET.replace("GET", "HEAD"));
    assert!(head.text().contains("Content-Length: 3"), "{}", head.text());
    assert!(head.said.ends_with(b"\r\n\r\n"), "{}", head.text());
}

#[test]
fn nothing_is_read_while_a_request_or_its_answer_is_under_way() {
    let mut talk = Talk::new();
    talk.connection.receive(GET.repeat(2).as_bytes(), talk.now);
    assert!(matches!(talk.connection.step(talk.now), Step::Request(_)));
    assert!(!talk.connection.wants_input());
    assert_eq!(talk.connection.step(talk.now), Step::Nothing, "the next one waits");
    assert_eq!(talk.connection.deadline(), None, "the switch has its own time");
    talk.connection.answer(&Response::text("a\n".into()), talk.now);
    assert!(!talk.connection.wants_input());
    assert_eq!(talk.connection.step(talk.now), Step::Nothing, "until the answer is taken");
    talk.go_on();
    assert_eq!(talk.statuses(), [200, 200]);
    assert!(talk.connection.wants_input());
}

#[test]
fn connections_are_kept_as_each_version_has_it() {
    let with = |version: &str, field: &str| {
        let talk = answer_to(format!("GET / {version}\r\nHost: localhost\r\n{field}\r\n{GET}"));
        (talk.statuses().len(), talk.over, talk.text().contains("Connection: close"))
    };
    assert_eq!(with("HTTP/1.1", ""), (2, false, false));
    assert_eq!(with("HTTP/1.1", "Connection: Close\r\n"), (1, true, true));
    assert_eq!(with("HTTP/1.1", "Connection: x, close\r\n"), (1, true, true));
    assert_eq!(with("HTTP/1.0", ""), (1, true, true));
    assert_eq!(with("HTTP/1.0", "Connection: keep-alive\r\n"), (1, true, true));
}

#[test]
fn a_client_that_ends_its_side_gets_all_its_answers() {
    let mut talk = Talk::new();
    talk.connection.receive(GET.repeat(3).as_bytes(), talk.now);
    talk.connection.end_of_input();
    assert!(matches!(talk.connection.step(talk.now), Step::Request(_)));
    assert!(!talk.connection.is_over());
    talk.connection.answer(&Response::text("a\n".into()), talk.now);
    assert!(!talk.connection.is_over());
    talk.go_on();
    assert_eq!(talk.statuses(), [200; 3]);
    assert!(talk.connection.is_over());
    let mut talk = answer_to(&GET[..20]);
    talk.connection.end_of_input();
    talk.go_on();
    assert!(talk.connection.is_over(), "the rest will never come");
}

#[test]
fn a_body_may_wait_for_a_word() {
    let (head, body) = POST.split_at(POST.len() - 7);
    let head = head.replace("Content-Length", "Expect: 100-Continue\r\nContent-Length");
    let mut talk = answer_to(&head);
    assert_eq!(talk.statuses(), [100]);
    talk.hear(body.as_bytes());
    assert_eq!(talk.statuses(), [100, 200]);
    let talk = answer_to(format!("{head}{body}"));
    assert_eq!(talk.statuses(), [200], "it didn't wait");
    let talk = answer_to(head.replace("100-Continue", "200-ok"));
    assert_eq!(talk.statuses(), [417]);
    let talk = answer_to(head.replace("Content-Length: 7", "Content-Length: 1048577"));
    assert_eq!(talk.statuses(), [413], "it isn't asked for what wouldn't be taken");
}

/// A head of so many bytes.
fn head_of(length: usize) -> String {
    let start = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ";
    format!("{start}{}\r\n\r\n", "x".repeat(length - start.len() - 4))
}

#[test]
fn a_head_has_16_kib_and_64_fields() {
    assert_eq!(MAX_HEAD, 16 * 1024);
    assert_eq!(answer_to(head_of(MAX_HEAD)).statuses(), [200]);
    let talk = answer_to(head_of(MAX_HEAD + 1));
    assert_eq!((talk.statuses(), talk.over), (vec![431], true));
    for endless in ["GET / HTTP/1.1\r\nHost: localhost\r\nX: ", "GET /", "GET"] {
        let mut talk = Talk::new();
        talk.hear(endless.as_bytes());
        for _ in 0..MAX_HEAD {
            if talk.over {
                break;
            }
            talk.hear(b"x");
        }
        let statuses = talk.statuses();
        assert!(statuses == [431] || statuses == [405], "{endless}: {statuses:?}");
        assert!(talk.over);
    }
    let fields = |count: usize| {
        format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "x: y\r\n".repeat(count - 1))
    };
    assert_eq!(answer_to(fields(MAX_FIELDS)).statuses(), [200]);
    assert_eq!(answer_to(fields(MAX_FIELDS + 1)).statuses(), [431]);
}

#[test]
fn a_body_has_one_mebibyte() {
    assert_eq!(MAX_BODY, 1024 * 1024);
    let post =
        |length: usize| POST.replace("h: 7", &format!("h: {length}")).replace("{\"a\":1}", "");
    let mut talk = answer_to(post(MAX_BODY));
    for _ in 0..64 {
        talk.hear(&[b' '; MAX_BODY / 64]);
    }
    assert_eq!(talk.statuses(), [200]);
    let talk = answer_to(post(MAX_BODY + 1));
    assert_eq!((talk.statuses(), talk.over), (vec![413], true));
    let huge = POST.replace("h: 7", "h: 99999999999999999999999999");
    assert_eq!(answer_to(huge).statuses(), [413]);
}

const MOMENT: Duration = Duration::from_millis(1);

#[test]
fn a_head_has_5_seconds_from_its_first_byte() {
    let mut talk = Talk::new();
    talk.now += Duration::from_secs(20);
    talk.hear(b"G");
    for byte in &GET.as_bytes()[1..5] {
        assert_eq!(talk.wait(Duration::from_secs(1)), Due::Nothing);
        talk.hear(&[*byte]);
    }
    assert_eq!(talk.wait(Duration::from_secs(1) - MOMENT), Due::Nothing);
    assert!(matches!(talk.wait(MOMENT), Due::Told(_)));
    assert_eq!((talk.statuses(), talk.over), (vec![408], true));
    // The next head of a connection, too, and one that is nothing but empty lines.
    let mut talk = answer_to(format!("{GET}GET"));
    assert_eq!(talk.wait(HEAD_TIME - MOMENT), Due::Nothing);
    assert!(matches!(talk.wait(MOMENT), Due::Told(_)));
    let mut talk = answer_to("\r\n\r\n");
    assert!(matches!(talk.wait(HEAD_TIME), Due::Told(_)));
}

#[test]
fn a_body_has_30_seconds_from_its_head() {
    let mut talk = answer_to(&POST[..POST.len() - 1]);
    assert_eq!(talk.wait(BODY_TIME - MOMENT), Due::Nothing);
    assert!(matches!(talk.wait(MOMENT), Due::Told(_)));
    assert_eq!((talk.statuses(), talk.over), (vec![408], true));
}

#[test]
fn an_idle_connection_has_30_seconds_and_says_nothing() {
    let mut talk = Talk::new();
    assert_eq!(talk.connection.idle_since(), Some(talk.now));
    assert_eq!(talk.wait(IDLE_TIME - MOMENT), Due::Nothing);
    assert!(matches!(talk.wait(MOMENT), Due::Over(_)));
    let mut talk = Talk::new();
    talk.wait(Duration::from_secs(20));
    talk.hear(GET.as_bytes());
    assert_eq!(talk.connection.idle_since(), Some(talk.now), "from its last answer");
    assert_eq!(talk.wait(IDLE_TIME - MOMENT), Due::Nothing);
    assert!(matches!(talk.wait(MOMENT), Due::Over(_)));
    assert_eq!(talk.statuses(), [200]);
}

#[test]
fn an_answer_that_nobody_takes_has_10_seconds() {
    let mut talk = Talk::new();
    talk.connection.receive(GET.as_bytes(), talk.now);
    assert!(matches!(talk.connection.step(talk.now), Step::Request(_)));
    talk.connection.answer(&Response::text("x".repeat(100)), talk.now);
    assert_eq!(talk.connection.idle_since(), None);
    for _ in 0..3 {
        talk.now += TAKE_TIME - MOMENT;
        assert_eq!(talk.connection.expire(talk.now), Due::Nothing);
        talk.connection.took(1, talk.now);
    }
    talk.now += TAKE_TIME;
    assert!(matches!(talk.connection.expire(talk.now), Due::Over(_)));
}

#[test]
fn after_its_last_answer_a_client_has_2_seconds_and_is_not_heard() {
    let mut talk = answer_to("\0\r\n\r\n");
    assert_eq!(talk.statuses(), [400]);
    assert!(talk.connection.wants_input(), "read and thrown away");
    talk.connection.receive(GET.as_bytes(), talk.now);
    talk.go_on();
    assert_eq!(talk.statuses(), [400]);
    assert_eq!(talk.wait(LINGER_TIME - MOMENT), Due::Nothing);
    assert!(matches!(talk.wait(MOMENT), Due::Over(_)));
}

#[test]
fn at_the_end_an_answer_is_the_last_one() {
    let mut talk = Talk::new();
    talk.connection.receive(GET.repeat(2).as_bytes(), talk.now);
    assert!(matches!(talk.connection.step(talk.now), Step::Request(_)));
    talk.connection.drain();
    assert!(talk.connection.is_served());
    talk.connection.answer(&Response::text("a\n".into()), talk.now);
    assert!(talk.connection.is_served());
    talk.go_on();
    assert!(!talk.connection.is_served());
    assert_eq!((talk.statuses(), talk.over), (vec![200], true));
}

/// Bytes that look like requests here and there.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        3 => proptest::collection::vec(any::<u8>(), 0..40),
        1 => Just(GET.as_bytes().to_vec()),
        1 => Just(POST.as_bytes().to_vec()),
        1 => (0..GET.len(), any::<u8>()).prop_map(|(at, byte)| {
            let mut bytes = GET.as_bytes().to_vec();
            bytes[at] = byte;
            bytes
        }),
        1 => (0..POST.len(), any::<u8>()).prop_map(|(at, byte)| {
            let mut bytes = POST.as_bytes().to_vec();
            bytes[at] = byte;
            bytes
        }),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"Content-Length: 5\r\n".to_vec()),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    /// SPEC 14: any byte string on the HTTP port.
    #[test]
    fn any_bytes_end_in_answers_or_in_the_end(bytes in noise(), cut in 1usize..64) {
        let mut talk = Talk::new();
        for part in bytes.chunks(cut) {
            if talk.over {
                break;
            }
            talk.hear(part);
        }
        // However it stands, it is over after each time has run out once.
        let mut ended = false;
        for _ in 0..3 {
            ended |= matches!(talk.wait(IDLE_TIME), Due::Over(_));
        }
        prop_assert!(ended);
        let statuses = talk.statuses();
        let (last, before) = statuses.split_last().unwrap_or((&200, &[]));
        prop_assert!(before.iter().all(|status| *status == 200), "{:?}", statuses);
        let known = [200, 400, 403, 405, 408, 411, 413, 415, 417, 421, 431, 501, 505];
        prop_assert!(known.contains(last), "{:?}", statuses);
        prop_assert!(talk.said.is_empty() || talk.said.starts_with(b"HTTP/1.1 "));
    }
}
