//! From a switch's threads to a reader in shared memory (SPEC 11).

#![allow(clippy::unwrap_used, clippy::panic)] // A failed set-up fails the test.

use holdfast_core::counters::Traffic;
use holdfast_core::drop::DropReason;
use holdfast_core::ids::{PgId, QueueId};
use holdfast_shm::counters::{ControlBlock, PortBlock, SharedBlock, WorkerBlock, LAYOUT};
use holdfast_shm::directory::{Directory, PortEntry, ProfileEntry};
use holdfast_shm::layout::Layout;
use holdfast_shm::{Identity, Segment, SegmentError, SegmentReader};
use nix::fcntl::{fcntl, FcntlArg, SealFlag};
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::unistd::write;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

fn identity() -> Identity {
    Identity { pid: 4711, version: "0.1.0".to_owned(), started_unix_ns: 1 << 60, started_ns: 81 }
}

fn segment() -> (Segment, SegmentReader) {
    let segment = Segment::new(Layout::new(2).unwrap(), &identity()).unwrap();
    let reader = SegmentReader::new(segment.file().try_clone_to_owned().unwrap()).unwrap();
    (segment, reader)
}

#[test]
fn what_is_published_is_read() {
    let (mut segment, reader) = segment();
    assert_eq!((reader.identity(), reader.workers()), (&identity(), 2));
    assert_eq!(reader.port(5).unwrap(), None, "nothing was published yet");
    assert_eq!(reader.directory().unwrap(), Directory::default());
    assert_eq!(reader.control().unwrap(), ControlBlock::default());

    let mut port = PortBlock { written_ns: 9, up: true, ..PortBlock::default() };
    port.received = Traffic { frames: 3, bytes: 4_000 };
    port.dropped.add(DropReason::LossyIngress, 7);
    port.pgs[PgId::new(3).unwrap()].occupancy = [36, 4096, 1];
    port.queues[QueueId::new(7).unwrap()].marked = u64::MAX;
    let worker = WorkerBlock { steps: 5, ..WorkerBlock::default() };
    let mut shared = SharedBlock { fdb_entries: 2, ..SharedBlock::default() };
    shared.pools[1].lent = 77;
    let control = ControlBlock { applies_accepted: 1, applies_refused: 2 };
    let entry = PortEntry {
        name: "h\"1\n".to_owned(),
        speed_bits_per_second: 9,
        lossless: true,
        since_ns: 7,
    };
    let directory = Directory {
        switch: "lab".to_owned(),
        profile: ProfileEntry { name: "p".to_owned(), sha256: "51ab".to_owned(), generation: 3 },
        pools: vec!["lossless".to_owned()],
        ports: vec![None, Some(entry)],
    };
    segment.port(5).unwrap().publish(&port);
    segment.worker(1).unwrap().publish(&worker);
    segment.shared().unwrap().publish(&shared);
    let (mut names, mut done) = segment.control().unwrap();
    names.publish(&directory).unwrap();
    done.publish(&control);

    assert_eq!(reader.port(5).unwrap(), Some(port));
    assert_eq!(reader.port(4).unwrap(), None);
    assert_eq!(reader.worker(1).unwrap(), Some(worker));
    assert_eq!((reader.worker(0).unwrap(), reader.worker(2).unwrap()), (None, None));
    assert_eq!(reader.shared().unwrap(), Some(shared));
    assert_eq!(reader.control().unwrap(), control);
    assert_eq!(reader.directory().unwrap(), directory);
}

/// SPEC 11: when the dataplane is gone its last counters can still be shown.
#[test]
fn counters_outlive_their_switch() {
    let (mut segment, reader) = segment();
    segment.worker(0).unwrap().publish(&WorkerBlock { steps: 5, ..WorkerBlock::default() });
    drop(segment);
    assert_eq!(reader.worker(0).unwrap().unwrap().steps, 5);
}

/// Every copy says the same in all its words, whatever the reader's timing.
#[test]
fn copies_are_whole_while_they_are_written() {
    let (mut segment, reader) = segment();
    let mut writer = segment.port(0).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=50_000 {
                let mut port = PortBlock { written_ns: n, ..PortBlock::default() };
                port.queues[QueueId::new(7).unwrap()].marked = n;
                port.priorities.0[7].received.transitions = n;
                writer.publish(&port);
            }
            ended.store(true, Ordering::Release);
        });
        let (mut seen, mut last) = (0, 0);
        while !ended.load(Ordering::Acquire) {
            match reader.port(0) {
                Ok(Some(port)) => {
                    let n = port.written_ns;
                    assert_eq!(port.queues[QueueId::new(7).unwrap()].marked, n);
                    assert_eq!(port.priorities.0[7].received.transitions, n);
                    assert!(n >= last, "{n} after {last}");
                    (seen, last) = (seen + 1, n);
                }
                Ok(None) | Err(SegmentError::Restless) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert!(seen > 0, "no copy was read while they were written");
    });
    assert_eq!(reader.port(0).unwrap().unwrap().written_ns, 50_000);
}

fn memory_file(bytes: &[u8], seals: SealFlag) -> OwnedFd {
    let file = memfd_create("test", MFdFlags::MFD_ALLOW_SEALING).unwrap();
    assert_eq!(write(&file, bytes).unwrap(), bytes.len());
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).unwrap();
    file
}

/// A daemon that is handed something else says so, and lives (SPEC 14).
#[test]
fn what_isnt_a_segment_is_refused() {
    let all = SealFlag::F_SEAL_SHRINK
        | SealFlag::F_SEAL_GROW
        | SealFlag::F_SEAL_FUTURE_WRITE
        | SealFlag::F_SEAL_SEAL;
    let refused = |file| SegmentReader::new(file).unwrap_err().to_string();
    let header = |words: &[u64]| {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(4096, 0);
        bytes
    };
    let magic = u64::from_be_bytes(*b"holdfast");
    assert!(refused(memory_file(&header(&[magic, LAYOUT, 1]), SealFlag::F_SEAL_GROW))
        .contains("it isn't sealed"));
    assert!(refused(memory_file(b"", all)).contains("too short"));
    assert!(refused(memory_file(&[0; 100], all)).contains("too short"));
    assert!(refused(memory_file(&header(&[1, LAYOUT, 1]), all)).contains("first word"));
    assert!(refused(memory_file(&header(&[magic, LAYOUT, 0]), all)).contains("no workers"));
    assert!(refused(memory_file(&header(&[magic, LAYOUT, u64::MAX]), all)).contains("no workers"));
    assert!(refused(memory_file(&header(&[magic, LAYOUT, 1]), all)).contains("its size"));
    let mut other = header(&[magic, LAYOUT + 1, 1, 0, 0, 0, 5]);
    other[64..69].copy_from_slice(b"9.9.9");
    let text = refused(memory_file(&other, all));
    assert!(text.contains("holdfast-dataplane 9.9.9") && text.contains("one release"), "{text}");
    let folder: OwnedFd = std::fs::File::open("/").unwrap().into();
    assert!(matches!(SegmentReader::new(folder), Err(SegmentError::System(_))));
}
