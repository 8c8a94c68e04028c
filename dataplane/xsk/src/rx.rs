//! The receiving half of a port: fill rings, RX rings, and frames that came in several fragments.

use crate::memory::{chunk_at, stays_in_chunk, ChunkSet, Shared, MAX_FRAGMENTS};
use crate::pool::XskPool;
use crate::socket::{XskSocket, XskStats};
use holdfast_core::frame::{FrameHandle, MAX_FRAME_LEN};
use holdfast_core::io::{FramePool, Received, BURST};
use holdfast_core::units::FrameLen;
use std::io;
use xsk_rs::FrameDesc;

/// A frame of which not all fragments have come yet.
#[derive(Clone, Copy)]
struct Head {
    first: u32,
    last: u32,
    len: u32,
    fragments: usize,
}

/// One RX queue: its socket and the chunks it was lent.
struct Queue {
    socket: XskSocket,
    /// Chunks in the fill ring, in the kernel's hands or in the RX ring.
    lent: u32,
    head: Option<Head>,
}

/// Frames that never reached the core, by reason; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RxDiscards {
    /// Longer than a descriptor can say, or of more fragments than a frame can have.
    pub too_long: u64,
    /// Descriptors that name no chunk of ours, or data outside of it.
    pub invalid: u64,
}

/// All RX queues of a port.
pub(crate) struct Receiver {
    queues: Vec<Queue>,
    /// Entries of each RX ring: no queue is lent more chunks, so the ring can't overflow.
    ring: u32,
    lent: ChunkSet,
    /// The queue that is polled first in the next burst.
    turn: usize,
    /// Descriptors on their way out of or into a ring.
    burst: [FrameDesc; BURST],
    pub(crate) discards: RxDiscards,
}

impl Receiver {
    pub(crate) fn new(sockets: Vec<XskSocket>, ring: u32, chunks: u32) -> Self {
        let queue = |socket| Queue { socket, lent: 0, head: None };
        let queues = sockets.into_iter().map(queue).collect();
        let lent = ChunkSet::new(chunks);
        let burst = [FrameDesc::default(); BURST];
        Self { queues, ring, lent, turn: 0, burst, discards: RxDiscards::default() }
    }

    /// The sockets in the order of their queues; the first one also sends.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &XskSocket> {
        self.queues.iter().map(|queue| &queue.socket)
    }

    /// The socket of queue 0.
    pub(crate) fn first(&mut self) -> Option<&mut XskSocket> {
        self.queues.first_mut().map(|queue| &mut queue.socket)
    }

    /// Takes up to a burst of frames, queue after queue, another queue first each time.
    pub(crate) fn receive(&mut self, pool: &mut XskPool, into: &mut Vec<Received>) {
        let count = self.queues.len();
        let mut room = BURST;
        for n in 0..count {
            let Some(queue) = self.queues.get_mut((self.turn + n) % count) else { continue };
            // A descriptor ends at most one frame, so `room` bounds the descriptors as well.
            let Some(burst) = self.burst.get_mut(..room) else { break };
            // SAFETY: queue and pool are of the same UMEM; what comes in is checked below.
            let came = unsafe { queue.socket.rx.consume(burst) };
            let burst = burst.get(..came).unwrap_or(&[]);
            burst.iter().for_each(|desc| pool.shared().prefetch(desc));
            for desc in burst {
                let frame = queue.take(desc, &mut self.lent, &mut self.discards, pool);
                room -= usize::from(frame.is_some());
                into.extend(frame);
            }
        }
        self.turn = (self.turn + 1) % count.max(1);
    }

    /// Descriptors that wait in the RX rings.
    pub(crate) fn backlog(&mut self) -> u32 {
        self.queues.iter_mut().map(|queue| queue.socket.rx.nb_avail_exact()).sum()
    }

    /// Descriptors that wait in the fullest RX ring, as (waiting, entries).
    pub(crate) fn fullest(&mut self) -> (u32, u32) {
        let waiting = self.queues.iter_mut().map(|queue| queue.socket.rx.nb_avail_exact());
        (waiting.max().unwrap_or(0), self.ring)
    }

    /// Entries of all RX rings.
    pub(crate) fn entries(&self) -> u32 {
        self.ring * self.queues.len() as u32
    }

    /// Lends free chunks to the fill rings, up to an RX ring's worth each, `kept` fewer in all.
    pub(crate) fn refill(&mut self, pool: &mut XskPool, kept: u32) {
        let fewer = kept.div_ceil(self.queues.len().max(1) as u32);
        let most = self.ring.saturating_sub(fewer);
        for queue in &mut self.queues {
            while queue.lent < most {
                let want = BURST.min((most - queue.lent) as usize);
                let free = std::iter::from_fn(|| pool.take_desc());
                let mut count = 0;
                for (place, desc) in self.burst.iter_mut().take(want).zip(free) {
                    *place = desc;
                    count += 1;
                }
                let burst = self.burst.get(..count).unwrap_or(&[]);
                // SAFETY: the chunks are of the same UMEM and were free: nobody else has them.
                let lent = unsafe { queue.socket.fill.produce(burst) };
                if lent < count {
                    // The ring is larger than what may be lent, so the kernel has lost its way.
                    burst.iter().for_each(|desc| pool.give(chunk_at(desc)));
                    break;
                }
                burst.iter().for_each(|desc| self.lent.insert(chunk_at(desc)));
                queue.lent += count as u32;
                if count < want {
                    break;
                }
            }
        }
    }

    /// Chunks that the kernel or a half-received frame holds.
    pub(crate) fn held(&self, shared: &Shared) -> u32 {
        let heads = self.queues.iter().filter_map(|queue| queue.head);
        let halves = heads.map(|head| chain(shared, head).len() as u32);
        self.queues.iter().map(|queue| queue.lent).sum::<u32>() + halves.sum::<u32>()
    }

    /// The counters of all sockets, added up.
    pub(crate) fn stats(&self) -> io::Result<XskStats> {
        let mut sum = XskStats::default();
        for socket in self.sockets() {
            sum = sum.plus(socket.stats()?);
        }
        Ok(sum)
    }

    /// Closes the sockets and returns every chunk that they had.
    pub(crate) fn close(self, shared: &Shared) -> Vec<u32> {
        let Self { queues, mut lent, .. } = self;
        let heads: Vec<Head> = queues.iter().filter_map(|queue| queue.head).collect();
        // First the sockets with their mappings: only then the kernel writes to no chunk any more.
        drop(queues);
        let halves = heads.into_iter().flat_map(|head| chain(shared, head));
        halves.chain(lent.drain()).collect()
    }
}

/// The chunks of a frame that has come in part.
fn chain(shared: &Shared, head: Head) -> Vec<u32> {
    let next = |chunk: &u32| shared.next(*chunk);
    std::iter::successors(Some(head.first), next).take(head.fragments).collect()
}

impl Queue {
    /// Takes a descriptor; returns the frame that it ends, if it does.
    #[inline]
    fn take(
        &mut self,
        desc: &FrameDesc,
        lent: &mut ChunkSet,
        discards: &mut RxDiscards,
        pool: &mut XskPool,
    ) -> Option<Received> {
        let chunk = chunk_at(desc);
        if !lent.remove(chunk) {
            discards.invalid += 1;
            return None;
        }
        self.lent -= 1;
        let head = self.join(chunk, desc, pool, discards)?;
        if desc.has_more_frames() {
            self.head = Some(head);
            return None;
        }
        self.head = None;
        let handle = FrameHandle::own(head.first);
        if head.len > u32::from(MAX_FRAME_LEN) {
            discards.too_long += 1;
            pool.free(handle);
            return None;
        }
        Some(Received { handle, len: FrameLen(head.len as u16) })
    }

    /// Adds a fragment to the frame that is coming in, or starts one. A fragment that can't be
    /// used is freed, and its frame made too long for anybody. `None` if there was no frame yet.
    fn join(
        &mut self,
        chunk: u32,
        desc: &FrameDesc,
        pool: &mut XskPool,
        discards: &mut RxDiscards,
    ) -> Option<Head> {
        let fits = stays_in_chunk(desc);
        if !fits || self.fragments() >= MAX_FRAGMENTS {
            discards.invalid += u64::from(!fits);
            pool.give(chunk);
            return self.head.map(|head| Head { len: u32::MAX, ..head });
        }
        // SAFETY: the kernel has given the chunk back, so it is ours alone.
        unsafe { pool.shared().describe(chunk, *desc) };
        let more = desc.lengths().data() as u32;
        let Some(head) = self.head else {
            return Some(Head { first: chunk, last: chunk, len: more, fragments: 1 });
        };
        pool.shared().link(head.last, chunk);
        let (len, fragments) = (head.len.saturating_add(more), head.fragments + 1);
        Some(Head { first: head.first, last: chunk, len, fragments })
    }

    /// Fragments of the frame that is coming in.
    fn fragments(&self) -> usize {
        self.head.map_or(0, |head| head.fragments)
    }
}
