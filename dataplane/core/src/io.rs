//! The two seams of the core (DESIGN law 11): a port's rings and the memory of frames.
//!
//! Implemented by AF_XDP (crate `holdfast-xsk`) and in memory ([`crate::memory`], which tests,
//! benches and the simulator use).

use crate::frame::FrameHandle;
use crate::units::{FrameLen, Time};
use holdfast_wire::mac_control::FRAME_LEN;

/// Frames taken from, or given to, a ring at once (DESIGN 4).
pub const BURST: usize = 64;

/// A frame that a port received.
#[derive(Debug, PartialEq, Eq)]
pub struct Received {
    /// Its memory, all fragments.
    pub handle: FrameHandle,
    /// Its length, all fragments together.
    pub len: FrameLen,
}

/// Frames that a port's driver and kernel dropped before the switch saw them, since the port was
/// opened: they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The RX ring was full, or the fill ring empty (SPEC 4.3).
    pub overrun: u64,
    /// Lossy frames that were shed because the RX ring was nearly full (SPEC 4.3).
    pub rx_pressure_lossy: u64,
    /// Shorter than an Ethernet header.
    pub runt: u64,
    /// Longer than a frame can be.
    pub too_long: u64,
}

/// The memory of frames as one worker sees it. Each worker has its own view; memory is shared.
///
/// A frame has a home worker; [`FramePool::free`] sends it there, by a ring if the home is another
/// worker, so that a port's fill ring can only be starved by its own admitted frames (DESIGN 5).
pub trait FramePool {
    /// Reads the head of a frame: its first fragment, which holds all headers.
    fn read<R>(&self, frame: &FrameHandle, look: impl FnOnce(&[u8]) -> R) -> R;

    /// Changes the head of a frame. Never called for a frame with several copies.
    fn write<R>(&mut self, frame: &mut FrameHandle, change: impl FnOnce(&mut [u8]) -> R) -> R;

    /// Sends a frame's memory home, every fragment of it.
    fn free(&mut self, frame: FrameHandle);

    /// Takes in frames of this worker that other workers sent home.
    /// Returns how many chunks came.
    fn take_returned(&mut self) -> usize;

    /// Chunks that lie free at this worker: in no ring, in no queue.
    fn free_chunks(&self) -> usize;

    /// Chunks of this worker that are on their way home from other workers.
    fn returning_chunks(&self) -> usize;

    /// Sends one chunk home that holds no frame: what a closed port's rings were lent.
    fn take_back(&mut self, chunk: u32);
}

/// What the rings of a port still had when they were closed: each chunk and each frame once.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use = "chunks and cells are missing until a worker has taken it back"]
pub struct Remains {
    /// Chunks of the receiving side: of the fill ring, of the RX ring, of frames received half.
    pub chunks: Vec<u32>,
    /// Tokens of frames between [`PortIo::transmit`] and [`PortIo::completions`].
    pub tokens: Vec<u64>,
    /// What was lost by then.
    pub losses: Losses,
}

/// One port's rings: RX, fill, TX, completion. Owned by the port's worker.
pub trait PortIo {
    /// The memory that this port's frames live in.
    type Pool: FramePool;

    /// Takes at most [`BURST`] received frames and appends them to `into`, which has room for
    /// them. Frames that the ring holds half (a fragment is missing) stay for the next call.
    fn receive(&mut self, pool: &mut Self::Pool, into: &mut Vec<Received>);

    /// Frames that wait in the RX ring now.
    fn rx_backlog(&mut self) -> u32;

    /// Frames that the RX rings hold together.
    fn rx_ring(&self) -> u32;

    /// Gives free chunks of `pool` to the fill ring, as many as it takes but for `kept` of them:
    /// frames that were received and wait for room, for which a chunk each is missing.
    fn refill(&mut self, pool: &mut Self::Pool, kept: u32);

    /// Fragments of data that the TX ring takes now; slots reserved for PFC are not counted.
    fn tx_room(&self) -> usize;

    /// Puts a frame into the TX ring; `token` comes back from [`PortIo::completions`] once for
    /// each frame accepted. `false`, and nothing done, if the ring has no room for all fragments.
    /// The frame's memory belongs to the ring until then.
    fn transmit(&mut self, pool: &Self::Pool, chunk: u32, len: FrameLen, token: u64) -> bool;

    /// Puts a MAC control frame into a reserved slot, ahead of data not yet kicked where the ring
    /// allows it. `false` if even the reserved slots are full; the caller tries again.
    fn transmit_control(&mut self, bytes: &[u8; FRAME_LEN]) -> bool;

    /// Makes the kernel send what is in the TX ring, if there is anything, and returns the time
    /// at which that was done, by the clock that `Worker::step` is called with: the end of the
    /// XOFF reaction (SPEC 4.1).
    fn kick(&mut self) -> Time;

    /// Now, by the clock that `Worker::step` is called with: what was received had arrived by then,
    /// which the beginning of the step doesn't say. Asked for MAC control frames only, whose times
    /// are a protocol's (SPEC 8).
    fn clock(&self) -> Time;

    /// Appends the tokens of frames that have left to `done`, which has room for [`BURST`] of
    /// them, and takes MAC control frames' slots back. At most [`BURST`] a call.
    fn completions(&mut self, done: &mut Vec<u64>);

    /// Whether the link is usable; a port that is down neither receives nor sends.
    fn is_up(&self) -> bool;
}
