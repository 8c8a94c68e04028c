//! Bounds what lies in the TX ring, or that ring is a buffer outside the MMU (DESIGN law 4).

use crate::units::FrameLen;

/// Bytes of one port's frames between TX ring and completion. Owned by the port's worker.
#[derive(Clone, Debug)]
pub struct Pacer {
    limit: u32,
    inflight: u32,
}

impl Pacer {
    /// Nothing under way; at most `limit` bytes at once (`tx_inflight`, SPEC 4.2).
    pub const fn new(limit: u32) -> Self {
        Self { limit, inflight: 0 }
    }

    /// Takes over another limit. What is under way beyond it drains.
    pub fn adopt(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Whether a frame of this length may enter the ring. An empty ring takes any frame.
    #[inline]
    pub const fn has_room(&self, len: FrameLen) -> bool {
        self.inflight == 0 || self.inflight.saturating_add(len.0 as u32) <= self.limit
    }

    /// A frame entered the ring.
    #[inline]
    pub fn entered(&mut self, len: FrameLen) {
        self.inflight = self.inflight.saturating_add(u32::from(len.0));
    }

    /// A frame left the ring: its completion came, or the ring was given up.
    #[inline]
    pub fn left(&mut self, len: FrameLen) {
        debug_assert!(self.inflight >= u32::from(len.0), "a frame left that had not entered");
        self.inflight = self.inflight.saturating_sub(u32::from(len.0));
    }

    /// Bytes under way.
    pub const fn inflight(&self) -> u32 {
        self.inflight
    }
}
