//! The connection against a socket of the test's own.

use super::session::{CALL_TIME, MAX_CALLS};
use super::*;
use holdfast_api::message::{Apply, Ping};
use mio::{Events, Poll};
use nix::sys::socket::{sendmsg, ControlMessage, MsgFlags};
use std::fs::File;
use std::io::{BufRead, BufReader, IoSlice, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};

struct Bench {
    _folder: tempfile::TempDir,
    listener: UnixListener,
    poll: Poll,
    upstream: Upstream<u32>,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let now = Instant::now();
        let upstream = Upstream::new(Box::new(move || Ok(path.clone())), Token(0), now);
        Self { _folder: folder, listener, poll: Poll::new().unwrap(), upstream, now }
    }

    fn step(&mut self) -> Vec<News<u32>> {
        let mut events = Events::with_capacity(8);
        self.poll.poll(&mut events, Some(Duration::from_millis(10))).unwrap();
        for event in &events {
            self.upstream.ready(event.is_readable(), event.is_writable());
        }
        self.upstream.step(self.poll.registry(), self.now)
    }

    fn steps_until(&mut self, count: usize) -> Vec<News<u32>> {
        let mut news = Vec::new();
        for _ in 0..500 {
            news.extend(self.step());
            if news.len() >= count {
                break;
            }
        }
        news
    }

    fn connect(&mut self) -> UnixStream {
        assert!(matches!(self.steps_until(1).as_slice(), [News::Connected]));
        self.listener.accept().unwrap().0
    }

    fn ping(&mut self, asker: u32) {
        self.upstream.call(Call::Ping(Ping {}), asker, self.now).unwrap();
    }
}

fn answers(news: Vec<News<u32>>) -> Vec<Answer<u32>> {
    let answer = |news| match news {
        News::Answer(answer) => answer,
        other => panic!("{other:?}"),
    };
    news.into_iter().map(answer).collect()
}

fn send_with(stream: &UnixStream, text: &str, file: &File) {
    let descriptors = [file.as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let parts = [IoSlice::new(text.as_bytes())];
    let sent = sendmsg::<()>(stream.as_raw_fd(), &parts, &rights, MsgFlags::empty(), None);
    assert_eq!(sent.unwrap(), text.len());
}

fn file_of(text: &str) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    file
}

fn content(descriptor: Option<OwnedFd>) -> Option<String> {
    let mut text = String::new();
    let mut file = File::from(descriptor?);
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    Some(text)
}

#[test]
fn answers_go_to_who_asked_in_whatever_order_they_come() {
    let mut bench = Bench::new();
    let mut switch = bench.connect();
    for asker in [10, 20, 30] {
        bench.ping(asker);
    }
    bench.step();
    let mut lines = BufReader::new(switch.try_clone().unwrap()).lines();
    let ids: Vec<u64> = (0..3)
        .map(|_| holdfast_api::message::Request::parse(lines.next().unwrap().unwrap().as_bytes()))
        .map(|request| request.unwrap().id)
        .collect();
    let line = |id: u64| format!("{{\"id\":{id},\"ok\":{{\"n\":{id}}}}}\n");
    let text = format!("{}{}{}", line(ids[2]), line(ids[0]), line(ids[1]));
    // Cut anywhere.
    for part in text.as_bytes().chunks(7) {
        switch.write_all(part).unwrap();
    }
    let answers = answers(bench.steps_until(3));
    let askers: Vec<u32> = answers.iter().map(|answer| answer.asker).collect();
    assert_eq!(askers, [30, 10, 20]);
    for (answer, id) in answers.iter().zip([ids[2], ids[0], ids[1]]) {
        assert_eq!(answer.outcome.as_ref().unwrap()["n"], id);
    }
}

#[test]
fn a_descriptor_comes_with_the_line_that_it_was_sent_with() {
    let mut bench = Bench::new();
    let mut switch = bench.connect();
    for asker in 1..=5 {
        bench.ping(asker);
    }
    bench.step();
    // One alone, one behind a line without, one whose line comes in two parts, one unasked.
    send_with(&switch, "{\"id\":1,\"ok\":1}\n", &file_of("one"));
    switch.write_all(b"{\"id\":2,\"ok\":2}\n").unwrap();
    send_with(&switch, "{\"id\":3,\"ok\":3}\n", &file_of("three"));
    send_with(&switch, "{\"id\":4,", &file_of("four"));
    switch.write_all(b"\"ok\":4}\n{\"id\":5,\"ok\":5}\n").unwrap();
    let came: Vec<(u32, Option<String>)> = answers(bench.steps_until(5))
        .into_iter()
        .map(|answer| (answer.asker, content(answer.descriptor)))
        .collect();
    let with = |asker, text: &str| (asker, Some(text.to_owned()));
    assert_eq!(came, [with(1, "one"), (2, None), with(3, "three"), with(4, "four"), (5, None)]);
}

#[test]
fn descriptors_that_nobody_asked_for_are_closed() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mut bench = Bench::new();
    let switch = bench.connect();
    bench.ping(1);
    bench.step();
    let file = file_of("x");
    let before = open();
    for _ in 0..50 {
        send_with(&switch, "{\"id\":99,\"ok\":1}\n", &file);
        send_with(&switch, "{\"id\":null,\"ok\"", &file);
        send_with(&switch, ":1}\n", &file);
        for _ in 0..4 {
            assert!(bench.step().is_empty());
        }
    }
    // Other tests of this process open files, too; but not a hundred at once.
    assert!(open() < before + 75, "{} of {before}", open());
}

#[test]
fn a_silent_switch_fails_the_call_and_the_connection_is_made_anew() {
    let mut bench = Bench::new();
    let _switch = bench.connect();
    bench.ping(1);
    bench.now += CALL_TIME / 2;
    bench.ping(2);
    bench.now += CALL_TIME / 2 - Duration::from_millis(1);
    assert!(bench.step().is_empty());
    assert_eq!(bench.upstream.deadline(), Some(bench.now + Duration::from_millis(1)));
    bench.now += Duration::from_millis(1);
    let news = bench.steps_until(3);
    let [News::Answer(first), News::Answer(second), News::Lost(why)] = news.as_slice() else {
        panic!("{news:?}");
    };
    let code = |answer: &Answer<u32>| answer.outcome.as_ref().unwrap_err().code;
    assert_eq!((first.asker, code(first)), (1, ErrorCode::Silent));
    assert_eq!((second.asker, code(second)), (2, ErrorCode::Unavailable));
    assert!(why.contains("ping") && why.contains("5 s"), "{why}");
    bench.now += FIRST_WAIT;
    assert!(matches!(bench.steps_until(1).as_slice(), [News::Connected]));
}

#[test]
fn it_tries_for_ever_and_waits_longer_each_time() {
    let mut bench = Bench::new();
    drop(bench.connect());
    assert!(matches!(bench.steps_until(1).as_slice(), [News::Lost(_)]));
    // It hung up without an answer: the next connection is no proof that it is well.
    let mut waits = Vec::new();
    for _ in 0..8 {
        let wait = bench.upstream.deadline().unwrap() - bench.now;
        waits.push(wait.as_millis());
        bench.now += wait - Duration::from_millis(1);
        assert!(bench.step().is_empty(), "not before");
        bench.now += Duration::from_millis(1);
        drop(bench.connect());
        assert!(matches!(bench.steps_until(1).as_slice(), [News::Lost(_)]));
    }
    assert_eq!(waits, [100, 200, 400, 800, 1600, 2000, 2000, 2000]);
    let refused = bench.upstream.call(Call::Ping(Ping {}), 1, bench.now).unwrap_err();
    assert_eq!(refused.1.code, ErrorCode::Unavailable);
    bench.now += LONGEST_WAIT;
    let mut switch = bench.connect();
    bench.ping(1);
    bench.step();
    let id = bench.upstream.next_id - 1;
    switch.write_all(format!("{{\"id\":{id},\"ok\":1}}\n").as_bytes()).unwrap();
    assert_eq!(answers(bench.steps_until(1)).len(), 1);
    drop(switch);
    bench.steps_until(1);
    assert_eq!(bench.upstream.deadline(), Some(bench.now + FIRST_WAIT), "it was well");
}

#[test]
fn what_is_no_answer_ends_the_connection_and_a_word_before_the_end_is_kept() {
    for garbage in ["hello\n".to_owned(), "[]\n".to_owned(), "x".repeat(2 << 20)] {
        let mut bench = Bench::new();
        let mut switch = bench.connect();
        bench.ping(1);
        std::thread::spawn(move || switch.write_all(garbage.as_bytes()));
        let news = bench.steps_until(2);
        let [News::Answer(answer), News::Lost(why)] = news.as_slice() else { panic!("{news:?}") };
        assert_eq!(answer.outcome.as_ref().unwrap_err().code, ErrorCode::Unavailable);
        assert!(why.contains("something else"), "{why}");
    }
    let mut bench = Bench::new();
    let mut switch = bench.connect();
    let body = ErrorBody::new(ErrorCode::Unavailable, "the switch has too many clients");
    switch.write_all(Response::error(None, body).to_line().as_bytes()).unwrap();
    drop(switch);
    bench.steps_until(1);
    let error = bench.upstream.last_error().unwrap();
    assert!(error.contains("too many clients"), "{error}");
}

#[test]
fn what_waits_is_bounded() {
    let mut bench = Bench::new();
    let _switch = bench.connect();
    for asker in 0..u32::try_from(MAX_CALLS).unwrap() {
        bench.ping(asker);
    }
    let (_, error) = bench.upstream.call(Call::Ping(Ping {}), 0, bench.now).unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable);
    let mut bench = Bench::new();
    let _switch = bench.connect();
    let apply = |length: usize| {
        Call::Apply(Apply { profile: "#".repeat(length), file: None, dry_run: false })
    };
    let (_, error) = bench.upstream.call(apply(1 << 20), 0, bench.now).unwrap_err();
    assert_eq!(error.code, ErrorCode::TooLong);
    let call = |upstream: &mut Upstream<u32>| upstream.call(apply(1_000_000), 0, bench.now);
    let taken = (0..20).take_while(|_| call(&mut bench.upstream).is_ok()).count();
    assert_eq!(taken, 8, "of 8 MiB");
}
