//! The receiving side of PFC in a host: which priorities are paused, and until when (SPEC 4.2).

use holdfast_wire::{InvalidKind, MacControl};
use serde::Serialize;

use crate::time::{BitRate, Nanos, Time};

/// Pause state of one link.
#[derive(Clone, Debug)]
pub struct PfcReceiver {
    speed: BitRate,
    enabled: u8,
    link_pause: bool,
    priorities: [Pause; 8],
    frames: u64,
    pause_frames: u64,
    invalid: [u64; InvalidKind::COUNT],
}

#[derive(Clone, Copy, Debug, Default)]
struct Pause {
    /// From where the pause that is running has not been added to `total` yet.
    since: Option<Time>,
    until: Time,
    total: Nanos,
    xoff: u64,
    xon: u64,
}

impl Pause {
    /// Adds what has passed of a running pause.
    fn settle(&mut self, now: Time) {
        if let Some(since) = self.since {
            self.total += self.until.min(now).since(since);
            self.since = (now < self.until).then_some(now);
        }
    }

    fn set(&mut self, now: Time, span: Nanos) {
        self.settle(now);
        self.until = now + span;
        self.since = (span > Nanos(0)).then_some(now);
        if span > Nanos(0) {
            self.xoff += 1;
        } else {
            self.xon += 1;
        }
    }
}

/// What [`PfcReceiver`] has seen. Arrays are indexed by priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PfcReport {
    /// Valid PFC frames.
    pub pfc_frames: u64,
    /// 802.3x PAUSE frames, obeyed or not.
    pub pause_frames: u64,
    /// Times above 0 that were obeyed.
    pub xoff: [u64; 8],
    /// Times of 0 that were obeyed.
    pub xon: [u64; 8],
    /// How long each priority has been paused.
    pub pause_ns: [u64; 8],
    /// MAC control frames without effect, by kind in the order of `InvalidKind::ALL`.
    #[serde(skip)]
    pub invalid: [u64; InvalidKind::COUNT],
}

impl PfcReceiver {
    /// Nothing paused. `speed` turns quanta into time; bit n of `enabled` makes priority n obey
    /// PFC; `link_pause` makes all obey 802.3x PAUSE instead.
    pub fn new(speed: BitRate, enabled: u8, link_pause: bool) -> Self {
        Self {
            speed,
            enabled,
            link_pause,
            priorities: [Pause::default(); 8],
            frames: 0,
            pause_frames: 0,
            invalid: [0; InvalidKind::COUNT],
        }
    }

    /// Takes one MAC control frame: a new time replaces the old one, 0 resumes at once, a clear
    /// bit leaves its priority alone.
    pub fn receive(&mut self, now: Time, frame: &MacControl) {
        self.count(frame);
        self.obey(now, frame, self.asked(frame));
    }

    /// Counts a frame that arrived, obeyed or not.
    pub(crate) fn count(&mut self, frame: &MacControl) {
        match *frame {
            MacControl::Pfc { .. } => self.frames += 1,
            MacControl::Pause { .. } => self.pause_frames += 1,
            MacControl::Invalid(kind) => {
                if let Some(count) = self.invalid.get_mut(kind.index()) {
                    *count += 1;
                }
            }
        }
    }

    /// The priorities that a frame asks something of and that obey its kind.
    pub(crate) fn asked(&self, frame: &MacControl) -> u8 {
        match *frame {
            MacControl::Pfc { enable, .. } => enable & self.enabled,
            MacControl::Pause { .. } if self.link_pause => u8::MAX,
            MacControl::Pause { .. } | MacControl::Invalid(_) => 0,
        }
    }

    /// Does at `now` what a frame asks of the priorities in `heard`.
    pub(crate) fn obey(&mut self, now: Time, frame: &MacControl, heard: u8) {
        let quanta = match *frame {
            MacControl::Pfc { quanta, .. } => quanta,
            MacControl::Pause { quanta } => [quanta; 8],
            MacControl::Invalid(_) => return,
        };
        for (n, (pause, &quanta)) in self.priorities.iter_mut().zip(&quanta).enumerate() {
            if heard >> n & 1 == 1 {
                pause.set(now, self.speed.quanta(quanta));
            }
        }
    }

    /// Until when `priority` (0 to 7) is paused; `None` if it may send.
    pub fn paused_until(&self, priority: u8, now: Time) -> Option<Time> {
        let pause = self.priorities.get(usize::from(priority))?;
        (now < pause.until).then_some(pause.until)
    }

    /// All counts, a running pause up to `now` included.
    pub fn report(&self, now: Time) -> PfcReport {
        let mut settled = self.priorities;
        settled.iter_mut().for_each(|pause| pause.settle(now));
        PfcReport {
            pfc_frames: self.frames,
            pause_frames: self.pause_frames,
            xoff: settled.map(|pause| pause.xoff),
            xon: settled.map(|pause| pause.xon),
            pause_ns: settled.map(|pause| pause.total.0),
            invalid: self.invalid,
        }
    }
}
