//! A frame inside the switch: its memory, its receipt, and the 64-bit descriptor that carries both.
//!
//! A [`FrameHandle`] owns memory, a [`Charge`] owns cells; neither can be copied, so each frame has
//! one owner and each charge is released once (DESIGN law 3). Rings and queues hold the packed
//! [`Descriptor`], which owns both until it is unpacked.

use crate::ids::{PgId, PortId, QueueId};
use crate::units::{CellSize, Cells, FrameLen};
pub use holdfast_wire::{Ecn, L3Kind};

const CHUNK_BITS: u32 = 22;
const LEN_BITS: u32 = 14;

/// Chunks of frame memory a switch can have: what the descriptor's field holds.
pub const MAX_CHUNKS: u32 = 1 << CHUNK_BITS;
/// The longest frame a descriptor can describe, in bytes.
pub const MAX_FRAME_LEN: u16 = (1 << LEN_BITS) - 1;

/// Ownership of one frame's memory: the number of its first chunk. Move-only.
#[derive(Debug, PartialEq, Eq)]
pub struct FrameHandle(u32);

impl FrameHandle {
    /// Takes ownership of the frame that starts in chunk `chunk`.
    ///
    /// For the implementations of [`crate::io::FramePool`] only: there must be no other handle of
    /// this chunk. The number is cut to 22 bits.
    #[inline]
    pub const fn own(chunk: u32) -> Self {
        Self(chunk & (MAX_CHUNKS - 1))
    }

    /// The first chunk's number.
    #[inline]
    pub const fn chunk(&self) -> u32 {
        self.0
    }

    /// Gives ownership up and returns the first chunk's number.
    #[inline]
    pub const fn into_chunk(self) -> u32 {
        self.0
    }
}

/// The receipt of an admission: which account was charged and how much (SPEC 3.4). Move-only;
/// made by `Mmu::admit`, consumed by `Mmu::release`.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "cells stay charged until the receipt is released"]
pub struct Charge {
    port: PortId,
    pg: PgId,
    cells: Cells,
}

impl Charge {
    pub(crate) const fn new(port: PortId, pg: PgId, cells: Cells) -> Self {
        Self { port, pg, cells }
    }

    /// Joins two receipts of one PG: releasing the sum takes the same cells back.
    ///
    /// # Errors
    /// `other` again, if it is of another PG.
    #[inline]
    pub(crate) fn absorb(&mut self, other: Self) -> Result<(), Self> {
        if (self.port, self.pg) != (other.port, other.pg) {
            return Err(other);
        }
        self.cells.0 += other.cells.0;
        Ok(())
    }

    /// The ingress port whose account was charged.
    #[inline]
    pub const fn port(&self) -> PortId {
        self.port
    }

    /// The priority group that was charged.
    #[inline]
    pub const fn pg(&self) -> PgId {
        self.pg
    }

    /// Cells charged.
    #[inline]
    pub const fn cells(&self) -> Cells {
        self.cells
    }
}

/// A frame that was admitted and is on its way to one egress queue.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its memory.
    pub handle: FrameHandle,
    /// Its receipt.
    pub charge: Charge,
    /// Its length.
    pub len: FrameLen,
    /// Where it goes.
    pub egress: PortId,
    /// The queue there.
    pub queue: QueueId,
    /// VLAN tags before the IP header, 0..=3.
    pub tags: u8,
    /// What the header after the tags is.
    pub l3: L3Kind,
    /// Its ECN field on arrival; Not-ECT for what isn't IP.
    pub ecn: Ecn,
    /// Charged to a lossless PG: never dropped at egress (SPEC 3.5).
    pub lossless: bool,
    /// One of several copies: immutable, shares memory and receipt (SPEC 3.5).
    pub copy: bool,
    /// The one that is being timed, see [`crate::probe`].
    pub timed: bool,
}

/// A [`Frame`] in 64 bits: what queues and hand-over rings hold. Move-only.
#[derive(Debug, PartialEq, Eq)]
pub struct Descriptor(u64);

const LEN_AT: u32 = CHUNK_BITS;
const INGRESS_AT: u32 = LEN_AT + LEN_BITS;
const PG_AT: u32 = INGRESS_AT + 6;
const EGRESS_AT: u32 = PG_AT + 3;
const QUEUE_AT: u32 = EGRESS_AT + 6;
const TAGS_AT: u32 = QUEUE_AT + 3;
const L3_AT: u32 = TAGS_AT + 2;
const ECN_AT: u32 = L3_AT + 2;
const LOSSLESS_AT: u32 = ECN_AT + 2;
const COPY_AT: u32 = LOSSLESS_AT + 1;
const TIMED_AT: u32 = COPY_AT + 1;
const _: () = assert!(TIMED_AT < 64, "a frame must fit into one descriptor");

impl Descriptor {
    /// As a plain word, for a ring or a token; [`Descriptor::from_word`] takes it back.
    #[inline]
    pub const fn into_word(self) -> u64 {
        self.0
    }

    /// Takes the ownership back that [`Descriptor::into_word`] put into a word: once per word.
    #[inline]
    pub const fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// The frame's length, without taking it out.
    #[inline]
    pub const fn len(&self) -> FrameLen {
        FrameLen(((self.0 >> LEN_AT) & (MAX_FRAME_LEN as u64)) as u16)
    }

    /// The number of the frame's first chunk, without taking the frame out.
    #[inline]
    pub const fn chunk(&self) -> u32 {
        self.0 as u32 & (MAX_CHUNKS - 1)
    }

    /// The frame's ECN field on arrival, without taking the frame out.
    #[inline]
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_bits((self.0 >> ECN_AT) as u8 & 3)
    }

    /// Whether it is charged to a lossless PG, without taking the frame out.
    #[inline]
    pub const fn is_lossless(&self) -> bool {
        (self.0 >> LOSSLESS_AT) & 1 == 1
    }

    /// Whether it is one of several copies, without taking the frame out.
    #[inline]
    pub const fn is_copy(&self) -> bool {
        (self.0 >> COPY_AT) & 1 == 1
    }

    /// The same frame, being timed.
    #[inline]
    pub(crate) const fn timed(self) -> Self {
        Self(self.0 | 1 << TIMED_AT)
    }

    /// The account that it is charged to, without taking the frame out.
    #[inline]
    pub const fn account(&self) -> (PortId, PgId) {
        let ingress = PortId::from_bits((self.0 >> INGRESS_AT) as u8);
        (ingress, PgId::from_bits((self.0 >> PG_AT) as u8))
    }

    /// The egress port, without taking the frame out.
    #[inline]
    pub const fn egress(&self) -> PortId {
        PortId::from_bits((self.0 >> EGRESS_AT) as u8)
    }

    /// The egress queue, without taking the frame out.
    #[inline]
    pub const fn queue(&self) -> QueueId {
        QueueId::from_bits((self.0 >> QUEUE_AT) as u8)
    }

    /// The frame again, with the receipt in cells of this switch's size.
    #[inline]
    pub const fn unpack(self, cell: CellSize) -> Frame {
        let w = self.0;
        let len = self.len();
        let (ingress, pg) = self.account();
        Frame {
            handle: FrameHandle::own(w as u32),
            charge: Charge::new(ingress, pg, len.to_cells(cell)),
            len,
            egress: self.egress(),
            queue: self.queue(),
            tags: ((w >> TAGS_AT) & 3) as u8,
            l3: L3Kind::from_bits((w >> L3_AT) as u8 & 3),
            ecn: self.ecn(),
            lossless: self.is_lossless(),
            copy: self.is_copy(),
            timed: is_timed(w),
        }
    }
}

impl Frame {
    /// Packs the frame; its cells are what its length takes, so they need no field.
    #[inline]
    pub const fn pack(self) -> Descriptor {
        let Self { handle, charge, len, egress, queue, tags, l3, ecn, lossless, copy, timed } =
            self;
        let account = (charge.port, charge.pg);
        let stamp = Stamp::new(account, (egress, queue), (tags, l3, ecn), lossless, copy);
        let descriptor = stamp.on(handle, charge, len);
        if timed {
            return descriptor.timed();
        }
        descriptor
    }
}

/// Whether any of the words of descriptors that were joined by "or" is of a frame that is timed.
#[inline]
pub(crate) const fn is_timed(words: u64) -> bool {
    words & 1 << TIMED_AT != 0
}

/// All of a [`Descriptor`] but memory and length: what frames of one way have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    /// For frames charged to `account` on their way to `exit`.
    #[inline]
    pub(crate) const fn new(
        account: (PortId, PgId),
        exit: (PortId, QueueId),
        (tags, l3, ecn): (u8, L3Kind, Ecn),
        lossless: bool,
        copy: bool,
    ) -> Self {
        Self(
            (account.0.number() as u64) << INGRESS_AT
                | (account.1.number() as u64) << PG_AT
                | (exit.0.number() as u64) << EGRESS_AT
                | (exit.1.number() as u64) << QUEUE_AT
                | ((tags & 3) as u64) << TAGS_AT
                | (l3.bits() as u64) << L3_AT
                | (ecn.bits() as u64) << ECN_AT
                | (lossless as u64) << LOSSLESS_AT
                | (copy as u64) << COPY_AT,
        )
    }

    /// A frame of this way; the descriptor owns its memory and its receipt from now on.
    #[inline]
    pub(crate) const fn on(self, handle: FrameHandle, charge: Charge, len: FrameLen) -> Descriptor {
        let Charge { port, pg, .. } = charge;
        debug_assert!(
            (self.0 >> INGRESS_AT) as u8 % 64 == port.number()
                && (self.0 >> PG_AT) as u8 % 8 == pg.number(),
            "a frame goes by the way of the account that it is charged to"
        );
        Descriptor(handle.into_chunk() as u64 | ((len.0 & MAX_FRAME_LEN) as u64) << LEN_AT | self.0)
    }
}

impl Frame {
    /// A copy of a flooded frame on its way to `egress`: shares memory and receipt with the
    /// original, which [`crate::copies::Copies`] keeps count of.
    pub(crate) const fn copy_to(&self, egress: PortId) -> Self {
        Self {
            handle: FrameHandle(self.handle.0),
            charge: Charge { ..self.charge },
            len: self.len,
            egress,
            queue: self.queue,
            tags: self.tags,
            l3: self.l3,
            ecn: self.ecn,
            lossless: self.lossless,
            copy: true,
            timed: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packing_keeps_every_field(
            chunk in 0..MAX_CHUNKS, len in 1..=MAX_FRAME_LEN, ingress in 0u8..64, pg in 0u8..8,
            egress in 0u8..64, queue in 0u8..8, tags in 0u8..4, l3 in 0u8..3,
            ecn in 0u8..4, lossless: bool, copy: bool, timed: bool,
        ) {
            let cell = CellSize::DEFAULT;
            let make = || Frame {
                handle: FrameHandle::own(chunk),
                charge: Charge::new(
                    PortId::from_bits(ingress),
                    PgId::from_bits(pg),
                    FrameLen(len).to_cells(cell),
                ),
                len: FrameLen(len),
                egress: PortId::from_bits(egress),
                queue: QueueId::from_bits(queue),
                tags,
                l3: [L3Kind::Other, L3Kind::V4, L3Kind::V6][usize::from(l3)],
                ecn: Ecn::from_bits(ecn),
                lossless,
                copy,
                timed,
            };
            prop_assert_eq!(make().pack().unpack(cell), make());
            prop_assert_eq!(is_timed(make().pack().into_word()), timed);
        }
    }
}
