//! The counters segment is handed over, and tells what the control thread knows.

use super::*;
use holdfast_shm::counters::LAYOUT;
use holdfast_shm::SegmentReader;
use rustix::net::{recvmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// Sends a line; returns the answer, and the files that came with it.
fn ask(stream: &mut UnixStream, line: &str) -> (Response, Vec<OwnedFd>) {
    stream.write_all(line.as_bytes()).unwrap();
    let (mut bytes, mut space) = ([0; 4096], [MaybeUninit::uninit(); 256]);
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut pieces = [IoSliceMut::new(&mut bytes)];
    let came = recvmsg(&*stream, &mut pieces, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
    let mut files = Vec::new();
    for message in control.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(these) => files.extend(these),
            _ => panic!("not a file"),
        }
    }
    let line = bytes.get(..came.bytes).unwrap().strip_suffix(b"\n").expect("a whole line");
    (serde_json::from_slice(line).unwrap(), files)
}

const SEGMENT: &str = "{\"v\":1,\"id\":9,\"call\":\"segment\"}\n";

fn segment(desk: &Desk) -> SegmentReader {
    let (response, mut files) = ask(&mut desk.stream(), SEGMENT);
    let Outcome::Ok(told) = response.outcome else { panic!("{response:?}") };
    let told: SegmentReply = serde_json::from_value(told).unwrap();
    assert_eq!((response.id, told.layout), (Some(9), format!("{LAYOUT:016x}")));
    let file = files.pop().expect("a file");
    assert_eq!(
        std::fs::File::from(file.try_clone().unwrap()).metadata().unwrap().len(),
        told.bytes
    );
    assert!(files.is_empty());
    SegmentReader::new(file).unwrap()
}

#[test]
fn the_segment_comes_with_its_answer_and_with_no_other() {
    let desk = Desk::new(1, 2);
    let names = segment(&desk).directory().unwrap();
    let ports: Vec<&str> = names.ports.iter().flatten().map(|port| &*port.name).collect();
    assert_eq!((names.switch.as_str(), ports), ("lab", vec!["p0", "p1"]));
    assert_eq!(names.pools, ["lossless", "lossy"]);
    assert!(names.ports[0].as_ref().unwrap().lossless);
    let mut stream = desk.stream();
    let files: Vec<usize> =
        (0..3).map(|n| ask(&mut stream, [PING, SEGMENT, PING][n]).1.len()).collect();
    assert_eq!(files, [0, 1, 0]);
}

const PING: &str = "{\"v\":1,\"id\":9,\"call\":\"ping\"}\n";

/// A worker that hangs doesn't keep anybody from its counters: nobody is asked.
#[test]
fn it_comes_although_a_worker_is_silent() {
    let desk = Desk::new(1, 2);
    desk.rig.deaf.store(true, Ordering::Relaxed);
    let begin = Instant::now();
    segment(&desk);
    assert!(begin.elapsed() < crate::mailbox::PATIENCE, "{:?}", begin.elapsed());
}

#[test]
fn it_follows_the_profile_in_force_and_counts_what_was_applied() {
    let desk = Desk::new(2, 2);
    let (segment, mut client) = (segment(&desk), desk.client());
    let shown = || {
        let done = segment.control().unwrap();
        (segment.directory().unwrap().profile, (done.applies_accepted, done.applies_refused))
    };
    let first = shown();
    assert_eq!((first.0.generation, first.1), (1, (0, 0)));
    let applied: ApplyReply = client.call(apply::call(&apply::profile(2000), true)).unwrap();
    assert_eq!(shown(), first, "a dry run");
    refused(client.call::<ApplyReply>(apply::call("name = 3", false)));
    assert_eq!(shown(), (first.0, (0, 1)));
    let done: ApplyReply = client.call(apply::call(&apply::profile(2000), false)).unwrap();
    let (profile, counts) = shown();
    assert_eq!((profile.name, profile.generation, counts), ("x2000".to_owned(), 2, (1, 1)));
    assert_eq!((&profile.sha256, profile.sha256 == done.sha256), (&applied.sha256, true));
    let xoff = XoffAmount::At(CellAmount::Cells(1500));
    let set = SetPg { pg: LOSSLESS, xoff: Some(xoff), ..SetPg::default() };
    let set: SetReply = client.call(Call::SetPg(set)).unwrap();
    assert_eq!(shown().0.generation, set.generation);
}
