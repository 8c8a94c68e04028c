//! The four rings of an AF_XDP socket as cursors over memory shared with the kernel.
//!
//! An entry is written or read at a private position; [`ProducerRing::commit`] and
//! [`ConsumerRing::release`] publish that position. Nothing is reserved ahead: what was pushed is
//! what is published, so a slot can't be lost between the two.

use nix::libc::xdp_desc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Kernel's flag in a ring: it sleeps and must be woken by a system call.
const NEED_WAKEUP: u32 = nix::libc::XDP_RING_NEED_WAKEUP;

/// Where a ring lies: addresses within one mapping.
pub(crate) struct RingParts<T> {
    pub(crate) producer: *mut AtomicU32,
    pub(crate) consumer: *mut AtomicU32,
    pub(crate) flags: *mut AtomicU32,
    pub(crate) entries: *mut T,
    /// Entries, a power of two.
    pub(crate) size: u32,
    /// Keeps the mapping alive.
    #[expect(dead_code, reason = "held for its drop")]
    pub(crate) keep: Box<dyn Send>,
}

/// What both kinds of ring share.
struct Ring<T> {
    parts: RingParts<T>,
    mask: u32,
}

// SAFETY: a ring is the only user of its side of the mapping; its pointers stay valid as long as
// `keep` lives, on whatever thread. Entries are plain data.
unsafe impl<T: Copy> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// # Safety
    /// The pointers lie in a mapping that lives as long as `parts.keep`, `entries` has `size`
    /// places, `size` is a power of two, and no other ring of this process uses the same side.
    unsafe fn new(parts: RingParts<T>) -> Self {
        let mask = parts.size - 1;
        Self { parts, mask }
    }

    #[inline]
    fn producer(&self) -> &AtomicU32 {
        // SAFETY: valid as long as `keep`, which `self` owns; an atomic may be shared.
        unsafe { &*self.parts.producer }
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for `producer`.
        unsafe { &*self.parts.consumer }
    }

    #[inline]
    fn needs_wakeup(&self) -> bool {
        // SAFETY: as for `producer`.
        let flags = unsafe { &*self.parts.flags };
        flags.load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }

    #[inline]
    fn entry(&self, position: u32) -> *mut T {
        // SAFETY: the mask keeps the index below `size`, the number of places.
        unsafe { self.parts.entries.add((position & self.mask) as usize) }
    }
}

/// A ring that we fill: TX or fill.
pub(crate) struct ProducerRing<T> {
    ring: Ring<T>,
    /// Our position; ahead of the published one between a push and the commit.
    head: u32,
    /// The kernel's position when it was last read.
    tail: u32,
}

impl<T: Copy> ProducerRing<T> {
    /// # Safety
    /// As the parts of a ring that the kernel consumes; see [`RingParts`].
    pub(crate) unsafe fn new(parts: RingParts<T>) -> Self {
        // SAFETY: passed on to the caller.
        let ring = unsafe { Ring::new(parts) };
        let head = ring.producer().load(Ordering::Relaxed);
        let tail = ring.consumer().load(Ordering::Acquire);
        Self { ring, head, tail }
    }

    /// Free places, as of now.
    #[inline]
    pub(crate) fn free(&mut self) -> u32 {
        // Acquire: the kernel has read an entry before it lets us overwrite the place.
        self.tail = self.ring.consumer().load(Ordering::Acquire);
        self.ring.parts.size - self.head.wrapping_sub(self.tail)
    }

    /// Entries that the kernel hasn't taken yet, as of now.
    #[inline]
    pub(crate) fn waiting(&mut self) -> u32 {
        self.ring.parts.size - self.free()
    }

    /// Writes an entry at our position; `false`, and nothing done, if the ring is full.
    #[inline]
    pub(crate) fn push(&mut self, entry: T) -> bool {
        if self.head.wrapping_sub(self.tail) == self.ring.parts.size && self.free() == 0 {
            return false;
        }
        // SAFETY: the place is ours: not published yet, and the kernel is done with its last use.
        unsafe { self.ring.entry(self.head).write(entry) };
        self.head = self.head.wrapping_add(1);
        true
    }

    /// Publishes what was pushed.
    #[inline]
    pub(crate) fn commit(&mut self) {
        // Release: entries are visible before the position that covers them.
        self.ring.producer().store(self.head, Ordering::Release);
    }

    /// Whether the kernel must be woken to look at the ring.
    #[inline]
    pub(crate) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// A ring that we empty: RX or completion.
pub(crate) struct ConsumerRing<T> {
    ring: Ring<T>,
    /// Our position; ahead of the published one between a pop and the release.
    tail: u32,
    /// The kernel's position when it was last read.
    head: u32,
}

impl<T: Copy> ConsumerRing<T> {
    /// # Safety
    /// As the parts of a ring that the kernel produces; see [`RingParts`].
    pub(crate) unsafe fn new(parts: RingParts<T>) -> Self {
        // SAFETY: passed on to the caller.
        let ring = unsafe { Ring::new(parts) };
        let tail = ring.consumer().load(Ordering::Relaxed);
        Self { ring, tail, head: tail }
    }

    /// Entries that wait, as of now.
    #[inline]
    pub(crate) fn waiting(&mut self) -> u32 {
        // Acquire: the entries before this position are visible.
        self.head = self.ring.producer().load(Ordering::Acquire);
        self.head.wrapping_sub(self.tail)
    }

    /// Reads the next entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.head == self.tail && self.waiting() == 0 {
            return None;
        }
        // SAFETY: the place is published and not released, so the kernel leaves it alone.
        let entry = unsafe { self.ring.entry(self.tail).read() };
        self.tail = self.tail.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of what was popped back.
    #[inline]
    pub(crate) fn release(&mut self) {
        // Release: we have read the entries before the kernel may overwrite them.
        self.ring.consumer().store(self.tail, Ordering::Release);
    }
}

/// Descriptor of a frame or fragment.
pub(crate) fn descriptor(addr: u64, len: u32, more: bool) -> xdp_desc {
    xdp_desc { addr, len, options: if more { nix::libc::XDP_PKT_CONTD } else { 0 } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// Memory that stands in for the kernel's, with room for both positions and flags.
    struct Fake {
        words: *mut [AtomicU32; 3],
        entries: *mut [u64],
    }

    // SAFETY: plain memory, owned by this value.
    unsafe impl Send for Fake {}

    impl Drop for Fake {
        fn drop(&mut self) {
            // SAFETY: both came from `Box::into_raw` and are freed here only.
            unsafe {
                drop(Box::from_raw(self.words));
                drop(Box::from_raw(self.entries));
            }
        }
    }

    /// Parts of a ring whose positions start at `start`.
    fn parts(size: u32, start: u32) -> RingParts<u64> {
        let words = Box::into_raw(Box::new([start, start, 0].map(AtomicU32::new)));
        let entries = Box::into_raw(vec![0u64; size as usize].into_boxed_slice());
        let first = words.cast::<AtomicU32>();
        RingParts {
            producer: first,
            consumer: first.wrapping_add(1),
            flags: first.wrapping_add(2),
            entries: entries.cast::<u64>(),
            size,
            keep: Box::new(Fake { words, entries }),
        }
    }

    proptest! {
        /// Both ends over one memory against a queue, across the wrap of the 32-bit positions.
        #[test]
        fn a_ring_is_a_bounded_queue(
            start in prop_oneof![Just(0u32), Just(u32::MAX - 3)],
            steps in proptest::collection::vec((0u8..3, 0u32..12), 0..200),
        ) {
            let parts = parts(8, start);
            let twin = RingParts {
                producer: parts.producer, consumer: parts.consumer, flags: parts.flags,
                entries: parts.entries, size: parts.size, keep: Box::new(()),
            };
            // SAFETY: one ring a side; `producer` is dropped last and keeps the memory.
            let (mut producer, mut consumer) =
                unsafe { (ProducerRing::new(parts), ConsumerRing::new(twin)) };
            let mut model = VecDeque::new();
            let mut next = 0u64;
            for (what, times) in steps {
                match what {
                    0 => {
                        for _ in 0..times {
                            let fits = producer.push(next);
                            prop_assert_eq!(fits, model.len() < 8);
                            if fits {
                                model.push_back(next);
                                next += 1;
                            }
                        }
                        producer.commit();
                    }
                    1 => {
                        for _ in 0..times {
                            prop_assert_eq!(consumer.pop(), model.pop_front());
                        }
                        consumer.release();
                    }
                    _ => {
                        prop_assert_eq!(consumer.waiting() as usize, model.len());
                        prop_assert_eq!(producer.waiting() as usize, model.len());
                    }
                }
            }
            drop(consumer);
        }
    }

    #[test]
    fn nothing_is_seen_before_commit_or_lost_before_release() {
        let parts = parts(4, 0);
        let (published, taken) = (parts.producer, parts.consumer);
        // SAFETY: the pointers live as long as the ring below.
        let (published, taken) = unsafe { (&*published, &*taken) };
        // SAFETY: the only ring over these parts.
        let mut ring = unsafe { ProducerRing::new(parts) };
        assert!(ring.push(1) && ring.push(2));
        assert_eq!(published.load(Ordering::Relaxed), 0);
        ring.commit();
        assert_eq!(published.load(Ordering::Relaxed), 2);
        taken.store(2, Ordering::Relaxed);
        assert_eq!((ring.waiting(), ring.free()), (0, 4));
    }
}
