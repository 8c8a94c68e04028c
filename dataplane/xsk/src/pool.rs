//! The memory of frames as one worker sees it: its free list, and the rings on which frames of
//! other workers go home.

use crate::memory::{Shared, MAX_FRAGMENTS};
use holdfast_core::frame::FrameHandle;
use holdfast_core::io::FramePool;
use holdfast_core::ring::{spsc, Consumer, Producer};
use std::ops::Range;
use std::sync::Arc;
use xsk_rs::FrameDesc;

/// One worker's view of the memory.
pub struct XskPool {
    shared: Arc<Shared>,
    worker: usize,
    homes: Vec<Range<u32>>,
    /// Free chunks; room for every chunk there is, so that it never grows.
    free: Vec<u32>,
    /// To each worker, `None` at its own place.
    homeward: Vec<Option<Producer>>,
    /// From the other workers.
    returned: Vec<Consumer>,
}

impl XskPool {
    /// A pool for each worker of the layout, joined by return rings. A ring has room for every
    /// chunk of the home it leads to, so it can't be full.
    pub(crate) fn for_workers(shared: &Arc<Shared>) -> Vec<Self> {
        let homes = shared.homes();
        let mut pools: Vec<Self> = homes
            .iter()
            .enumerate()
            .map(|(worker, home)| {
                let mut free = Vec::with_capacity(shared.chunks() as usize);
                free.extend(home.clone().rev());
                let homeward = homes.iter().map(|_| None).collect();
                let homes = homes.clone();
                let shared = Arc::clone(shared);
                Self { shared, worker, homes, free, homeward, returned: Vec::new() }
            })
            .collect();
        for from in 0..pools.len() {
            for (to, home) in homes.iter().enumerate().filter(|(to, _)| *to != from) {
                let (producer, consumer) = spsc(home.len());
                if let Some(slot) = pools.get_mut(from).and_then(|p| p.homeward.get_mut(to)) {
                    *slot = Some(producer);
                }
                if let Some(pool) = pools.get_mut(to) {
                    pool.returned.push(consumer);
                }
            }
        }
        pools
    }

    /// Takes a free chunk out.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Takes a free chunk out, by a descriptor.
    #[inline]
    pub(crate) fn take_desc(&mut self) -> Option<FrameDesc> {
        let chunk = self.take()?;
        self.shared.desc(chunk)
    }

    /// Sends one chunk home.
    #[inline]
    pub(crate) fn give(&mut self, chunk: u32) {
        let own = self.homes.get(self.worker);
        if own.is_some_and(|home| home.contains(&chunk)) {
            self.free.push(chunk);
        } else {
            self.give_away(chunk);
        }
    }

    fn give_away(&mut self, chunk: u32) {
        let home = self.homes.iter().position(|home| home.contains(&chunk));
        let ring = home.and_then(|worker| self.homeward.get_mut(worker)?.as_mut());
        // Without a home it is a forged handle or a control chunk, which ports keep for themselves.
        let Some(ring) = ring else {
            debug_assert!(false, "chunk {chunk} is nobody's");
            return;
        };
        if ring.push(u64::from(chunk)).is_err() {
            // The ring has room for all chunks of that home. Were it full nevertheless, the chunk
            // would live on here and be sent home when it is freed again.
            self.free.push(chunk);
        }
    }

    /// The memory behind this view.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl FramePool for XskPool {
    #[inline]
    fn read<R>(&self, frame: &FrameHandle, look: impl FnOnce(&[u8]) -> R) -> R {
        let Some(desc) = self.shared.desc(frame.chunk()) else { return look(&[]) };
        // SAFETY: the descriptor is of this UMEM and stays in its chunk. The handle owns the
        // chunk; while it is borrowed nobody writes to it, since `write` needs it borrowed
        // mutably and a frame with copies is never written to.
        look(unsafe { self.shared.umem().data(&desc) }.contents())
    }

    #[inline]
    fn write<R>(&mut self, frame: &mut FrameHandle, change: impl FnOnce(&mut [u8]) -> R) -> R {
        let Some(mut desc) = self.shared.desc(frame.chunk()) else { return change(&mut []) };
        // SAFETY: the descriptor is of this UMEM and stays in its chunk. The handle owns the
        // chunk and is borrowed mutably, and by the trait's contract the frame has no copies, so
        // this is its only owner.
        change(unsafe { self.shared.umem().data_mut(&mut desc) }.contents_mut())
    }

    #[inline]
    fn free(&mut self, frame: FrameHandle) {
        let mut chunk = Some(frame.into_chunk());
        // The number of steps is bounded so that a broken chain can't hang the worker.
        for _ in 0..MAX_FRAGMENTS {
            let Some(at) = chunk else { break };
            // Read before the chunk is given: afterwards it may be another worker's.
            chunk = self.shared.next(at);
            self.give(at);
        }
    }

    fn take_returned(&mut self) -> usize {
        let mut came = 0;
        for ring in &mut self.returned {
            while let Some(word) = ring.pop() {
                self.free.push(word as u32);
                came += 1;
            }
        }
        came
    }

    fn free_chunks(&self) -> usize {
        self.free.len()
    }

    fn returning_chunks(&self) -> usize {
        self.returned.iter().map(Consumer::len).sum()
    }

    fn take_back(&mut self, chunk: u32) {
        self.give(chunk);
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::Memory;
    use crate::sizing::Layout;
    use holdfast_core::frame::FrameHandle;
    use holdfast_core::io::FramePool;

    #[test]
    fn chunks_go_home_fragment_by_fragment() {
        let (memory, mut pools) = Memory::new(&Layout::even(20, 2).unwrap()).unwrap();
        let mut second = pools.pop().unwrap();
        let mut first = pools.pop().unwrap();
        let (a, b) = (first.take().unwrap(), second.take().unwrap());
        memory.0.compose(a, 3840, Some(b));
        memory.0.compose(b, 100, None);
        second.free(FrameHandle::own(a));
        assert_eq!((first.free_chunks(), second.free_chunks()), (9, 10));
        assert_eq!(first.take_returned(), 1);
        assert_eq!((first.free_chunks(), second.take_returned()), (10, 0));
    }

    #[test]
    fn all_chunks_of_a_home_fit_the_way_back() {
        let (memory, mut pools) = Memory::new(&Layout::new(vec![300, 5]).unwrap()).unwrap();
        let mut second = pools.pop().unwrap();
        let mut first = pools.pop().unwrap();
        while let Some(chunk) = first.take() {
            memory.0.compose(chunk, 60, None);
            second.free(FrameHandle::own(chunk));
        }
        assert_eq!((first.free_chunks(), second.free_chunks()), (0, 5));
        assert_eq!(first.take_returned(), 300);
    }

    #[test]
    fn a_frame_is_read_where_it_lies_in_its_chunk() {
        let (memory, mut pools) = Memory::new(&Layout::even(4, 1).unwrap()).unwrap();
        let mut pool = pools.pop().unwrap();
        let chunk = pool.take().unwrap();
        let mut frame = FrameHandle::own(chunk);
        memory.0.compose(chunk, 3840, None);
        pool.write(&mut frame, |bytes| bytes.fill(7));
        let mut other = FrameHandle::own(pool.take().unwrap());
        memory.0.compose(other.chunk(), 3840, None);
        pool.write(&mut other, |bytes| bytes.fill(9));
        memory.0.compose(chunk, 30, None);
        assert_eq!(pool.read(&frame, <[u8]>::to_vec), [7; 30]);
        assert_eq!(pool.read(&other, <[u8]>::to_vec), [9; 3840]);
        pool.free(frame);
        pool.free(other);
        assert_eq!(pool.free_chunks(), 4);
    }
}
