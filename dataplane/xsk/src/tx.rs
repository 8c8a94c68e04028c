//! The sending half of a port: staged descriptors, the TX ring, and frames in flight.
//!
//! Data and MAC control frames are staged until the kick, which puts control first. A slot counts
//! as used from staging to completion: data may use all but [`CONTROL_SLOTS`] of them, control
//! those. So neither can take the other's, the ring always has room for what is staged, and the
//! completion ring, at least as large, can't be the one that blocks.

use crate::memory::{chunk_at, Shared, MAX_FRAGMENTS};
use crate::sizing::CONTROL_SLOTS;
use crate::socket::{Wake, XskSocket};
use holdfast_core::io::BURST;
use holdfast_wire::mac_control::FRAME_LEN;
use nix::libc::XDP_PKT_CONTD;
use std::collections::VecDeque;
use std::sync::Arc;
use xsk_rs::FrameDesc;

/// A data frame between `transmit` and its completion.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    token: u64,
    first: u32,
    fragments: u8,
    /// Fragments whose completion is still to come; 0 once the token was handed out.
    left: u8,
}

/// The sending half of a port.
pub(crate) struct Sender {
    shared: Arc<Shared>,
    control: Vec<FrameDesc>,
    data: Vec<FrameDesc>,
    /// Frames in the order in which they were staged, with room for every slot.
    flights: VecDeque<InFlight>,
    /// Data slots in use: staged or in the kernel's hands.
    used: u32,
    /// Slots that data may use.
    limit: u32,
    /// Chunks with this number or a higher one are for control frames.
    control_from: u32,
    /// This port's reserved chunks, and those of them that are free now.
    control_chunks: Vec<u32>,
    control_free: Vec<u32>,
    /// Descriptors that the kernel had not taken at the end of the last kick.
    unsent: u32,
    /// Descriptors on their way out of the completion ring.
    landing: [FrameDesc; BURST],
}

impl Sender {
    pub(crate) fn new(shared: Arc<Shared>, ring: u32, control_chunks: Vec<u32>) -> Self {
        Self {
            control_from: shared.data_chunks(),
            shared,
            control: Vec::with_capacity(CONTROL_SLOTS as usize),
            data: Vec::with_capacity(ring as usize),
            flights: VecDeque::with_capacity(ring as usize),
            used: 0,
            limit: ring - CONTROL_SLOTS,
            control_free: control_chunks.clone(),
            control_chunks,
            unsent: 0,
            landing: [FrameDesc::default(); BURST],
        }
    }

    /// Data slots that are free.
    pub(crate) fn room(&self) -> u32 {
        self.limit - self.used
    }

    /// Data slots in use.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// Control slots in use.
    pub(crate) fn control_used(&self) -> u32 {
        (self.control_chunks.len() - self.control_free.len()) as u32
    }

    /// Stages a frame, all its fragments or none.
    pub(crate) fn stage(&mut self, chunk: u32, token: u64) -> bool {
        let before = self.data.len();
        let mut at = Some(chunk);
        while let Some(chunk) = at {
            let Some(mut desc) = self.shared.desc(chunk) else { break };
            let fits = self.data.len() - before < MAX_FRAGMENTS.min(self.room() as usize);
            if !fits {
                self.data.truncate(before);
                return false;
            }
            at = self.shared.next(chunk);
            desc.set_options(if at.is_some() { XDP_PKT_CONTD } else { 0 });
            // A copy: the chunk may be in the TX rings of several ports at once.
            self.data.push(desc);
        }
        let fragments = (self.data.len() - before) as u8;
        if fragments == 0 {
            return false;
        }
        self.used += u32::from(fragments);
        self.flights.push_back(InFlight { token, first: chunk, fragments, left: fragments });
        true
    }

    /// Stages a MAC control frame in a reserved slot and chunk.
    pub(crate) fn stage_control(&mut self, bytes: &[u8; FRAME_LEN]) -> bool {
        let free = self.control_free.pop();
        let Some(mut desc) = free.and_then(|chunk| self.shared.desc(chunk)) else {
            return false;
        };
        // SAFETY: the chunk is this port's own and was free: in no ring, and no frame's.
        let mut data = unsafe { self.shared.umem().data_mut(&mut desc) };
        data.cursor().set_pos(FRAME_LEN);
        data.contents_mut().copy_from_slice(bytes);
        self.control.push(desc);
        true
    }

    /// Puts what is staged into the ring, control first, and makes the kernel send until the ring
    /// is empty or the kernel takes no more.
    pub(crate) fn kick(&mut self, socket: &mut XskSocket) -> Wake {
        if self.control.is_empty() && self.data.is_empty() && self.unsent == 0 {
            return Wake::Called;
        }
        for staged in [&mut self.control, &mut self.data] {
            // SAFETY: the chunks are of the same UMEM. Nobody writes to them until completion: a
            // frame that is sent is immutable, and a control chunk isn't free.
            let pushed = unsafe { socket.tx.produce(staged) };
            debug_assert_eq!(pushed, staged.len(), "slots are counted until completion");
            staged.drain(..pushed);
        }
        self.unsent = socket.unsent();
        while self.unsent > 0 && socket.tx.needs_wakeup() {
            let woken = socket.wake_tx();
            let left = socket.unsent();
            let stuck = left >= self.unsent;
            self.unsent = left;
            if stuck || woken != Wake::Called {
                return woken;
            }
        }
        Wake::Called
    }

    /// Takes completions: tokens of frames that are complete go to `done`, at most a burst.
    pub(crate) fn complete(&mut self, socket: &mut XskSocket, done: &mut Vec<u64>) {
        let mut room = BURST;
        loop {
            // An entry completes at most one frame, so `room` bounds the entries as well.
            let landing = self.landing.get_mut(..room).unwrap_or(&mut []);
            // SAFETY: the queue is of the same UMEM; what comes in is only compared.
            let came = unsafe { socket.completion.consume(landing) };
            if came == 0 {
                return;
            }
            for n in 0..came {
                let Some(chunk) = self.landing.get(n).map(chunk_at) else { break };
                if let Some(token) = self.landed(chunk) {
                    done.push(token);
                    room -= 1;
                }
            }
        }
    }

    /// One fragment has left. The token of its frame, if it was the last one.
    fn landed(&mut self, chunk: u32) -> Option<u64> {
        if chunk >= self.control_from {
            self.control_free.push(chunk);
            return None;
        }
        // Nearly always the first flight; a driver that completes out of order costs a search.
        let shared = &self.shared;
        let flight = self.flights.iter_mut().find(|f| f.left > 0 && f.has(shared, chunk))?;
        flight.left -= 1;
        self.used -= 1;
        let token = (flight.left == 0).then_some(flight.token);
        while self.flights.front().is_some_and(|flight| flight.left == 0) {
            self.flights.pop_front();
        }
        token
    }

    /// Gives up on frames in flight, at most a burst: their netdev is gone, so no completion
    /// will come.
    pub(crate) fn abandon(&mut self, done: &mut Vec<u64>) {
        let mut room = BURST;
        self.data.clear();
        while room > 0 {
            let Some(flight) = self.flights.pop_front() else { break };
            self.used -= u32::from(flight.left);
            if flight.left > 0 {
                done.push(flight.token);
                room -= 1;
            }
        }
    }

    /// Hands over the tokens of all frames in flight and the reserved chunks. The socket must be
    /// closed before.
    pub(crate) fn close(self) -> (Vec<u64>, Vec<u32>) {
        let open = self.flights.iter().filter(|flight| flight.left > 0);
        (open.map(|flight| flight.token).collect(), self.control_chunks)
    }
}

impl InFlight {
    fn has(&self, shared: &Shared, chunk: u32) -> bool {
        if self.first == chunk {
            return true;
        }
        let next = |at: &u32| shared.next(*at);
        let rest = std::iter::successors(Some(self.first), next).take(usize::from(self.fragments));
        self.fragments > 1 && rest.skip(1).any(|at| at == chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::sizing::Layout;

    /// A sender over a memory whose chunks 0.. are frames of one fragment.
    fn sender(ring: u32) -> Sender {
        let (memory, _) = Memory::new(&Layout::even(64, 1).unwrap()).unwrap();
        for chunk in 0..64 {
            memory.0.compose(chunk, 60, None);
        }
        let control = memory.0.take_control().unwrap();
        Sender::new(memory.0, ring, control)
    }

    fn link(sender: &Sender, chunk: u32, next: u32) {
        sender.shared.compose(chunk, 3840, Some(next));
    }

    #[test]
    fn completions_in_any_order_give_each_token_once() {
        let mut sender = sender(64);
        for chunk in 0..8 {
            assert!(sender.stage(chunk, 100 + u64::from(chunk)));
        }
        let order = [3, 0, 1, 7, 2, 6, 4, 5];
        for (n, chunk) in order.into_iter().enumerate() {
            assert_eq!(sender.landed(chunk), Some(100 + u64::from(chunk)));
            assert_eq!(sender.landed(chunk), None);
            assert_eq!(sender.used(), 7 - n as u32);
        }
        assert!(sender.flights.is_empty());
    }

    #[test]
    fn a_frame_of_fragments_is_complete_with_the_last_one() {
        let mut sender = sender(64);
        link(&sender, 10, 20);
        link(&sender, 20, 30);
        assert!(sender.stage(10, 1) && sender.stage(11, 2));
        let more: Vec<bool> = sender.data.iter().map(FrameDesc::has_more_frames).collect();
        assert_eq!(more, [true, true, false, false]);
        assert_eq!(sender.landed(30), None);
        assert_eq!(sender.landed(11), Some(2));
        assert_eq!(sender.landed(10), None);
        assert_eq!(sender.landed(20), Some(1));
        assert_eq!((sender.used(), sender.flights.len()), (0, 0));
    }

    #[test]
    fn a_frame_that_fits_in_part_is_not_staged() {
        let mut sender = sender(32);
        assert_eq!(sender.room(), 32 - CONTROL_SLOTS);
        (0..14).for_each(|chunk| assert!(sender.stage(chunk, 0)));
        link(&sender, 20, 21);
        link(&sender, 21, 22);
        assert!(!sender.stage(20, 9));
        assert_eq!((sender.data.len(), sender.room(), sender.flights.len()), (14, 2, 14));
        link(&sender, 30, 31);
        assert!(sender.stage(30, 9));
        assert_eq!(sender.room(), 0);
        assert!(sender.stage_control(&[0; 60]));
    }

    #[test]
    fn frames_that_are_abandoned_give_their_tokens_once() {
        let mut sender = sender(64);
        (0..40).for_each(|chunk| assert!(sender.stage(chunk, chunk.into())));
        assert_eq!(sender.landed(5), Some(5));
        let mut done = Vec::new();
        sender.abandon(&mut done);
        sender.abandon(&mut done);
        assert_eq!(done, (0..40).filter(|n| *n != 5).collect::<Vec<u64>>());
        assert_eq!((sender.used(), sender.close().0.len()), (0, 0));
    }
}
