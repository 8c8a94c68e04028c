//! Frames and ports in plain memory: the second implementation of the seams of [`crate::io`].
//!
//! Tests and benches drive a port through its [`Wire`]; all workers of one switch run on one
//! thread here, so memory is shared by `Rc` and interior mutability.

use crate::frame::FrameHandle;
use crate::io::{FramePool, Losses, PortIo, Received, Remains, BURST};
use crate::units::{FrameLen, Time};
use holdfast_wire::mac_control::FRAME_LEN;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Bytes a chunk holds: a whole jumbo frame, so frames here have one fragment.
const CHUNK_BYTES: usize = 10_240;

struct Chunk {
    bytes: Box<[u8]>,
    len: usize,
}

/// Chunks and who has them free; shared by the pools of all workers.
struct Store {
    chunks: Vec<RefCell<Chunk>>,
    /// Free chunks that came home from elsewhere, by worker.
    returned: Vec<RefCell<Vec<u32>>>,
    chunks_per_worker: u32,
}

/// One worker's view of the memory.
pub struct MemoryPool {
    store: Rc<Store>,
    worker: usize,
    free: Vec<u32>,
}

impl MemoryPool {
    /// Pools of `workers` workers with `chunks` chunks each, which hold a jumbo frame.
    pub fn shared(workers: usize, chunks: u32) -> Vec<Self> {
        Self::with_chunks_of(CHUNK_BYTES, workers, chunks)
    }

    /// The same with chunks of `bytes` bytes: longer frames are cut off when they arrive.
    pub fn with_chunks_of(bytes: usize, workers: usize, chunks: u32) -> Vec<Self> {
        let total = chunks as usize * workers;
        let fresh = || RefCell::new(Chunk { bytes: vec![0; bytes].into(), len: 0 });
        let store = Rc::new(Store {
            chunks: (0..total).map(|_| fresh()).collect(),
            returned: (0..workers)
                .map(|_| RefCell::new(Vec::with_capacity(chunks as usize)))
                .collect(),
            chunks_per_worker: chunks,
        });
        let range = |worker: u32| worker * chunks..(worker + 1) * chunks;
        (0..workers)
            .map(|worker| Self {
                store: Rc::clone(&store),
                worker,
                free: range(worker as u32).rev().collect(),
            })
            .collect()
    }

    /// Writes the same bytes into every chunk there is: what [`Wire::arrive_again`] brings.
    pub fn write_all(&self, bytes: &[u8]) {
        for chunk in &self.store.chunks {
            let mut place = chunk.borrow_mut();
            let len = bytes.len().min(place.bytes.len());
            place.bytes[..len].copy_from_slice(&bytes[..len]);
            place.len = len;
        }
    }

    fn copy_of(&self, chunk: u32) -> Vec<u8> {
        self.store.chunks.get(chunk as usize).map_or_else(Vec::new, |chunk| {
            let chunk = chunk.borrow();
            chunk.bytes[..chunk.len].to_vec()
        })
    }
}

impl FramePool for MemoryPool {
    #[inline]
    fn read<R>(&self, frame: &FrameHandle, look: impl FnOnce(&[u8]) -> R) -> R {
        match self.store.chunks.get(frame.chunk() as usize) {
            Some(chunk) => {
                let chunk = chunk.borrow();
                look(&chunk.bytes[..chunk.len])
            }
            None => look(&[]),
        }
    }

    #[inline]
    fn write<R>(&mut self, frame: &mut FrameHandle, change: impl FnOnce(&mut [u8]) -> R) -> R {
        match self.store.chunks.get(frame.chunk() as usize) {
            Some(chunk) => {
                let chunk = &mut *chunk.borrow_mut();
                change(&mut chunk.bytes[..chunk.len])
            }
            None => change(&mut []),
        }
    }

    #[inline]
    fn free(&mut self, frame: FrameHandle) {
        let chunk = frame.into_chunk();
        let home = (chunk / self.store.chunks_per_worker) as usize;
        if home == self.worker {
            self.free.push(chunk);
        } else if let Some(returned) = self.store.returned.get(home) {
            returned.borrow_mut().push(chunk);
        }
    }

    fn take_returned(&mut self) -> usize {
        let mut returned = self.store.returned[self.worker].borrow_mut();
        let came = returned.len();
        self.free.append(&mut returned);
        came
    }

    fn free_chunks(&self) -> usize {
        self.free.len()
    }

    fn returning_chunks(&self) -> usize {
        self.store.returned[self.worker].borrow().len()
    }

    fn take_back(&mut self, chunk: u32) {
        self.free(FrameHandle::own(chunk));
    }
}

/// What a test sees of a port: the other end of its cable.
pub struct Wire {
    fill: VecDeque<u32>,
    fill_size: usize,
    arrived: VecDeque<(u32, FrameLen)>,
    in_ring: Vec<u64>,
    done: VecDeque<u64>,
    tx_size: usize,
    up: bool,
    /// Frames that found no free chunk in the fill ring.
    pub overrun: u64,
    /// Whether sent frames are kept in `sent` and `control`; a bench leaves it off.
    pub capture: bool,
    /// Data frames sent, as bytes.
    pub sent: Vec<Vec<u8>>,
    /// MAC control frames sent.
    pub control: Vec<[u8; FRAME_LEN]>,
    /// Data frames sent, counted.
    pub sent_frames: u64,
    /// The time that a kick returns.
    pub clock: Time,
    /// While set, frames stay in the TX ring: no completion comes back.
    pub stalled: bool,
}

/// A port in memory.
pub struct MemoryPort {
    wire: Rc<RefCell<Wire>>,
}

/// A port with rings of these sizes, and the test's end of it.
pub fn memory_port(fill_size: usize, tx_size: usize) -> (MemoryPort, Rc<RefCell<Wire>>) {
    let wire = Rc::new(RefCell::new(Wire {
        fill: VecDeque::with_capacity(fill_size),
        fill_size,
        arrived: VecDeque::with_capacity(fill_size),
        in_ring: Vec::with_capacity(tx_size),
        done: VecDeque::with_capacity(tx_size),
        tx_size,
        up: true,
        overrun: 0,
        capture: true,
        sent: Vec::new(),
        control: Vec::new(),
        sent_frames: 0,
        clock: Time::default(),
        stalled: false,
    }));
    (MemoryPort { wire: Rc::clone(&wire) }, wire)
}

impl MemoryPort {
    /// A port that is closed: no ring, and down.
    pub fn closed() -> Self {
        let (port, wire) = memory_port(0, 0);
        wire.borrow_mut().up = false;
        port
    }

    /// Chunks in its fill ring and in its RX ring.
    pub fn chunks_held(&self) -> usize {
        self.wire.borrow().chunks_held()
    }

    /// Closes the port.
    pub fn close(self) -> Remains {
        let wire = &mut *self.wire.borrow_mut();
        let fill = wire.fill.drain(..);
        let chunks = fill.chain(wire.arrived.drain(..).map(|(chunk, _)| chunk)).collect();
        let tokens = wire.in_ring.drain(..).chain(wire.done.drain(..)).collect();
        Remains { chunks, tokens, losses: Losses::default() }
    }
}

impl Wire {
    /// A frame arrives at the port; lost, and counted, if the fill ring is empty.
    pub fn arrive(&mut self, pool: &MemoryPool, bytes: &[u8]) {
        let Some(chunk) = self.fill.pop_front() else {
            self.overrun += 1;
            return;
        };
        let mut place = pool.store.chunks[chunk as usize].borrow_mut();
        let len = bytes.len().min(place.bytes.len());
        place.bytes[..len].copy_from_slice(&bytes[..len]);
        place.len = len;
        self.arrived.push_back((chunk, FrameLen(len as u16)));
    }

    /// `frames` frames arrive with what their chunks hold already: a bench's way in, which costs
    /// next to nothing and allocates nothing.
    pub fn arrive_again(&mut self, pool: &MemoryPool, frames: usize) {
        for _ in 0..frames {
            let Some(chunk) = self.fill.pop_front() else {
                self.overrun += 1;
                continue;
            };
            let len = pool.store.chunks[chunk as usize].borrow().len;
            self.arrived.push_back((chunk, FrameLen(len as u16)));
        }
    }

    fn tx_room(&self) -> usize {
        self.tx_size - self.in_ring.len() - self.done.len()
    }

    /// The link goes up or down.
    pub fn set_up(&mut self, up: bool) {
        self.up = up;
    }

    /// Chunks in the fill ring and in the RX ring.
    pub fn chunks_held(&self) -> usize {
        self.fill.len() + self.arrived.len()
    }
}

impl PortIo for MemoryPort {
    type Pool = MemoryPool;

    fn receive(&mut self, _pool: &mut MemoryPool, into: &mut Vec<Received>) {
        let mut wire = self.wire.borrow_mut();
        let count = wire.arrived.len().min(BURST);
        for (chunk, len) in wire.arrived.drain(..count) {
            into.push(Received { handle: FrameHandle::own(chunk), len });
        }
    }

    fn rx_backlog(&mut self) -> u32 {
        self.wire.borrow().arrived.len() as u32
    }

    fn rx_ring(&self) -> u32 {
        self.wire.borrow().fill_size as u32
    }

    fn refill(&mut self, pool: &mut MemoryPool, kept: u32) {
        let mut wire = self.wire.borrow_mut();
        let lent = wire.fill.len() + wire.arrived.len() + kept as usize;
        let room = wire.fill_size.saturating_sub(lent);
        let from = pool.free.len().saturating_sub(room);
        wire.fill.extend(pool.free.drain(from..));
    }

    #[inline]
    fn tx_room(&self) -> usize {
        self.wire.borrow().tx_room()
    }

    #[inline]
    fn transmit(&mut self, pool: &MemoryPool, chunk: u32, _len: FrameLen, token: u64) -> bool {
        let wire = &mut *self.wire.borrow_mut();
        if wire.tx_room() == 0 {
            return false;
        }
        if wire.capture {
            let bytes = pool.copy_of(chunk);
            wire.sent.push(bytes);
        }
        wire.sent_frames += 1;
        wire.in_ring.push(token);
        true
    }

    fn transmit_control(&mut self, bytes: &[u8; FRAME_LEN]) -> bool {
        let mut wire = self.wire.borrow_mut();
        if wire.capture {
            wire.control.push(*bytes);
        }
        true
    }

    fn kick(&mut self) -> Time {
        let wire = &mut *self.wire.borrow_mut();
        if !wire.stalled {
            wire.done.extend(wire.in_ring.drain(..));
        }
        wire.clock
    }

    fn clock(&self) -> Time {
        self.wire.borrow().clock
    }

    fn completions(&mut self, done: &mut Vec<u64>) {
        let wire = &mut *self.wire.borrow_mut();
        let count = wire.done.len().min(BURST);
        let (front, back) = wire.done.as_slices();
        let (from_front, from_back) = (count.min(front.len()), count.saturating_sub(front.len()));
        done.extend_from_slice(&front[..from_front]);
        done.extend_from_slice(&back[..from_back]);
        wire.done.drain(..count);
    }

    fn is_up(&self) -> bool {
        self.wire.borrow().up
    }
}
