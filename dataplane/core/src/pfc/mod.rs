//! PFC of one port (IEEE 802.1Qbb, SPEC 4): what is sent to its peer, what is obeyed from it.
//!
//! [`tx`] turns the levels of three causes into XOFF, refresh and XON frames; [`rx`] turns received
//! frames into the queues that must stop. [`peer`] watches whether the first are obeyed,
//! [`watchdog`] finds pauses that don't end. All belong to the port's owner worker; none has a
//! clock, and none touches a frame's bytes (`holdfast_wire::mac_control` does).

pub mod peer;
pub mod rx;
pub mod tx;
pub mod watchdog;

use crate::units::{Nanos, Time};

pub use peer::{Peer, PeerWatch};
pub use rx::PauseReceiver;
pub use tx::{PauseCause, PauseFrame, PauseSender};

/// PFC frames of one priority by kind, as `holdfast_pfc_*_frames_total` reports them.
///
/// A frame that names several priorities counts once for each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseCounts {
    /// A time above 0 for a priority that was not paused.
    pub xoff: u64,
    /// A time above 0 for a priority that was paused already.
    pub refresh: u64,
    /// Time 0.
    pub xon: u64,
}

/// How long and how often one priority was paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PauseMeter {
    total: Nanos,
    transitions: u64,
    since: Option<Time>,
}

impl PauseMeter {
    /// A pause begins.
    fn begin(&mut self, now: Time) {
        self.since = Some(now);
        self.transitions += 1;
    }

    /// The pause ended at `end`; nothing if there was none.
    fn end(&mut self, end: Time) {
        self.total = self.total_at(end);
        self.since = None;
    }

    /// Time paused so far, a pause that still lasts included up to `now`.
    fn total_at(&self, now: Time) -> Nanos {
        let running = self.since.map_or(0, |since| now.since(since).0);
        Nanos(self.total.0.saturating_add(running))
    }
}
