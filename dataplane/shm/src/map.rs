//! The mapping: the only unsafe code here.
#![allow(unsafe_code)]

use nix::libc::c_void;
use nix::sys::mman::{mmap, munmap, MapFlags, ProtFlags};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// A memory file in our address space until it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<c_void>,
    words: usize,
}

// SAFETY: the mapping belongs to no thread, and its words are atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above; nobody can get at the memory but through atomics.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `words` words of `file`, which must be that long and stay so: the caller has
    /// seen its size and its seal against shrinking, or made both. To be written only where
    /// `writable`; words of a mapping that isn't may be loaded only, and only relaxed.
    pub(crate) fn new(file: impl AsFd, words: usize, writable: bool) -> nix::Result<Self> {
        let bytes = words.checked_mul(size_of::<AtomicU64>()).and_then(NonZeroUsize::new);
        let bytes = bytes.ok_or(nix::errno::Errno::EINVAL)?;
        let protection = match writable {
            true => ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            false => ProtFlags::PROT_READ,
        };
        // SAFETY: a new mapping at a place of the kernel's choice; nothing of ours lies there.
        let start = unsafe { mmap(None, bytes, protection, MapFlags::MAP_SHARED, file, 0) }?;
        Ok(Self { start, words })
    }

    /// Its words.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: `start` begins a mapping of `words` words that lasts as long as `self`, aligned
        // to a page; every bit pattern is a word; the file can't shrink (see `new`), and whoever
        // else has it mapped reads and writes it by atomics.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and `words` borrows from `self`: nobody holds a reference.
        let _ = unsafe { munmap(self.start, self.words * size_of::<AtomicU64>()) };
    }
}
