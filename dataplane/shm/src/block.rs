//! One block: the last two copies of what one thread publishes.
//!
//! A number says how many copies were published; its low bit, which of the two places holds the
//! last one. The writer fills the other place and counts up, so a whole copy is there at any
//! moment: also when the writer was killed halfway. A reader that was so slow that its copy may
//! have been overwritten sees that by the number and takes the next one; the writer never waits.

use crate::sync::atomic::{fence, AtomicU64, Ordering};

/// Words between the starts of two things that different threads write: one cache line.
pub const LINE: usize = 8;

/// Words of a block whose copies have `words` words each: the number, and two places.
pub const fn block_words(words: usize) -> usize {
    LINE + 2 * place_words(words)
}

const fn place_words(words: usize) -> usize {
    words.next_multiple_of(LINE)
}

/// The number of a block and its two places; `None` if `block` is too short.
fn parts(block: &[AtomicU64], words: usize) -> Option<(&AtomicU64, [&[AtomicU64]; 2])> {
    let number = block.first()?;
    let first = block.get(LINE..LINE + words)?;
    let start = LINE + place_words(words);
    let second = block.get(start..start + words)?;
    Some((number, [first, second]))
}

/// The place that a copy is written to, from its first word on.
#[derive(Debug)]
pub struct Place<'a>(core::slice::Iter<'a, AtomicU64>);

impl Place<'_> {
    /// Writes the next word; more than there is room for are left out.
    #[inline]
    pub fn push(&mut self, word: u64) {
        if let Some(place) = self.0.next() {
            place.store(word, Ordering::Relaxed);
        }
    }
}

/// Publishes a copy of `words` words, all of which `fill` writes. Only one thread may do so for a
/// block; it never waits.
#[inline]
pub fn publish(block: &[AtomicU64], words: usize, fill: impl FnOnce(&mut Place<'_>)) {
    let Some((number, places)) = parts(block, words) else { return };
    let count = number.load(Ordering::Relaxed);
    // A reader that finds a word of this copy in a place must also find that the number had gone
    // on before: pairs with the fence in `read`.
    fence(Ordering::Release);
    fill(&mut Place(places[(count as usize + 1) & 1].iter()));
    number.store(count.wrapping_add(1), Ordering::Release);
}

/// What came of reading a block once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// The copy is whole.
    Whole,
    /// Nothing was published yet.
    Empty,
    /// It was overwritten meanwhile: read again.
    Overwritten,
}

/// Takes the last copy once; `into` has as many words as a copy. Loads of mapped memory that can't
/// be written are defined as relaxed ones only; the fences order them.
pub fn read(block: &[AtomicU64], into: &mut [u64]) -> Read {
    let Some((number, places)) = parts(block, into.len()) else { return Read::Empty };
    let count = number.load(Ordering::Relaxed);
    if count == 0 {
        return Read::Empty;
    }
    fence(Ordering::Acquire);
    for (word, into) in places[count as usize & 1].iter().zip(into) {
        *into = word.load(Ordering::Relaxed);
    }
    fence(Ordering::Acquire);
    match number.load(Ordering::Relaxed) == count {
        true => Read::Whole,
        false => Read::Overwritten,
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn block(words: usize) -> Vec<AtomicU64> {
        (0..block_words(words)).map(|_| AtomicU64::new(0)).collect()
    }

    fn write(block: &[AtomicU64], words: usize, value: u64) {
        publish(block, words, |place| (0..words).for_each(|_| place.push(value)));
    }

    #[test]
    fn the_last_copy_is_read_and_none_before_the_first() {
        let block = block(3);
        let mut copy = [7; 3];
        assert_eq!(read(&block, &mut copy), Read::Empty);
        for value in 1..5 {
            write(&block, 3, value);
            assert_eq!(read(&block, &mut copy), Read::Whole);
            assert_eq!(copy, [value; 3]);
        }
    }

    #[test]
    fn a_writer_killed_halfway_leaves_the_copy_before() {
        let block = block(4);
        write(&block, 4, 1);
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            publish(&block, 4, |place| {
                place.push(2);
                place.push(2);
                panic!("killed");
            });
        }));
        assert!(killed.is_err());
        let mut copy = [0; 4];
        assert_eq!((read(&block, &mut copy), copy), (Read::Whole, [1; 4]));
    }

    #[test]
    fn a_block_that_is_too_short_is_left_alone() {
        let short = block(3);
        publish(&short[..LINE + 3], 3, |place| place.push(1));
        assert_eq!(read(&short[..LINE + 3], &mut [0; 3]), Read::Empty);
        assert_eq!(short[0].load(Ordering::Relaxed), 0);
    }
}
