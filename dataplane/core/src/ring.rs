//! Single-producer, single-consumer ring of 64-bit words: how descriptors cross workers.
//!
//! The slots are atomics, so the ring needs no `unsafe` and loom can see inside. Publication is
//! the Release store of `tail`, taken by the consumer's Acquire load; likewise `head` backwards.

use crate::explorer::{seeded, Fault};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crossbeam::utils::CachePadded;
use std::sync::Arc;

struct Shared {
    slots: Box<[AtomicU64]>,
    /// Words taken so far; written by the consumer only.
    head: CachePadded<AtomicUsize>,
    /// Words put so far; written by the producer only.
    tail: CachePadded<AtomicUsize>,
}

/// The end that puts words in.
pub struct Producer {
    shared: Arc<Shared>,
    tail: usize,
    head_seen: usize,
}

/// The end that takes words out.
pub struct Consumer {
    shared: Arc<Shared>,
    head: usize,
    tail_seen: usize,
}

/// A ring for at least `capacity` words (rounded up to a power of two, at least 2).
///
/// Where the number of words in existence is bounded by `capacity`, [`Producer::push`] can't fail:
/// that is how hand-over rings are sized (DESIGN law 2).
pub fn spsc(capacity: usize) -> (Producer, Consumer) {
    let size = capacity.max(2).next_power_of_two();
    let shared = Arc::new(Shared {
        slots: (0..size).map(|_| AtomicU64::new(0)).collect(),
        head: CachePadded::new(AtomicUsize::new(0)),
        tail: CachePadded::new(AtomicUsize::new(0)),
    });
    let producer = Producer { shared: Arc::clone(&shared), tail: 0, head_seen: 0 };
    (producer, Consumer { shared, head: 0, tail_seen: 0 })
}

impl Producer {
    /// Puts a word in.
    ///
    /// # Errors
    /// The word back, if the ring is full.
    #[inline]
    pub fn push(&mut self, word: u64) -> Result<(), u64> {
        let slots = &self.shared.slots;
        if self.tail.wrapping_sub(self.head_seen) == slots.len() {
            self.head_seen = self.shared.head.load(Ordering::Acquire);
            if self.tail.wrapping_sub(self.head_seen) == slots.len() {
                return Err(word);
            }
        }
        slots[self.tail & (slots.len() - 1)].store(word, Ordering::Relaxed);
        self.tail = self.tail.wrapping_add(1);
        let publish =
            if seeded(Fault::RelaxedPublish) { Ordering::Relaxed } else { Ordering::Release };
        self.shared.tail.store(self.tail, publish);
        Ok(())
    }
}

impl Consumer {
    /// Takes the oldest word out, `None` if there is none.
    #[inline]
    pub fn pop(&mut self) -> Option<u64> {
        if self.head == self.tail_seen {
            self.tail_seen = self.shared.tail.load(Ordering::Acquire);
            if self.head == self.tail_seen {
                return None;
            }
        }
        let slots = &self.shared.slots;
        let word = slots[self.head & (slots.len() - 1)].load(Ordering::Relaxed);
        self.head = self.head.wrapping_add(1);
        self.shared.head.store(self.head, Ordering::Release);
        Some(word)
    }

    /// Words that wait now, as far as they are published.
    pub fn len(&self) -> usize {
        self.shared.tail.load(Ordering::Acquire).wrapping_sub(self.head)
    }

    /// Whether no word waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn full_ring_gives_the_word_back_and_keeps_order() {
        let (mut tx, mut rx) = spsc(3);
        for word in 0..4 {
            assert_eq!(tx.push(word), Ok(()));
        }
        assert_eq!(tx.push(9), Err(9));
        assert_eq!(rx.len(), 4);
        for round in 0..100 {
            assert_eq!(rx.pop(), Some(round));
            assert_eq!(tx.push(round + 4), Ok(()));
        }
        assert_eq!((0..5).filter_map(|_| rx.pop()).collect::<Vec<_>>(), [100, 101, 102, 103]);
        assert!(rx.is_empty());
    }

    #[test]
    fn nothing_is_lost_between_two_threads() {
        const WORDS: u64 = 200_000;
        let (mut tx, mut rx) = spsc(64);
        let sender = std::thread::spawn(move || {
            for word in 0..WORDS {
                let mut next = word;
                while let Err(back) = tx.push(next) {
                    next = back;
                    std::thread::yield_now();
                }
            }
        });
        let mut expected = 0;
        while expected < WORDS {
            match rx.pop() {
                Some(word) => {
                    assert_eq!(word, expected);
                    expected += 1;
                }
                None => std::thread::yield_now(),
            }
        }
        assert!(sender.join().is_ok());
        assert!(rx.is_empty());
    }
}
