//! Whether the peer of a port obeys PFC (SPEC 4.3), from what comes in while it is told to stop.
//!
//! Each lossless PG is watched whose priorities are all told XOFF, from a [`GRACE`] after the frame
//! on, in windows of [`WINDOW`]. What counts is bytes of the PG: admitted, dropped, or waiting for
//! room.
//!
//! - **Deaf**: in two windows in a row came more than two bursts of the largest frame, or more than
//!   half of what the port's speed allows, whichever is less; and since XOFF more than was under
//!   way at most: a full RX ring of the largest frame, and Headroom.
//! - **Obeys**: in one window came no more than two of the largest frame, and there is nothing
//!   that the worker can't have seen: no frame in the RX ring, and chunks for more.
//! - Else what was known before stays: **unknown** at first.
//!
//! A window that ends late by more than its own length is not judged: it is the worker that stood
//! still. A pause that had run out before its refresh begins anew with it, for the peer was right
//! to send. A peer is deaf while it is for any PG. What is known is forgotten with the link.

use super::PauseSender;
use crate::counters::PgCounters;
use crate::ids::{PerPg, PgId, PrioritySet};
use crate::io::BURST;
use crate::profile::{PgSpec, PortSpec};
use crate::units::{Bytes, CellSize, Nanos, Time};

/// The response time that a peer is given, and frames on the wire.
pub const GRACE: Nanos = Nanos::millis(1);
/// Over how long it is watched at a time.
pub const WINDOW: Nanos = Nanos::millis(10);
/// A window that lasted longer isn't judged.
const LATE: Nanos = Nanos(2 * WINDOW.0);
/// So many windows in a row make a peer deaf.
const WINDOWS: u8 = 2;

/// What is known of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Peer {
    /// Nothing: it was not paused long enough.
    #[default]
    Unknown,
    /// It stopped when it was told.
    Obeys,
    /// It went on: lossless can't hold for it.
    Deaf,
}

/// What a port's owner sees when it looks.
pub(crate) struct Sight<'a> {
    pub(crate) now: Time,
    pub(crate) sender: &'a PauseSender,
    pub(crate) spec: &'a PortSpec,
    pub(crate) cell: CellSize,
    pub(crate) counters: &'a PerPg<PgCounters>,
    /// Bytes that wait for room and are in no counter yet.
    pub(crate) late: &'a PerPg<u64>,
    /// Entries of the RX ring.
    pub(crate) ring: u32,
    /// Whether there may be frames that the worker hasn't looked at.
    pub(crate) unseen: bool,
}

/// The watch over the peer of one port. Owned by the port's worker.
#[derive(Debug, Default)]
pub struct PeerWatch {
    told: PrioritySet,
    next: Time,
    watches: PerPg<Option<Watch>>,
    known: PerPg<Peer>,
}

/// One pause of one PG.
#[derive(Clone, Copy, Debug)]
struct Watch {
    /// When it was told.
    begun: Time,
    /// Bytes of the PG until then.
    before: u64,
    window: Option<Window>,
    /// Windows in a row in which too much came.
    loud: u8,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    from: Time,
    /// Bytes of the PG until then.
    before: u64,
}

/// Bytes that decide.
struct Bounds {
    /// More than this in a window is too much.
    much: u64,
    /// No more than this is nothing.
    little: u64,
    /// No more than this was under way when the pause began.
    under_way: u64,
}

impl PeerWatch {
    /// What is known of the peer.
    pub fn known(&self) -> Peer {
        let is = |peer: Peer| self.known.iter().any(|(_, known)| *known == peer);
        match (is(Peer::Deaf), is(Peer::Obeys)) {
            (true, _) => Peer::Deaf,
            (false, true) => Peer::Obeys,
            (false, false) => Peer::Unknown,
        }
    }

    /// Whether it is time to [`look`](Self::look), with these priorities told XOFF.
    #[inline]
    pub(crate) fn is_due(&self, told: PrioritySet, now: Time) -> bool {
        told != self.told || now >= self.next && told != PrioritySet::EMPTY
    }

    /// Looks at every PG.
    pub(crate) fn look(&mut self, sight: &Sight<'_>) {
        self.told = sight.sender.paused();
        self.next = Time::NEVER;
        for (pg, spec) in sight.spec.pgs.iter() {
            let counters = &sight.counters[pg];
            let bytes = counters.admitted.bytes + counters.dropped_bytes + sight.late[pg];
            let Some(begun) = sight.paused_since(spec) else {
                self.watches[pg] = None;
                continue;
            };
            let mut watch = match self.watches[pg] {
                Some(watch) if watch.begun == begun => watch,
                _ => Watch { begun, before: bytes, window: None, loud: 0 },
            };
            if let Some(peer) = watch.look(sight, pg, bytes) {
                self.known[pg] = peer;
            }
            self.next = self.next.min(watch.due());
            self.watches[pg] = Some(watch);
        }
    }

    /// The profile is another one: pauses under way are watched as if they began now.
    pub(crate) fn begin_anew(&mut self) {
        (self.told, self.watches) = (PrioritySet::EMPTY, PerPg::default());
    }

    /// The link went down: who comes back may be somebody else.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Watch {
    /// When to look at it next.
    const fn due(&self) -> Time {
        match self.window {
            Some(window) => window.from.after(WINDOW),
            None => self.begun.after(GRACE),
        }
    }

    /// What follows now that the PG has counted `bytes`, if anything does.
    fn look(&mut self, sight: &Sight<'_>, pg: PgId, bytes: u64) -> Option<Peer> {
        if sight.now < self.due() {
            return None;
        }
        let ended = self.window.replace(Window { from: sight.now, before: bytes })?;
        let came = bytes.saturating_sub(ended.before);
        let bounds = Bounds::of(sight, &sight.spec.pgs[pg]);
        let late = sight.now.since(ended.from) > LATE;
        if late || came <= bounds.much {
            self.loud = 0;
            let stopped = !late && came <= bounds.little && !sight.unseen;
            return stopped.then_some(Peer::Obeys);
        }
        self.loud = self.loud.saturating_add(1);
        let all = bytes.saturating_sub(self.before);
        (self.loud >= WINDOWS && all > bounds.under_way).then_some(Peer::Deaf)
    }
}

impl Sight<'_> {
    /// Since when the peer is told to send nothing of a lossless PG; `None` if it may.
    fn paused_since(&self, pg: &PgSpec) -> Option<Time> {
        let (told, priorities) = (self.sender.paused(), pg.priorities);
        if !pg.lossless || priorities.and(told) != priorities {
            return None;
        }
        priorities.iter().map(|priority| self.sender.told_since(priority)).max()
    }
}

impl Bounds {
    fn of(sight: &Sight<'_>, pg: &PgSpec) -> Self {
        let largest = u64::from(sight.spec.largest_frame());
        let Bytes(line) = sight.spec.speed.bytes_in(WINDOW);
        let headroom = u64::from(pg.headroom.0) * u64::from(sight.cell.bytes());
        Self {
            much: (2 * BURST as u64 * largest).min(line / 2),
            little: 2 * largest,
            under_way: u64::from(sight.ring) * largest + headroom,
        }
    }
}
