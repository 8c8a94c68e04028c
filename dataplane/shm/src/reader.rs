//! The other side: whoever was handed the memory file reads the counters by it.

use crate::block::{read, Read};
use crate::counters::{ControlBlock, LinkBlock, PortBlock, SharedBlock, WorkerBlock, LAYOUT};
use crate::directory::Directory;
use crate::layout::{Layout, DIRECTORY_WORDS, HEADER_WORDS};
use crate::map::Mapping;
use crate::segment::{header, Identity, MAGIC, SEALS};
use crate::words::Words;
use nix::fcntl::{fcntl, FcntlArg, SealFlag};
use nix::sys::stat::fstat;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// A writer publishes every few milliseconds: a copy that was overwritten so often in a row while
/// it was taken is none of ours.
const TRIES: usize = 64;

/// Why there are no counters.
#[derive(Debug, Error)]
pub enum SegmentError {
    /// It can't be mapped.
    #[error("the counters can't be mapped: {0}")]
    System(#[from] nix::Error),
    /// It isn't the memory file of a switch.
    #[error("this isn't the counters segment of a holdfast-dataplane: {0}")]
    Foreign(&'static str),
    /// Another release wrote it.
    #[error(
        "the counters segment of holdfast-dataplane {theirs} has layout {layout:016x}, this is \
         release {ours} and reads layout {LAYOUT:016x}: run programs of one release",
        ours = env!("CARGO_PKG_VERSION")
    )]
    OtherLayout {
        /// The release of the dataplane.
        theirs: String,
        /// Its layout.
        layout: u64,
    },
    /// A block was overwritten each time it was read.
    #[error("a block of the counters changes faster than it can be read")]
    Restless,
    /// The directory isn't one.
    #[error("the directory of the counters can't be read: {0}")]
    Directory(#[from] serde_json::Error),
}

/// The counters of a running switch, to read. They stay readable when the switch is gone.
#[derive(Debug)]
pub struct SegmentReader {
    mapping: Mapping,
    layout: Layout,
    identity: Identity,
}

impl SegmentReader {
    /// Maps the file that a switch handed over.
    ///
    /// # Errors
    /// [`SegmentError`] for a file that isn't a segment, isn't sealed, or has another layout.
    pub fn new(file: OwnedFd) -> Result<Self, SegmentError> {
        let seals = fcntl(&file, FcntlArg::F_GET_SEALS)?;
        // Whoever could shrink it could kill us by that (SIGBUS).
        if !SealFlag::from_bits_retain(seals).contains(SEALS) {
            return Err(SegmentError::Foreign("it isn't sealed"));
        }
        let bytes = usize::try_from(fstat(&file)?.st_size).unwrap_or_default();
        let words = bytes / size_of::<u64>();
        if words < HEADER_WORDS {
            return Err(SegmentError::Foreign("it is too short"));
        }
        let mapping = Mapping::new(&file, words, false)?;
        let (layout, identity) = read_header(mapping.words())?;
        if layout.words() != words {
            return Err(SegmentError::Foreign("its size isn't what its header says"));
        }
        Ok(Self { mapping, layout, identity })
    }

    /// Whose counters they are.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// How many workers the switch has.
    pub const fn workers(&self) -> usize {
        self.layout.workers()
    }

    /// A worker's last copy; `None` before its first, or if there is no such worker.
    ///
    /// # Errors
    /// [`SegmentError::Restless`].
    pub fn worker(&self, number: usize) -> Result<Option<WorkerBlock>, SegmentError> {
        self.block(self.layout.worker(number))
    }

    /// A port's last copy; `None` before its first, or if there is no such port.
    ///
    /// # Errors
    /// [`SegmentError::Restless`].
    pub fn port(&self, number: usize) -> Result<Option<PortBlock>, SegmentError> {
        self.block(self.layout.port(number))
    }

    /// The last copy of what is known of a port's link; `None` before its first, or if there is no
    /// such port.
    ///
    /// # Errors
    /// [`SegmentError::Restless`].
    pub fn link(&self, number: usize) -> Result<Option<LinkBlock>, SegmentError> {
        self.block(self.layout.link(number))
    }

    /// The last copy of what all workers share; `None` before the first.
    ///
    /// # Errors
    /// [`SegmentError::Restless`].
    pub fn shared(&self) -> Result<Option<SharedBlock>, SegmentError> {
        self.block(Some(self.layout.shared()))
    }

    /// What the control thread did.
    ///
    /// # Errors
    /// [`SegmentError::Restless`].
    pub fn control(&self) -> Result<ControlBlock, SegmentError> {
        self.block(Some(self.layout.control())).map(Option::unwrap_or_default)
    }

    /// The names.
    ///
    /// # Errors
    /// [`SegmentError::Directory`] and [`SegmentError::Restless`].
    pub fn directory(&self) -> Result<Directory, SegmentError> {
        let Some(words) = self.copy(Some(self.layout.directory()), DIRECTORY_WORDS)? else {
            return Ok(Directory::default());
        };
        let len = words.first().map_or(0, |len| usize::try_from(*len).unwrap_or(usize::MAX));
        let bytes: Vec<u8> = words.iter().skip(1).flat_map(|word| word.to_le_bytes()).collect();
        Ok(serde_json::from_slice(bytes.get(..len).unwrap_or(&bytes))?)
    }

    fn block<T: Words>(&self, place: Option<Range<usize>>) -> Result<Option<T>, SegmentError> {
        let words = self.copy(place, T::COUNT)?;
        Ok(words.map(|words| T::from_words(&words)))
    }

    fn copy(
        &self,
        place: Option<Range<usize>>,
        words: usize,
    ) -> Result<Option<Vec<u64>>, SegmentError> {
        let Some(block) = place.and_then(|place| self.mapping.words().get(place)) else {
            return Ok(None);
        };
        let mut copy = vec![0; words];
        for _ in 0..TRIES {
            match read(block, &mut copy) {
                Read::Whole => return Ok(Some(copy)),
                Read::Empty => return Ok(None),
                Read::Overwritten => std::hint::spin_loop(),
            }
        }
        Err(SegmentError::Restless)
    }
}

fn read_header(words: &[AtomicU64]) -> Result<(Layout, Identity), SegmentError> {
    let word = |place: usize| words.get(place).map_or(0, |word| word.load(Ordering::Relaxed));
    if word(header::MAGIC) != MAGIC {
        return Err(SegmentError::Foreign("its first word is another"));
    }
    let len = usize::try_from(word(header::VERSION_LEN)).unwrap_or(usize::MAX);
    let bytes: Vec<u8> =
        (header::VERSION..HEADER_WORDS).flat_map(|place| word(place).to_le_bytes()).collect();
    let version = String::from_utf8_lossy(bytes.get(..len).unwrap_or(&bytes)).into_owned();
    let layout = word(header::LAYOUT);
    if layout != LAYOUT {
        return Err(SegmentError::OtherLayout { theirs: version, layout });
    }
    let workers = usize::try_from(word(header::WORKERS)).unwrap_or_default();
    let layout = Layout::new(workers);
    let layout = layout.ok_or(SegmentError::Foreign("its header names no workers"))?;
    let identity = Identity {
        pid: u32::try_from(word(header::PID)).unwrap_or_default(),
        version,
        started_unix_ns: word(header::STARTED_UNIX),
        started_ns: word(header::STARTED),
    };
    Ok((layout, identity))
}
