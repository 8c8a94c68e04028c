//! Pauses that a port receives (SPEC 4.2): frames in, stopped queues out.

use super::{PauseCounts, PauseMeter};
use crate::ids::{PerPriority, Priority, PrioritySet, QueueSet};
use crate::profile::{ClassMaps, PfcSpec};
use crate::units::{BitRate, Nanos, Quanta, Time};
use holdfast_wire::mac_control::{InvalidKind, MacControl};
use holdfast_wire::MacAddr;

/// The receiving side of one port's PFC. Owned by the port's worker.
///
/// A priority is paused from the frame that says so up to, not including, `now + quanta`.
#[derive(Debug)]
pub struct PauseReceiver {
    enabled: PrioritySet,
    link_pause: bool,
    speed: BitRate,
    until: PerPriority<Time>,
    /// Priorities whose pause was begun and not closed; it may have run out.
    begun: PrioritySet,
    link_until: Time,
    /// No pause of any kind lasts longer than this: nothing to look at from then on.
    latest: Time,
    counts: PerPriority<PauseCounts>,
    meters: PerPriority<PauseMeter>,
    /// When the last pause of each priority was received.
    heard: PerPriority<Time>,
    /// The source address of the last PFC or PAUSE frame.
    source: Option<MacAddr>,
    not_enabled: PerPriority<u64>,
    invalid: [u64; InvalidKind::COUNT],
    link_frames: u64,
}

impl PauseReceiver {
    /// A receiver whose port is not paused.
    pub fn new(spec: &PfcSpec, speed: BitRate) -> Self {
        Self {
            enabled: spec.enabled,
            link_pause: spec.link_pause,
            speed,
            until: PerPriority::default(),
            begun: PrioritySet::EMPTY,
            link_until: Time::default(),
            latest: Time::default(),
            counts: PerPriority::default(),
            meters: PerPriority::default(),
            heard: PerPriority::default(),
            source: None,
            not_enabled: PerPriority::default(),
            invalid: [0; InvalidKind::COUNT],
            link_frames: 0,
        }
    }

    /// Obeys and counts one received frame. `now` never goes back.
    pub fn receive(&mut self, frame: &MacControl, now: Time) {
        match *frame {
            MacControl::Pfc { enable, quanta } => {
                for priority in PrioritySet(enable).iter() {
                    self.pause(priority, Quanta(quanta[priority.index()]), now);
                }
            }
            MacControl::Pause { quanta } => {
                self.link_frames += 1;
                if self.link_pause {
                    self.link_until = now.after(Quanta(quanta).at(self.speed));
                    self.latest = self.latest.max(self.link_until);
                }
            }
            MacControl::Invalid(kind) => self.invalid[kind.index()] += 1,
        }
    }

    /// Notes the source address of a frame that [`receive`](Self::receive) was given; some hosts
    /// leave it zero.
    pub fn note_source(&mut self, source: MacAddr) {
        self.source = Some(source);
    }

    /// The source address of the last PFC or PAUSE frame since the link came up: the port of the
    /// switch or host at the other end.
    pub const fn source(&self) -> Option<MacAddr> {
        self.source
    }

    fn pause(&mut self, priority: Priority, quanta: Quanta, now: Time) {
        let was_paused = self.is_paused(priority, now);
        let counts = &mut self.counts[priority];
        match (quanta.0, was_paused) {
            (0, _) => counts.xon += 1,
            (_, true) => counts.refresh += 1,
            (_, false) => counts.xoff += 1,
        }
        if !self.enabled.contains(priority) {
            self.not_enabled[priority] += 1;
            return;
        }
        if !was_paused || quanta == Quanta(0) {
            self.end(priority, now);
        }
        if quanta == Quanta(0) {
            return;
        }
        if !was_paused {
            self.meters[priority].begin(now);
        }
        self.begun = self.begun.with(priority);
        self.until[priority] = now.after(quanta.at(self.speed));
        self.latest = self.latest.max(self.until[priority]);
        self.heard[priority] = now;
    }

    /// Whether anything may be paused at `now`; cheaper than to ask what.
    #[inline]
    pub fn may_pause(&self, now: Time) -> bool {
        now < self.latest
    }

    /// When a pause of `priority` was received last, resumes not counted.
    pub fn heard(&self, priority: Priority) -> Time {
        self.heard[priority]
    }

    /// Until when `priority` is paused; not after `now` if it isn't.
    pub fn paused_until(&self, priority: Priority) -> Time {
        self.until[priority]
    }

    /// Whether `priority` is paused by PFC at `now`.
    #[inline]
    pub fn is_paused(&self, priority: Priority, now: Time) -> bool {
        now < self.until[priority]
    }

    /// Whether the whole port is paused by 802.3x PAUSE at `now`.
    #[inline]
    pub fn is_link_paused(&self, now: Time) -> bool {
        now < self.link_until
    }

    /// The priorities that PFC pauses at `now`.
    #[inline]
    pub fn paused_priorities(&self, now: Time) -> PrioritySet {
        if now >= self.latest {
            return PrioritySet::EMPTY;
        }
        let (mut paused, mut left) = (PrioritySet::EMPTY, self.begun.0);
        while left != 0 {
            let priority = Priority::from_bits(left.trailing_zeros() as u8);
            if self.is_paused(priority, now) {
                paused = paused.with(priority);
            }
            left &= left - 1;
        }
        paused
    }

    /// The queues that must not send at `now`: those of the paused priorities, all of them while
    /// the link is paused.
    #[inline]
    pub fn paused_queues(&self, now: Time, maps: &ClassMaps) -> QueueSet {
        if now >= self.latest {
            return QueueSet::EMPTY;
        }
        if self.is_link_paused(now) {
            return QueueSet(u8::MAX);
        }
        let (mut queues, mut left) = (QueueSet::EMPTY, self.paused_priorities(now).0);
        while left != 0 {
            let priority = Priority::from_bits(left.trailing_zeros() as u8);
            queues = queues.or(maps.priority_to_queues[priority]);
            left &= left - 1;
        }
        queues
    }

    /// The next instant after `now` at which a pause runs out.
    pub fn deadline(&self, now: Time) -> Time {
        if now >= self.latest {
            return Time::NEVER;
        }
        let ends = self.until.0.iter().chain([&self.link_until]);
        ends.copied().filter(|end| now < *end).min().unwrap_or(Time::NEVER)
    }

    /// Takes over a changed profile. What is no longer enabled resumes at once; pauses that run
    /// keep their end.
    pub fn adopt(&mut self, spec: &PfcSpec, speed: BitRate, now: Time) {
        self.enabled = spec.enabled;
        self.link_pause = spec.link_pause;
        self.speed = speed;
        for priority in Priority::all().filter(|priority| !spec.enabled.contains(*priority)) {
            self.end(priority, now);
        }
        if !spec.link_pause {
            self.link_until = Time::default();
        }
    }

    /// The link went down: what its peer had asked for is void.
    pub fn forget(&mut self, now: Time) {
        Priority::all().for_each(|priority| self.end(priority, now));
        self.link_until = Time::default();
        self.latest = Time::default();
        self.source = None;
    }

    /// Frames received for `priority` by kind, obeyed or not.
    pub fn counts(&self, priority: Priority) -> PauseCounts {
        self.counts[priority]
    }

    /// Of these, those that were not obeyed because PFC isn't enabled on `priority`.
    pub fn not_enabled(&self, priority: Priority) -> u64 {
        self.not_enabled[priority]
    }

    /// Frames without effect, by kind.
    pub fn invalid(&self, kind: InvalidKind) -> u64 {
        self.invalid[kind.index()]
    }

    /// 802.3x PAUSE frames, obeyed or not.
    pub fn link_frames(&self) -> u64 {
        self.link_frames
    }

    /// What is left at `now` of the pause of `priority`.
    pub fn remaining(&self, priority: Priority, now: Time) -> Nanos {
        self.until[priority].since(now)
    }

    /// How long `priority` was paused, up to `now`.
    pub fn paused_time(&self, priority: Priority, now: Time) -> Nanos {
        self.meters[priority].total_at(now.min(self.until[priority]))
    }

    /// How often `priority` went into pause.
    pub fn transitions(&self, priority: Priority) -> u64 {
        self.meters[priority].transitions
    }

    /// Closes the account of a pause that ended at `now`, or ran out before.
    fn end(&mut self, priority: Priority, now: Time) {
        self.meters[priority].end(now.min(self.until[priority]));
        self.until[priority] = Time::default();
        self.begun.0 &= !PrioritySet::only(priority).0;
    }
}
