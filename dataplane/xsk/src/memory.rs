//! The memory of frames: one UMEM of 4096-byte chunks that every port and worker shares.
//!
//! A chunk's number is its index. Beside the UMEM lies a table with one descriptor a chunk: what
//! was received into it, kept as the kernel gave it, because xsk-rs makes none from an address.
//! A second table says which chunk holds the rest of a frame.

use crate::error::XskError;
use crate::netns;
use crate::pool::XskPool;
use crate::sizing::{Layout, CONTROL_CHUNKS, CONTROL_SLOTS};
use crate::socket::{self, Registration, Step, XskSocket};
use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use xsk_rs::{FrameDesc, Umem};

/// Bytes in a chunk: the size of a page, the largest that AF_XDP takes without huge pages.
pub const CHUNK_BYTES: usize = 4096;
/// Fragments that one frame can have: the head and what `MAX_SKB_FRAGS` allows.
pub const MAX_FRAGMENTS: usize = 18;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;
/// Lines of each received frame that are fetched ahead: all of one that fits an Ethernet MTU. What
/// the switch doesn't read, the kernel's copying does when the frame is sent.
const PREFETCHED_LINES: usize = 24;

/// No chunk follows.
const NONE: u32 = u32::MAX;

/// The chunk that an address lies in; one that is no chunk's if the address is absurd.
#[inline]
pub(crate) fn chunk_at(desc: &FrameDesc) -> u32 {
    u32::try_from(desc.addr() / CHUNK_BYTES).unwrap_or(NONE)
}

/// Whether a descriptor's data ends within the chunk that it starts in.
#[inline]
pub(crate) fn stays_in_chunk(desc: &FrameDesc) -> bool {
    let room = CHUNK_BYTES - desc.addr() % CHUNK_BYTES;
    desc.lengths().data() <= room
}

/// One chunk's descriptor. Aligned so that none lies in two cache lines.
#[repr(align(32))]
struct Slot(UnsafeCell<FrameDesc>);

const _: () = assert!(size_of::<Slot>() == 32, "two descriptors fill a cache line");

// SAFETY: a slot is written by `Shared::describe` only, whose caller is the chunk's only owner;
// everybody else who may look at it got the chunk through a ring that orders the two.
unsafe impl Sync for Slot {}

/// What ports and pools share.
pub(crate) struct Shared {
    umem: Umem,
    slots: Box<[Slot]>,
    next: Box<[AtomicU32]>,
    layout: Layout,
    /// Chunks for MAC control frames that no port has; touched when ports come and go only.
    control: Mutex<Vec<u32>>,
    /// Whether frames may be received and sent in fragments.
    fragments: bool,
    #[expect(dead_code, reason = "kept bound, because the UMEM is known by its descriptor")]
    anchor: Mutex<XskSocket>,
}

impl Shared {
    /// Chunks there are, those for control frames included.
    pub(crate) fn chunks(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Chunks for data frames: those for control frames have this number or a higher one.
    pub(crate) fn data_chunks(&self) -> u32 {
        self.layout.chunks()
    }

    /// The chunks at home at each worker.
    pub(crate) fn homes(&self) -> Vec<Range<u32>> {
        self.layout.homes()
    }

    /// The memory itself, for binding sockets and looking at frames.
    #[inline]
    pub(crate) fn umem(&self) -> &Umem {
        &self.umem
    }

    /// Whether frames may be received and sent in fragments (Linux 6.6).
    pub(crate) fn fragments(&self) -> bool {
        self.fragments
    }

    /// Has what was received fetched into this core's second cache, so that a burst waits for it
    /// once and not frame by frame: the kernel wrote it on another core. A descriptor that names no
    /// memory of ours does nothing.
    #[inline]
    pub(crate) fn prefetch(&self, desc: &FrameDesc) {
        #[cfg(target_arch = "x86_64")]
        if chunk_at(desc) < self.chunks() && stays_in_chunk(desc) {
            use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T1};
            // SAFETY: the bytes lie in a chunk of this UMEM; a prefetch only hints at an address.
            unsafe {
                let bytes = self.umem.data(desc).contents();
                for line in bytes.chunks(LINE_BYTES).take(PREFETCHED_LINES) {
                    _mm_prefetch(line.as_ptr().cast(), _MM_HINT_T1);
                }
            }
        }
    }

    /// Writes down what a chunk holds, the end of its frame for now. `desc` names this chunk and
    /// stays in it.
    ///
    /// # Safety
    /// The caller is the chunk's only owner.
    #[inline]
    pub(crate) unsafe fn describe(&self, chunk: u32, desc: FrameDesc) {
        debug_assert!(chunk_at(&desc) == chunk && stays_in_chunk(&desc));
        let place = chunk as usize;
        if let (Some(slot), Some(next)) = (self.slots.get(place), self.next.get(place)) {
            if desc.has_more_frames() {
                next.store(NONE, Ordering::Relaxed);
            }
            // SAFETY: nobody else looks at the slot, by the caller's promise.
            unsafe { *slot.0.get() = desc };
        }
    }

    /// Says in which chunk the frame of another one goes on. The owner of the frame only.
    #[inline]
    pub(crate) fn link(&self, chunk: u32, next: u32) {
        if let Some(place) = self.next.get(chunk as usize) {
            // Relaxed is enough: a chunk changes owner through a ring that orders this store.
            place.store(next, Ordering::Relaxed);
        }
    }

    /// What a chunk holds, `None` if there is no such chunk. For those who own the chunk, alone or
    /// with others.
    #[inline]
    pub(crate) fn desc(&self, chunk: u32) -> Option<FrameDesc> {
        // SAFETY: who owns a chunk knows that `describe` isn't called for it now.
        self.slots.get(chunk as usize).map(|slot| unsafe { *slot.0.get() })
    }

    /// The chunk that the frame of this one goes on in.
    #[inline]
    pub(crate) fn next(&self, chunk: u32) -> Option<u32> {
        if !self.desc(chunk)?.has_more_frames() {
            return None;
        }
        let next = self.next.get(chunk as usize)?.load(Ordering::Relaxed);
        (next != NONE).then_some(next)
    }

    /// Takes the reserved chunks of one port.
    pub(crate) fn take_control(&self) -> Option<Vec<u32>> {
        let mut free = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = free.len().checked_sub(CONTROL_SLOTS as usize)?;
        Some(free.split_off(kept))
    }

    /// Takes a closed port's reserved chunks back.
    pub(crate) fn give_control(&self, chunks: Vec<u32>) {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).extend(chunks);
    }
}

#[cfg(test)]
impl Shared {
    /// Makes a free chunk look like one with `len` received bytes, where xsk-rs puts them.
    pub(crate) fn compose(&self, chunk: u32, len: usize, next: Option<u32>) {
        let mut desc = self.desc(chunk).unwrap();
        // SAFETY: tests own the chunks that they compose.
        unsafe { self.umem.data_mut(&mut desc) }.cursor().set_pos(len);
        desc.set_options(u32::from(next.is_some()) * nix::libc::XDP_PKT_CONTD);
        // SAFETY: as above.
        unsafe { self.describe(chunk, desc) };
        if let Some(next) = next {
            self.link(chunk, next);
        }
    }
}

/// The memory of all frames of a switch. Cheap to clone; ports and pools keep it alive.
#[derive(Clone)]
pub struct Memory(pub(crate) Arc<Shared>);

impl Memory {
    /// Maps the memory and deals it out: one [`XskPool`] for each worker, in order, each with its
    /// home chunks free. Chunks for MAC control frames of every possible port come on top.
    ///
    /// # Errors
    /// [`XskError::Memory`] if the kernel has no such amount, or refuses to register it.
    pub fn new(layout: &Layout) -> Result<(Self, Vec<XskPool>), XskError> {
        let data = layout.chunks();
        let chunks = data + CONTROL_CHUNKS;
        let registered = netns::run_in_new(|| socket::register(chunks));
        let failed = |Step(step, source)| XskError::Memory { chunks, step, source };
        let Registration { umem, descs, anchor, fragments } =
            registered.and_then(|made| made).map_err(failed)?;
        let shared = Arc::new(Shared {
            umem,
            slots: descs.into_iter().map(|desc| Slot(UnsafeCell::new(desc))).collect(),
            next: (0..chunks).map(|_| AtomicU32::new(NONE)).collect(),
            layout: layout.clone(),
            control: Mutex::new((data..chunks).collect()),
            fragments,
            anchor: Mutex::new(anchor),
        });
        let pools = XskPool::for_workers(&shared);
        Ok((Self(shared), pools))
    }

    /// Chunks for data frames, all workers together.
    pub fn chunks(&self) -> u32 {
        self.0.layout.chunks()
    }
}

/// A set of chunks: which of them a port has lent to the kernel.
pub(crate) struct ChunkSet(Box<[u64]>);

impl ChunkSet {
    /// None of `chunks` chunks.
    pub(crate) fn new(chunks: u32) -> Self {
        Self(vec![0; chunks.div_ceil(64) as usize].into_boxed_slice())
    }

    /// Adds a chunk.
    #[inline]
    pub(crate) fn insert(&mut self, chunk: u32) {
        if let Some(word) = self.0.get_mut(chunk as usize / 64) {
            *word |= 1 << (chunk % 64);
        }
    }

    /// Takes a chunk out; `false` if it wasn't there.
    #[inline]
    pub(crate) fn remove(&mut self, chunk: u32) -> bool {
        let Some(word) = self.0.get_mut(chunk as usize / 64) else {
            return false;
        };
        let bit = 1 << (chunk % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// Takes all of them out.
    pub(crate) fn drain(&mut self) -> Vec<u32> {
        let mut found = Vec::new();
        for (n, word) in self.0.iter_mut().enumerate() {
            while *word != 0 {
                found.push(n as u32 * 64 + word.trailing_zeros());
                *word &= *word - 1;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_chunk_set_is_a_set(
            steps in proptest::collection::vec((0u32..200, any::<bool>()), 0..300),
        ) {
            let mut set = ChunkSet::new(200);
            let mut model = std::collections::BTreeSet::new();
            for (chunk, add) in steps {
                if add {
                    set.insert(chunk);
                    model.insert(chunk);
                } else {
                    prop_assert_eq!(set.remove(chunk), model.remove(&chunk));
                }
            }
            prop_assert_eq!(set.drain(), model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_frame_goes_on_where_its_descriptor_says_so() {
        let (memory, _pools) = Memory::new(&Layout::even(8, 1).unwrap()).unwrap();
        let shared = &memory.0;
        shared.compose(3, 3840, Some(5));
        shared.compose(5, 100, None);
        assert_eq!((shared.next(3), shared.next(5)), (Some(5), None));
        let desc = shared.desc(3).unwrap();
        assert_eq!((chunk_at(&desc), desc.lengths().data()), (3, 3840));
        assert!(stays_in_chunk(&desc));
        // A frame that was cut off ends where it was cut, whatever the chunk was before.
        // SAFETY: the chunk is in no ring.
        unsafe { shared.describe(3, desc) };
        assert_eq!(shared.next(3), None);
        // A chunk that isn't the head of a frame any more leads nowhere.
        shared.compose(3, 60, None);
        shared.link(3, 5);
        assert_eq!((shared.next(3), shared.next(1 << 30)), (None, None));
    }

    #[test]
    fn control_chunks_run_out_and_come_back() {
        let layout = Layout::even(64, 1).unwrap();
        let (memory, _pools) = Memory::new(&layout).unwrap();
        let ports = CONTROL_CHUNKS / CONTROL_SLOTS;
        let mut taken: Vec<_> = (0..ports).map(|_| memory.0.take_control().unwrap()).collect();
        assert!(memory.0.take_control().is_none());
        assert!(taken.iter().flatten().all(|chunk| *chunk >= memory.chunks()));
        memory.0.give_control(taken.remove(0));
        assert_eq!(memory.0.take_control().map(|c| c.len()), Some(CONTROL_SLOTS as usize));
    }
}
