//! Frames that came while the worker was late and whose PG has no room yet (SPEC 4.3).
//!
//! After a stall the RX ring may hold more lossless frames than Headroom has room for, although the
//! peer obeys: it sent them while nobody could pause it. The port is in `rx_backlog` then, which
//! has paused the peer, and a frame to a PG in XOFF waits here, as if it were still in the ring,
//! until its PG has left XOFF or the pause is old. It takes no Headroom before: that is for what
//! the peer sends until it has seen the pause, which a worker that was late has sent late. It isn't
//! left in the ring, because MAC control behind it must be seen. What waits counts as backlog, and
//! the ring is lent fewer chunks for it, so ring and waiting frames together are never more than
//! the ring's entries; an eighth of them stays with the ring.

use crate::ids::{PerPg, PgId};
use crate::io::Received;
use crate::units::Nanos;
use std::collections::VecDeque;

/// When a peer that obeys has sent the last frame of a class that it was told to pause: long, for
/// it may be late itself.
pub(crate) const ANSWERED: Nanos = Nanos::millis(20);

/// The waiting frames of one port, each PG's in order.
pub(crate) struct LateFrames {
    pgs: PerPg<VecDeque<Received>>,
    /// Their bytes.
    bytes: PerPg<u64>,
    frames: u32,
    most: u32,
}

/// How many frames wait at most: an eighth of the ring is always lent, for MAC control and for
/// classes that have room. It is more than the backlog at which a stall may begin.
const fn of(entries: u32) -> u32 {
    entries - entries / 8
}

impl LateFrames {
    /// Room for frames of RX rings of so many entries. It never grows.
    pub(crate) fn new(entries: u32) -> Self {
        let most = of(entries);
        Self {
            pgs: PerPg::from_fn(|_| VecDeque::with_capacity(most as usize)),
            bytes: PerPg::default(),
            frames: 0,
            most,
        }
    }

    /// The port has other rings from now on, of so many entries. What waits already stays.
    pub(crate) fn hold(&mut self, entries: u32) {
        let most = of(entries);
        let more = (most as usize).saturating_sub(self.frames as usize);
        self.pgs.iter_mut().for_each(|(_, frames)| frames.reserve(more));
        self.most = most;
    }

    /// Frames that wait.
    #[inline]
    pub(crate) const fn frames(&self) -> u32 {
        self.frames
    }

    /// Bytes of each PG that wait.
    pub(crate) const fn bytes(&self) -> &PerPg<u64> {
        &self.bytes
    }

    /// Whether no more can wait.
    pub(crate) const fn is_full(&self) -> bool {
        self.frames >= self.most
    }

    /// Whether one of this PG waits: those that come after it must wait behind it.
    #[inline(always)]
    pub(crate) fn waits(&self, pg: PgId) -> bool {
        self.frames > 0 && !self.pgs[pg].is_empty()
    }

    /// Lets a frame wait behind the others of its PG.
    ///
    /// # Errors
    /// The frame again, if there is no room.
    pub(crate) fn push(&mut self, pg: PgId, frame: Received) -> Result<(), Received> {
        if self.is_full() {
            return Err(frame);
        }
        self.frames += 1;
        self.bytes[pg] += u64::from(frame.len.0);
        self.pgs[pg].push_back(frame);
        Ok(())
    }

    /// Takes the first frame of a PG out, to be tried again.
    pub(crate) fn pop(&mut self, pg: PgId) -> Option<Received> {
        let frame = self.pgs[pg].pop_front()?;
        self.frames -= 1;
        self.bytes[pg] -= u64::from(frame.len.0);
        Some(frame)
    }

    /// Puts a frame back that [`pop`](Self::pop) gave.
    pub(crate) fn put_back(&mut self, pg: PgId, frame: Received) {
        self.frames += 1;
        self.bytes[pg] += u64::from(frame.len.0);
        self.pgs[pg].push_front(frame);
    }
}
