//! The memory of frames: one area of 4096-byte chunks that every port and worker shares.
//!
//! A chunk's number is its index. Beside the area lies a table with one word a chunk that says
//! where in it the data starts, how long it is, and which chunk holds the rest of the frame. The
//! start isn't a constant: a driver or a program may move it, so it is kept as received.

use crate::error::XskError;
use crate::pool::XskPool;
use crate::sizing::{Layout, CONTROL_CHUNKS, CONTROL_SLOTS};
use holdfast_core::frame::MAX_CHUNKS;
use nix::sys::mman::{mmap_anonymous, munmap, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes in a chunk: the size of a page, the largest that AF_XDP takes without huge pages.
pub const CHUNK_BYTES: usize = 4096;
/// Fragments that one frame can have: the head and what `MAX_SKB_FRAGS` allows.
pub const MAX_FRAGMENTS: usize = 18;

const OFFSET_BITS: u32 = 13;
const LEN_BITS: u32 = 13;
const NEXT_AT: u32 = OFFSET_BITS + LEN_BITS;
const _: () = assert!(CHUNK_BYTES < 1 << OFFSET_BITS, "an offset must fit its field");
const _: () = assert!((MAX_CHUNKS as u64) < 1 << (64 - NEXT_AT), "next must fit its field");

/// One chunk's share of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// Where the data starts in the chunk, bytes.
    pub(crate) offset: u32,
    /// Bytes of data; offset and length stay within the chunk.
    pub(crate) len: u32,
    /// The chunk that the frame goes on in.
    pub(crate) next: Option<u32>,
}

impl Fragment {
    /// `None` if the data would leave the chunk.
    pub(crate) fn new(offset: u32, len: u32, next: Option<u32>) -> Option<Self> {
        let end = u64::from(offset) + u64::from(len);
        (end <= CHUNK_BYTES as u64).then_some(Self { offset, len, next })
    }

    fn pack(self) -> u64 {
        let next = self.next.map_or(0, |chunk| u64::from(chunk) + 1);
        u64::from(self.offset) | u64::from(self.len) << OFFSET_BITS | next << NEXT_AT
    }

    fn unpack(word: u64) -> Self {
        let field = |at: u32, bits: u32| ((word >> at) & ((1 << bits) - 1)) as u32;
        let next = (word >> NEXT_AT) as u32;
        Self {
            offset: field(0, OFFSET_BITS),
            len: field(OFFSET_BITS, LEN_BITS),
            next: next.checked_sub(1),
        }
    }
}

/// The mapping itself.
struct Area {
    base: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: the area is plain memory with no thread of its own. Who may touch which chunk is ruled
// by the ownership of chunk numbers, which `Shared::bytes` and `Shared::bytes_mut` state.
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

impl Area {
    fn map(chunks: u32) -> Result<Self, XskError> {
        let bytes = chunks as usize * CHUNK_BYTES;
        let length = NonZeroUsize::new(bytes).unwrap_or(NonZeroUsize::MIN);
        // SAFETY: an anonymous mapping at an address of the kernel's choice overlaps nothing.
        let mapped = unsafe {
            mmap_anonymous(
                None,
                length,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE,
            )
        };
        let base = mapped.map_err(|e| XskError::Memory { chunks, source: e.into() })?;
        Ok(Self { base, bytes })
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: `map` made exactly this mapping; sockets and pools hold the area by `Arc`, so
        // none is left that could use it.
        let _ = unsafe { munmap(self.base, self.bytes) };
    }
}

/// What ports and pools share.
pub(crate) struct Shared {
    area: Area,
    table: Box<[AtomicU64]>,
    layout: Layout,
    /// Chunks for MAC control frames that no port has; touched when ports come and go only.
    control: Mutex<Vec<u32>>,
}

impl Shared {
    /// Chunks there are, those for control frames included.
    pub(crate) fn chunks(&self) -> u32 {
        self.table.len() as u32
    }

    /// Chunks for data frames: those for control frames have this number or a higher one.
    pub(crate) fn data_chunks(&self) -> u32 {
        self.layout.chunks()
    }

    /// The chunks at home at each worker.
    pub(crate) fn homes(&self) -> Vec<Range<u32>> {
        self.layout.homes()
    }

    /// The first byte and the length of the area, for registering it with a socket.
    pub(crate) fn extent(&self) -> (u64, u64) {
        (self.area.base.as_ptr() as u64, self.area.bytes as u64)
    }

    /// Writes down what a chunk holds. The owner of the chunk only.
    #[inline]
    pub(crate) fn describe(&self, chunk: u32, fragment: Fragment) {
        if let Some(word) = self.table.get(chunk as usize) {
            // Relaxed is enough: a chunk changes owner through a ring that orders this store.
            word.store(fragment.pack(), Ordering::Relaxed);
        }
    }

    /// What a chunk holds, `None` if there is no such chunk.
    #[inline]
    pub(crate) fn fragment(&self, chunk: u32) -> Option<Fragment> {
        let word = self.table.get(chunk as usize)?;
        Some(Fragment::unpack(word.load(Ordering::Relaxed)))
    }

    /// The data in a chunk.
    ///
    /// # Safety
    /// Until the slice is gone nobody may write to the chunk: the caller owns it, or it holds a
    /// frame with several owners, which is immutable (SPEC 3.5).
    #[inline]
    pub(crate) unsafe fn bytes(&self, chunk: u32) -> &[u8] {
        let Some(Fragment { offset, len, .. }) = self.fragment(chunk) else {
            return &[];
        };
        // SAFETY: `fragment` found the chunk in the table, so it lies in the area, and `Fragment`
        // keeps offset + len within the chunk. Nobody writes to it by the caller's promise.
        unsafe {
            let at = self.area.base.as_ptr().cast::<u8>();
            std::slice::from_raw_parts(
                at.add(chunk as usize * CHUNK_BYTES + offset as usize),
                len as usize,
            )
        }
    }

    /// The data in a chunk, to change.
    ///
    /// # Safety
    /// The caller is the chunk's only owner: it is in no ring, and no other slice of it lives.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "who may write is ruled by ownership of the chunk")]
    pub(crate) unsafe fn bytes_mut(&self, chunk: u32) -> &mut [u8] {
        let Some(Fragment { offset, len, .. }) = self.fragment(chunk) else {
            return &mut [];
        };
        // SAFETY: in bounds as in `bytes`; exclusive by the caller's promise.
        unsafe {
            let at = self.area.base.as_ptr().cast::<u8>();
            std::slice::from_raw_parts_mut(
                at.add(chunk as usize * CHUNK_BYTES + offset as usize),
                len as usize,
            )
        }
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

/// The memory of all frames of a switch. Cheap to clone; ports and pools keep it alive.
#[derive(Clone)]
pub struct Memory(pub(crate) Arc<Shared>);

impl Memory {
    /// Maps the memory and deals it out: one [`XskPool`] for each worker, in order, each with its
    /// home chunks free. Chunks for MAC control frames of every possible port come on top.
    ///
    /// # Errors
    /// [`XskError::Memory`] if the kernel has no such amount.
    pub fn new(layout: &Layout) -> Result<(Self, Vec<XskPool>), XskError> {
        let data = layout.chunks();
        let chunks = data + CONTROL_CHUNKS;
        let empty = Fragment { offset: 0, len: 0, next: None }.pack();
        let shared = Arc::new(Shared {
            area: Area::map(chunks)?,
            table: (0..chunks).map(|_| AtomicU64::new(empty)).collect(),
            layout: layout.clone(),
            control: Mutex::new((data..chunks).collect()),
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
        fn a_fragment_survives_packing(
            offset in 0u32..=4096, len in 0u32..=4096, next in proptest::option::of(0..MAX_CHUNKS),
        ) {
            match Fragment::new(offset, len, next) {
                Some(fragment) => prop_assert_eq!(Fragment::unpack(fragment.pack()), fragment),
                None => prop_assert!(offset + len > 4096),
            }
        }

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
