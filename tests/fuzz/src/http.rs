//! A stream of bytes on the daemon's HTTP port (SPEC 11, 14).

// The daemon is a program without a library; its HTTP is pure, and compiled in here as it is.
#[allow(dead_code, unreachable_pub)]
#[path = "../../../ctl/src/daemon/http/mod.rs"]
mod daemon;

use daemon::connection::{BODY_TIME, HEAD_TIME, IDLE_TIME};
use daemon::{Connection, Due, HostPolicy, Method, Response, Step};
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// What an answer may say (SPEC 11, RFC 9110).
const STATUSES: [&str; 14] = [
    "200", "400", "403", "405", "408", "411", "413", "415", "417", "421", "431", "501", "505",
    "100",
];

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// One client and the daemon.
struct Talk {
    connection: Connection,
    now: Instant,
    said: Vec<u8>,
    asked: Vec<String>,
    refused: bool,
    over: bool,
}

/// Feeds the stream in one piece, and cut as its first byte says: what is asked and answered is the
/// same, and however it ends, it ends.
pub fn target(data: &[u8]) {
    let Some((cut, stream)) = data.split_first() else { return };
    let whole = talk(stream, stream.len().max(1));
    let parts = talk(stream, usize::from(*cut).max(1));
    assert_eq!(whole.asked, parts.asked, "requests depend on how they are cut");
    // A head that is wrong before its end is refused when it is read next, which is when it ends,
    // grows much, or its time is over: not at once where few bytes come at a time.
    let (all, some) = (whole.text(), parts.text());
    assert!(
        all == some || whole.refused && !parts.refused && all.starts_with(&some),
        "{all}\n{some}"
    );
    for end in [whole, parts] {
        check_end(end);
    }
}

fn talk(stream: &[u8], cut: usize) -> Talk {
    let policy = Rc::new(HostPolicy::new(&["switch.example".to_owned()]));
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let connection = Connection::new(policy, local, *START);
    let mut talk = Talk {
        connection,
        now: *START,
        said: Vec::new(),
        asked: Vec::new(),
        refused: false,
        over: false,
    };
    for part in stream.chunks(cut) {
        if talk.over {
            break;
        }
        assert!(talk.connection.wants_input(), "it doesn't listen and isn't over");
        talk.connection.receive(part, talk.now);
        talk.go_on();
    }
    talk
}

/// Time ends what is unfinished: every answer is one, only the last isn't a success.
fn check_end(mut talk: Talk) {
    let mut ended = false;
    for time in [HEAD_TIME, BODY_TIME, IDLE_TIME, IDLE_TIME] {
        ended |= talk.wait(time);
    }
    assert!(ended, "a connection that never ends");
    let text = talk.text();
    let statuses: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)).collect();
    assert!(statuses.iter().all(|status| STATUSES.contains(status)), "{statuses:?}");
    let (last, before) = statuses.split_last().unwrap_or((&"200", &[]));
    let fine = |status: &&str| matches!(*status, "200" | "100");
    assert!(before.iter().all(fine) && *last != "100" || statuses.len() < 2, "{statuses:?}");
    assert!(talk.said.is_empty() || talk.said.starts_with(b"HTTP/1.1 "));
}

impl Talk {
    fn go_on(&mut self) {
        loop {
            self.take();
            match self.connection.step(self.now) {
                Step::Request(request) => {
                    assert!(request.method == Method::Post || request.body.is_empty());
                    for (key, value) in form_urlencoded::parse(request.query.as_bytes()) {
                        assert!(key.len() + value.len() <= 3 * request.query.len());
                    }
                    let method = format!("{:?}", request.method);
                    self.asked.push(format!("{method} {} {}", request.path, request.query));
                    self.connection.answer(&Response::ok(&json!({})), self.now);
                }
                Step::Refused(refusal) => {
                    self.refused = true;
                    assert!(refusal.error.fix.is_some(), "{}", refusal.error);
                }
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

    fn wait(&mut self, time: Duration) -> bool {
        self.now += time;
        let due = self.connection.expire(self.now);
        self.take();
        matches!(due, Due::Over(_))
    }

    /// What was said, without the dates and without "go on", which depends on what has come.
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.said);
        let text = text.replace("HTTP/1.1 100 Continue\r\n\r\n", "");
        let lines = text.lines().filter(|line| !line.starts_with("Date: "));
        lines.fold(String::new(), |all, line| all + line + "\n")
    }
}
