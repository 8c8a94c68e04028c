//! The command line against a switch that answers with the documented examples.
// A test fails by panicking, in its own functions too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_api::line::LineBuffer;
use holdfast_api::message::{Call, ErrorBody, ErrorCode, Outcome, Request, Response};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc;
use tempfile::TempDir;

#[path = "cli/deadlock.rs"]
mod deadlock;

/// A switch that knows the examples of the API's documentation.
struct ExampleSwitch {
    folder: TempDir,
    asked: mpsc::Receiver<Call>,
}

type Answers = BTreeMap<&'static str, Outcome>;

fn examples() -> Answers {
    let text = include_str!("../api/README.md");
    let mut lines = text.lines().filter(|line| line.starts_with("{\""));
    let mut answers = BTreeMap::new();
    while let (Some(request), Some(response)) = (lines.next(), lines.next()) {
        let name = Request::parse(request.as_bytes()).unwrap().call.name();
        let response: Response = serde_json::from_str(response).unwrap();
        answers.entry(name).or_insert(response.outcome);
    }
    answers
}

impl ExampleSwitch {
    fn start() -> Self {
        Self::with(examples)
    }

    /// One that answers one of the calls with something else.
    fn answering(call: &'static str, reply: serde_json::Value) -> Self {
        Self::with(move || {
            let mut answers = examples();
            answers.insert(call, Outcome::Ok(reply.clone()));
            answers
        })
    }

    fn with(answers: impl Fn() -> Answers + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s.sock")).unwrap();
        let (sender, asked) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &sender, &answers);
            }
        });
        Self { folder, asked }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        command(&self.folder.path().join("s.sock"), arguments)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

fn serve(mut stream: UnixStream, asked: &mpsc::Sender<Call>, answers: &impl Fn() -> Answers) {
    let (mut buffer, mut chunk) = (LineBuffer::new(), [0u8; 4096]);
    loop {
        let count = stream.read(&mut chunk).unwrap_or(0);
        if count == 0 {
            return;
        }
        buffer.push(&chunk[..count]);
        while let Ok(Some(line)) = buffer.next_line() {
            let request = Request::parse(&line).unwrap();
            let held = matches!(&request.call, Call::PortHold(hold) if hold.port == "no-such");
            let outcome = if held {
                let body = ErrorBody::new(ErrorCode::UnknownPort, "there is no port \"no-such\"");
                Outcome::Error(body.at("port").fix("use one of h1, h2"))
            } else {
                answers().remove(request.call.name()).unwrap()
            };
            asked.send(request.call).unwrap();
            let answer = Response { id: Some(request.id), outcome };
            stream.write_all(answer.to_line().as_bytes()).unwrap();
        }
    }
}

fn command(socket: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.env("HOLDFAST_SOCKET", socket).env_remove("COLUMNS").args(arguments);
    command
}

fn holdfast(socket: &Path, arguments: &[&str]) -> Output {
    command(socket, arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn each_view_shows_its_numbers_to_a_person() {
    let switch = ExampleSwitch::start();
    let views: [(&[&str], &[&str]); 12] = [
        (&["show", "ports"], &["sw/veth1", "1G", "native copy, 1 q", "obeys", "ports --notes"]),
        (&["show", "ports", "--notes"], &["h1: peer: tx checksum offload off"]),
        (&["show", "classify"], &["trusts dscp", "neither"]),
        (&["show", "pg"], &["XOFF", "4100/12284", "12/3072", "Lossless frames lost: 0"]),
        (&["show", "queue"], &["4148", "6.39 MiB", "open"]),
        (&["show", "pfc"], &["4096 quanta (2.10 ms)", "mmu", "5 times, mean 20.0 us"]),
        (&["show", "ecn"], &["256", "1536", "0.200", "900"]),
        (&["show", "buffer"], &["26696 cells (6.52 MiB)", "Pool lossless", "12284"]),
        (&["show", "fdb"], &["02:00:00:00:00:01", "learned", "1.20 s", "1 of 16384"]),
        (
            &["show", "host"],
            &["veth", "1 of 1 bound", "tx-checksum-ip-generic", "0,1", "4.00 s ago"],
        ),
        (&["show", "profile"], &["Profile veth-lab-1g, generation 1", "lossless 16384"]),
        (&["watermark", "show"], &["pool", "lossless", "4100"]),
    ];
    for (arguments, expected) in views {
        let output = switch.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        for word in expected {
            assert!(text(&output).contains(word), "{arguments:?} lacks {word}:\n{}", text(&output));
        }
    }
}

/// A view's lines that belong to tables: behind a line drawn below a header, up to an empty one.
fn table_lines(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let drawn = |line: &str| line.starts_with('─');
    let below = |(at, line): (usize, &&str)| drawn(line).then_some(at);
    let starts: Vec<usize> = lines.iter().enumerate().filter_map(below).collect();
    let table = |start: &usize| lines.iter().skip(*start).take_while(|line| !line.is_empty());
    starts.iter().flat_map(table).copied().collect()
}

#[test]
fn tables_fit_into_80_columns_with_whole_words() {
    let switch = ExampleSwitch::start();
    let views = [
        "show ports",
        "show classify",
        "show pg",
        "show queue",
        "show pfc",
        "show ecn",
        "show buffer",
        "show fdb",
        "show profile",
        "show host",
        "watermark show",
    ];
    let words = |text: &str| {
        let words = table_lines(text).join(" ").replace('─', "");
        words.split_whitespace().map(str::to_owned).collect::<BTreeSet<String>>()
    };
    for view in views {
        let arguments: Vec<&str> = view.split(' ').collect();
        let narrow = text(&switch.command(&arguments).env("COLUMNS", "80").output().unwrap());
        let wide = text(&switch.command(&arguments).env("COLUMNS", "1000").output().unwrap());
        let lines = table_lines(&narrow);
        let longest = lines.iter().map(|line| line.trim_end().chars().count()).max();
        assert!((10..=80).contains(&longest.unwrap_or(0)), "{view}:\n{narrow}");
        assert!(words(&narrow).is_superset(&words(&wide)), "{view}:\n{narrow}\n{wide}");
    }
}

#[test]
fn one_ports_profile_is_shown_alone() {
    let switch = ExampleSwitch::start();
    let all = text(&switch.run(&["show", "profile"]));
    let name = all.split("\nPort ").nth(1).unwrap().split(':').next().unwrap();
    let one = text(&switch.run(&["show", "profile", name]));
    assert_eq!(one.matches("\nPort ").count(), 1, "{one}");
    let refused = switch.run(&["show", "profile", "no-such"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("there is no port \"no-such\"; use one of "), "{said}");
}

#[test]
fn a_held_ports_queues_are_held() {
    let Some(Outcome::Ok(mut reply)) = examples().remove("show_queue") else { panic!("example") };
    reply["queues"][0]["held"] = true.into();
    let switch = ExampleSwitch::answering("show_queue", reply);
    assert!(text(&switch.run(&["show", "queue"])).contains(" held "));
}

#[test]
fn an_empty_trace_says_so_where_no_program_reads() {
    let empty = serde_json::json!({ "events": [], "next": [0], "lost": 0, "recording": [] });
    let switch = ExampleSwitch::answering("trace", empty);
    let output = switch.run(&["trace", "--edges"]);
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(0), ""));
    let said = |output: Output| String::from_utf8(output.stderr).unwrap();
    assert!(said(output).contains("no edges yet"));
    assert!(said(switch.run(&["trace", "--drops"])).contains("recorded from now on"));
    assert_eq!(said(switch.run(&["trace", "--json"])), "");
    let output = ExampleSwitch::start().run(&["trace", "--edges"]);
    assert!(said(output).contains("CLOCK_MONOTONIC"));
}

#[test]
fn global_options_have_their_own_heading() {
    let help = text(&holdfast(Path::new("/nonexistent"), &["show", "pg", "--help"]));
    let global = help.split("Global options:").nth(1).unwrap();
    for option in ["--socket", "--name", "--json"] {
        assert!(global.contains(option), "{help}");
    }
}

#[test]
fn trace_shows_an_edge_with_its_account() {
    let switch = ExampleSwitch::start();
    let output = switch.run(&["trace", "--edges"]);
    let line = "81.000000100 h1 XOFF pg 3 by mmu: guaranteed 36 service 4096 headroom 0, \
                limit 12288, resume at 3072 cells";
    assert_eq!(text(&output).trim(), line);
}

/// The example is one page; the next is empty, and there the journal ends.
#[test]
fn events_are_shown_page_by_page_and_as_json_one_a_line() {
    let switch = ExampleSwitch::start();
    let output = switch.run(&["events", "--severity", "warn"]);
    let line = "2026-01-31T12:00:00.000000200Z warn  port h1: link down; its frames are dropped\n";
    assert_eq!(text(&output), line.repeat(2), "the example switch knows only this page");
    let asked: Vec<String> =
        switch.asked.try_iter().map(|call| serde_json::to_string(&call).unwrap()).collect();
    assert_eq!(
        asked,
        [r#"{"events":{"severity":"warn"}}"#, r#"{"events":{"since":9,"severity":"warn"}}"#,]
    );
    let output = text(&switch.run(&["events", "--json"]));
    let first: serde_json::Value = serde_json::from_str(output.lines().next().unwrap()).unwrap();
    assert_eq!((&first["seq"], &first["what"]["kind"]), (&8.into(), &"port_down".into()));
    let none = serde_json::json!({ "entries": [], "next": 9, "lost": 3 });
    let output = ExampleSwitch::answering("events", none).run(&["events"]);
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(0), ""));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("3 entries were overwritten") && said.contains("no such entries"));
}

#[test]
fn json_is_the_answer_as_it_came() {
    let switch = ExampleSwitch::start();
    for (name, arguments) in [
        ("show_pg", vec!["show", "pg", "--json"]),
        ("show_fdb", vec!["--json", "show", "fdb"]),
        ("trace", vec!["trace", "--json"]),
        ("port_hold", vec!["port", "hold", "h2", "--json"]),
    ] {
        let output = switch.run(&arguments);
        let Some(Outcome::Ok(expected)) = examples().remove(name) else { panic!("{name}") };
        let printed: serde_json::Value = serde_json::from_str(&text(&output)).unwrap();
        assert_eq!(printed, expected);
    }
}

#[test]
fn arguments_become_calls() {
    let switch = ExampleSwitch::start();
    let calls = [
        (
            "set pg 3 --port h1 --xoff 50% --alpha -2",
            r#"{"set_pg":{"port":"h1","pg":3,"xoff":"50%","alpha":-2}}"#,
        ),
        (
            "set wred 3 --kmin 128 --kmax 40KiB --pmax 0.5 --mark-at enqueue --not-ect pass",
            concat!(
                r#"{"set_wred":{"queue":3,"kmin":128,"kmax":"40960B","pmax":0.5,"#,
                r#""mark_at":"enqueue","not_ect":"pass"}}"#
            ),
        ),
        ("set wred 3 --off", r#"{"set_wred":{"queue":3,"off":true}}"#),
        (
            "fdb add 02:00:00:00:00:09 h2 --vlan 7",
            r#"{"fdb_add":{"mac":"02:00:00:00:00:09","vlan":7,"port":"h2"}}"#,
        ),
        ("fdb del 02:00:00:00:00:09", r#"{"fdb_del":{"mac":"02:00:00:00:00:09"}}"#),
        ("port release h2", r#"{"port_release":{"port":"h2"}}"#),
        ("watermark clear --port h1 --pg 3", r#"{"watermark_clear":{"port":"h1","pg":3}}"#),
        ("show queue h2 --queue 3", r#"{"show_queue":{"port":"h2","queue":3}}"#),
        ("trace --drops", r#"{"trace":{"max":4096,"kinds":["drop"],"record":["drop"]}}"#),
    ];
    for (line, expected) in calls {
        let output = switch.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(0), "{line}");
        let call = switch.asked.recv().unwrap();
        assert_eq!(serde_json::to_string(&call).unwrap(), expected, "{line}");
    }
}

#[test]
fn exit_codes_tell_refused_usage_and_unreachable_apart() {
    let switch = ExampleSwitch::start();
    let refused = switch.run(&["port", "hold", "no-such", "--json"]);
    assert_eq!(refused.status.code(), Some(1));
    let body: serde_json::Value = serde_json::from_str(&text(&refused)).unwrap();
    assert_eq!(body["error"]["code"], "unknown_port");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(said, "holdfast: port: there is no port \"no-such\"; use one of h1, h2\n");
    for wrong in [&["port", "hold"][..], &["set", "pg", "8", "--xoff", "1"], &["nonsense"], &[]] {
        assert_eq!(switch.run(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let nobody = holdfast(&switch.folder.path().join("none.sock"), &["show", "pg"]);
    assert_eq!(nobody.status.code(), Some(3));
}

/// JSON has no such numbers: they would reach the switch as `null`, which is "as it was".
#[test]
fn a_probability_is_one_before_it_is_sent() {
    let switch = ExampleSwitch::start();
    for pmax in ["nan", "inf", "1.5", "-0.1", "x"] {
        let output = switch.run(&["set", "wred", "3", &format!("--pmax={pmax}")]);
        assert_eq!(output.status.code(), Some(2), "{pmax}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("write a probability from 0 to 1"), "{said}");
    }
    assert!(switch.asked.try_recv().is_err(), "nothing is asked of the switch");
}

#[test]
fn assert_says_each_check_and_exits_by_the_verdict() {
    let switch = ExampleSwitch::start();
    let junit = switch.folder.path().join("verdict.xml");
    let file = junit.to_str().unwrap();
    let good = ["assert", "--violations", "0", "--lossless", "h1:3", "--junit", file];
    let output = switch.run(&good);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output).contains("3 of 3 checks hold"), "{}", text(&output));
    let written = std::fs::read_to_string(&junit).unwrap();
    assert!(written.contains("tests=\"3\"") && written.contains("failures=\"0\""), "{written}");
    let output = switch.run(&["assert", "--xoff", "6", "--violations", "0", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let verdict: serde_json::Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!(verdict["passed"], false);
    assert_eq!(verdict["checks"][1]["found"], "5");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "holdfast: 1 of 2 checks don't hold: xoff\n");
    for wrong in [&["assert"][..], &["assert", "--no-evidence"], &["assert", "--drops", "odd=1"]] {
        assert_eq!(switch.run(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let nobody = holdfast(&switch.folder.path().join("none.sock"), &good);
    assert_eq!(nobody.status.code(), Some(3));
    let written = std::fs::read_to_string(&junit).unwrap();
    assert!(written.contains("errors=\"1\"") && written.contains("no switch answers"), "{written}");
}

#[test]
fn every_command_has_an_example_in_its_help() {
    let none = Path::new("/nonexistent");
    let commands = [
        "",
        "run",
        "trace",
        "events",
        "assert",
        "doctor",
        "man",
        "import",
        "export",
        "completion",
        "show ports",
        "show classify",
        "show pg",
        "show queue",
        "show pfc",
        "show ecn",
        "show buffer",
        "show fdb",
        "show profile",
        "show host",
        "watermark show",
        "watermark clear",
        "port hold",
        "port release",
        "set pg",
        "set wred",
        "fdb add",
        "fdb del",
        "lint",
    ];
    for command in commands {
        let words = command.split(' ').filter(|word| !word.is_empty());
        let arguments: Vec<&str> = words.chain(["--help"]).collect();
        let output = holdfast(none, &arguments);
        assert!(text(&output).contains("Example: holdfast"), "{command}: {}", text(&output));
    }
    assert!(text(&holdfast(none, &["completion", "bash"])).contains("watermark"));
    assert!(text(&holdfast(none, &["man"])).contains(".TH holdfast 1"));
}
