//! The dataplane's side: it makes the memory file and hands out the right to write each block.

use crate::block::publish;
use crate::counters::{ControlBlock, LinkBlock, PortBlock, SharedBlock, WorkerBlock, LAYOUT};
use crate::directory::Directory;
use crate::layout::{Layout, DIRECTORY_WORDS, HEADER_WORDS};
use crate::map::Mapping;
use crate::words::Words;
use nix::fcntl::{fcntl, FcntlArg, SealFlag};
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::unistd::ftruncate;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// The first word: "holdfast" in ASCII.
pub(crate) const MAGIC: u64 = u64::from_be_bytes(*b"holdfast");
/// Longest version in the header.
const VERSION_BYTES: usize = 64;

/// No size may change, nobody else may map it to write, and no seal may come or go: only then can a
/// reader trust the size for as long as it looks (memfd_create(2), fcntl(2)).
pub(crate) const SEALS: SealFlag = SealFlag::F_SEAL_SHRINK
    .union(SealFlag::F_SEAL_GROW)
    .union(SealFlag::F_SEAL_FUTURE_WRITE)
    .union(SealFlag::F_SEAL_SEAL);

/// Whose counters they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The process.
    pub pid: u32,
    /// Its release.
    pub version: String,
    /// When it started, ns since 1970: counters begin at 0 there.
    pub started_unix_ns: u64,
    /// The same by `CLOCK_MONOTONIC`.
    pub started_ns: u64,
}

/// Places of the header's words.
pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const LAYOUT: usize = 1;
    pub(crate) const WORKERS: usize = 2;
    pub(crate) const PID: usize = 3;
    pub(crate) const STARTED_UNIX: usize = 4;
    pub(crate) const STARTED: usize = 5;
    pub(crate) const VERSION_LEN: usize = 6;
    pub(crate) const VERSION: usize = 8;
}

/// The memory file of a running switch. Each block has one writer, and each may be taken once.
#[derive(Debug)]
pub struct Segment {
    file: OwnedFd,
    layout: Layout,
    workers: Vec<Option<BlockWriter<WorkerBlock>>>,
    ports: Vec<Option<BlockWriter<PortBlock>>>,
    links: Vec<Option<BlockWriter<LinkBlock>>>,
    shared: Option<BlockWriter<SharedBlock>>,
    control: Option<(DirectoryWriter, BlockWriter<ControlBlock>)>,
}

impl Segment {
    /// Makes the memory file.
    ///
    /// # Errors
    /// The system's, where it has no memory or knows no seals.
    pub fn new(layout: Layout, identity: &Identity) -> io::Result<Self> {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = memfd_create("holdfast-counters", flags)?;
        let bytes = layout.words() * size_of::<u64>();
        ftruncate(&file, i64::try_from(bytes).map_err(io::Error::other)?)?;
        let mapping = Arc::new(Mapping::new(&file, layout.words(), true)?);
        fcntl(&file, FcntlArg::F_ADD_SEALS(SEALS))?;
        write_header(&mapping, layout, identity);
        let (workers, ports) = (0..layout.workers(), 0..holdfast_core::ids::MAX_PORTS);
        let directory = DirectoryWriter(BlockWriter::new(&mapping, layout.directory()));
        Ok(Self {
            workers: workers
                .map(|n| layout.worker(n).map(|place| BlockWriter::new(&mapping, place)))
                .collect(),
            ports: ports
                .clone()
                .map(|n| layout.port(n).map(|place| BlockWriter::new(&mapping, place)))
                .collect(),
            links: ports
                .map(|n| layout.link(n).map(|place| BlockWriter::new(&mapping, place)))
                .collect(),
            shared: Some(BlockWriter::new(&mapping, layout.shared())),
            control: Some((directory, BlockWriter::new(&mapping, layout.control()))),
            file,
            layout,
        })
    }

    /// The right to write a worker's block; `None` if it was taken, or there is no such worker.
    pub fn worker(&mut self, number: usize) -> Option<BlockWriter<WorkerBlock>> {
        self.workers.get_mut(number)?.take()
    }

    /// The right to write a port's block; `None` if it was taken, or there is no such port.
    pub fn port(&mut self, number: usize) -> Option<BlockWriter<PortBlock>> {
        self.ports.get_mut(number)?.take()
    }

    /// The right to write the block of a port's link; `None` if it was taken, or there is no such
    /// port.
    pub fn link(&mut self, number: usize) -> Option<BlockWriter<LinkBlock>> {
        self.links.get_mut(number)?.take()
    }

    /// The right to write what all share; `None` if it was taken.
    pub fn shared(&mut self) -> Option<BlockWriter<SharedBlock>> {
        self.shared.take()
    }

    /// The right to write the directory and the control thread's block; `None` if it was taken.
    pub fn control(&mut self) -> Option<(DirectoryWriter, BlockWriter<ControlBlock>)> {
        self.control.take()
    }

    /// The file, to hand over: whoever gets it can only read.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        (self.layout.words() * size_of::<u64>()) as u64
    }
}

fn write_header(mapping: &Mapping, layout: Layout, identity: &Identity) {
    let mut version = [0; VERSION_BYTES];
    let len = identity.version.len().min(VERSION_BYTES);
    version[..len].copy_from_slice(&identity.version.as_bytes()[..len]);
    let mut words = [0; HEADER_WORDS];
    words[header::LAYOUT] = LAYOUT;
    words[header::WORKERS] = layout.workers() as u64;
    words[header::PID] = u64::from(identity.pid);
    words[header::STARTED_UNIX] = identity.started_unix_ns;
    words[header::STARTED] = identity.started_ns;
    words[header::VERSION_LEN] = len as u64;
    for (word, bytes) in words[header::VERSION..].iter_mut().zip(version.chunks_exact(8)) {
        *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    words[header::MAGIC] = MAGIC;
    for (place, word) in mapping.words().iter().zip(words) {
        place.store(word, Ordering::Relaxed);
    }
}

/// The right to write one block. Not `Clone`: a block has one writer.
#[derive(Debug)]
pub struct BlockWriter<T> {
    mapping: Arc<Mapping>,
    place: Range<usize>,
    kind: PhantomData<fn(T)>,
}

impl<T> BlockWriter<T> {
    fn new(mapping: &Arc<Mapping>, place: Range<usize>) -> Self {
        Self { mapping: Arc::clone(mapping), place, kind: PhantomData }
    }

    fn words(&self) -> &[std::sync::atomic::AtomicU64] {
        self.mapping.words().get(self.place.clone()).unwrap_or_default()
    }
}

impl<T: Words> BlockWriter<T> {
    /// Publishes what the block says from now on. Never waits, allocates nothing.
    pub fn publish(&mut self, value: &T) {
        publish(self.words(), T::COUNT, |place| value.put(&mut |word| place.push(word)));
    }
}

/// The directory as a block: the length of a JSON text, then its bytes.
#[derive(Debug)]
pub(crate) struct DirectoryText;

/// The right to write the directory.
#[derive(Debug)]
pub struct DirectoryWriter(BlockWriter<DirectoryText>);

impl DirectoryWriter {
    /// Publishes the directory.
    ///
    /// # Errors
    /// If its text is longer than there is room for; the one before stays.
    pub fn publish(&mut self, directory: &Directory) -> io::Result<()> {
        let text = serde_json::to_vec(directory)?;
        let room = (DIRECTORY_WORDS - 1) * size_of::<u64>();
        if text.len() > room {
            let why = format!("the directory has {} bytes, there is room for {room}", text.len());
            return Err(io::Error::other(why));
        }
        publish(self.0.words(), DIRECTORY_WORDS, |place| {
            place.push(text.len() as u64);
            for bytes in text.chunks(size_of::<u64>()) {
                place.push(bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    fn segment() -> Segment {
        let identity = Identity { pid: 1, version: "0.1.0".to_owned(), ..Identity::default() };
        Segment::new(Layout::new(2).unwrap(), &identity).unwrap()
    }

    #[test]
    fn a_block_is_given_to_one_writer() {
        let mut segment = segment();
        assert!(segment.worker(1).is_some() && segment.port(63).is_some());
        assert!(segment.worker(1).is_none() && segment.port(63).is_none());
        assert!(segment.worker(2).is_none() && segment.port(64).is_none());
        assert!(segment.link(63).is_some() && segment.link(63).is_none());
        assert!(segment.link(64).is_none());
        assert!(segment.shared().is_some() && segment.shared().is_none());
        assert!(segment.control().is_some() && segment.control().is_none());
    }

    /// Who is given the file can neither write it, nor change its size, nor lift a seal.
    #[test]
    fn whoever_has_the_file_can_only_read() {
        let segment = segment();
        let file = segment.file();
        assert_eq!(Mapping::new(file, 8, true).unwrap_err(), Errno::EPERM);
        assert_eq!(nix::unistd::write(file, b"x").unwrap_err(), Errno::EPERM);
        assert_eq!(ftruncate(file, 0).unwrap_err(), Errno::EPERM);
        assert_eq!(ftruncate(file, 1 << 30).unwrap_err(), Errno::EPERM);
        let seals = fcntl(file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SEAL));
        assert_eq!(seals.unwrap_err(), Errno::EPERM);
        assert!(Mapping::new(file, 8, false).is_ok());
    }

    #[test]
    fn a_directory_that_is_too_long_leaves_the_one_before() {
        let mut segment = segment();
        let (mut writer, _) = segment.control().unwrap();
        let mut directory = Directory { switch: "lab".to_owned(), ..Directory::default() };
        writer.publish(&directory).unwrap();
        directory.pools = vec!["x".repeat(DIRECTORY_WORDS * 8)];
        assert!(writer.publish(&directory).unwrap_err().to_string().contains("room for 524280"));
        let reader = crate::SegmentReader::new(segment.file().try_clone_to_owned().unwrap());
        assert_eq!(reader.unwrap().directory().unwrap().switch, "lab");
    }
}
