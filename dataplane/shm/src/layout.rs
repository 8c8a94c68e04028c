//! Where everything lies in the memory file, all of it computed from two numbers.
//!
//! Header, directory, then the blocks: the control thread's, the shared one, each worker's, each
//! port's, each link's. There is room for every port that a switch can have, so that ports may
//! come later; memory that nobody writes costs nothing.

use crate::block::{block_words, LINE};
use crate::counters::{ControlBlock, LinkBlock, PortBlock, SharedBlock, WorkerBlock};
use crate::words::Words;
use core::ops::Range;
use holdfast_core::ids::{MAX_PORTS, MAX_WORKERS};

/// Words of the header.
pub const HEADER_WORDS: usize = 8 * LINE;
/// Words of a directory's text, its length first: 512 KiB hold 64 ports with the longest names.
pub const DIRECTORY_WORDS: usize = 64 << 10;

/// Where the blocks are for `workers` workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    workers: usize,
}

impl Layout {
    /// The layout for so many workers; `None` for none or more than a switch can have.
    pub const fn new(workers: usize) -> Option<Self> {
        if workers == 0 || workers > MAX_WORKERS {
            return None;
        }
        Some(Self { workers })
    }

    /// How many workers it is for.
    pub const fn workers(self) -> usize {
        self.workers
    }

    /// Words in all.
    pub const fn words(self) -> usize {
        self.links_start() + MAX_PORTS * block_words(LinkBlock::COUNT)
    }

    /// The directory's block.
    pub const fn directory(self) -> Range<usize> {
        HEADER_WORDS..HEADER_WORDS + block_words(DIRECTORY_WORDS)
    }

    /// The control thread's block.
    pub const fn control(self) -> Range<usize> {
        let start = self.directory().end;
        start..start + block_words(ControlBlock::COUNT)
    }

    /// The block of what all share.
    pub const fn shared(self) -> Range<usize> {
        let start = self.control().end;
        start..start + block_words(SharedBlock::COUNT)
    }

    /// A worker's block; `None` for one that there isn't.
    pub const fn worker(self, number: usize) -> Option<Range<usize>> {
        if number >= self.workers {
            return None;
        }
        let size = block_words(WorkerBlock::COUNT);
        let start = self.shared().end + number * size;
        Some(start..start + size)
    }

    const fn ports_start(self) -> usize {
        self.shared().end + self.workers * block_words(WorkerBlock::COUNT)
    }

    /// A port's block; `None` for one that a switch can't have.
    pub const fn port(self, number: usize) -> Option<Range<usize>> {
        if number >= MAX_PORTS {
            return None;
        }
        let size = block_words(PortBlock::COUNT);
        let start = self.ports_start() + number * size;
        Some(start..start + size)
    }

    const fn links_start(self) -> usize {
        self.ports_start() + MAX_PORTS * block_words(PortBlock::COUNT)
    }

    /// The block of a port's link; `None` for a port that a switch can't have.
    pub const fn link(self, number: usize) -> Option<Range<usize>> {
        if number >= MAX_PORTS {
            return None;
        }
        let size = block_words(LinkBlock::COUNT);
        let start = self.links_start() + number * size;
        Some(start..start + size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_one_after_the_other_on_lines_of_their_own() {
        let layout = Layout::new(3).unwrap();
        let blocks = [layout.directory(), layout.control(), layout.shared()];
        let workers = (0..3).map(|n| layout.worker(n).unwrap());
        let ports = (0..MAX_PORTS).map(|n| layout.port(n).unwrap());
        let links = (0..MAX_PORTS).map(|n| layout.link(n).unwrap());
        let mut end = HEADER_WORDS;
        for block in blocks.into_iter().chain(workers).chain(ports).chain(links) {
            assert_eq!((block.start, block.start % LINE), (end, 0));
            end = block.end;
        }
        assert_eq!(end, layout.words());
        assert_eq!((layout.worker(3), layout.port(MAX_PORTS)), (None, None));
        assert_eq!(layout.link(MAX_PORTS), None);
        assert_eq!((Layout::new(0), Layout::new(MAX_WORKERS + 1)), (None, None));
    }
}
