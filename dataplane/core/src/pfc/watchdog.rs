//! The watchdog of one egress queue (SPEC 8): when a pause is a storm, and when that is over.
//!
//! Exact times, no polls: whoever owns the queue looks after each of its steps, and no later than
//! at [`QueueWatch::deadline`]. The queue's frames are none of this file's business; see
//! `watch.rs` for what is done about a storm.

use crate::profile::WatchdogSpec;
use crate::units::{Nanos, Time};

/// A storm that begins so soon after the end of the last one is one that repeats.
pub const REPEATS_WITHIN: Nanos = Nanos::millis(60_000);
/// The restoration time is multiplied by this at most.
pub const MOST_BACK_OFF: u64 = 8;
/// The share of the detection time that the queue may have been free to send, in percent.
const FREE_PERCENT: u64 = 1;

/// What its owner sees of a queue at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The instant.
    pub now: Time,
    /// Whether frames wait.
    pub waiting: bool,
    /// Frames sent ever.
    pub sent: u64,
    /// Time paused ever.
    pub paused: Nanos,
    /// When the last pause was received.
    pub heard: Time,
    /// Until when it is paused if nothing more is received; not after `now` if it isn't.
    pub paused_until: Time,
}

/// What became of the queue at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A storm began.
    Detected,
    /// It is over.
    Restored,
}

/// The watchdog of one queue.
#[derive(Clone, Debug, Default)]
pub struct QueueWatch {
    last: Option<Look>,
    /// Since when frames have waited and none was sent, from a pause on.
    stalled: Option<Time>,
    free: FreeTimes,
    /// When the storm was detected that is not over yet.
    stormed: Option<Time>,
    restored: Option<Time>,
    /// When the last storm was detected, over or not.
    detected: Option<Time>,
    /// What the restoration time is multiplied by.
    back_off: u64,
    detections: u64,
    restorations: u64,
}

impl QueueWatch {
    /// Takes notice of the queue at a later instant than before.
    pub fn look(&mut self, spec: &WatchdogSpec, look: Look) -> Option<Change> {
        let change = match self.stormed {
            None => self.look_for_storm(spec, &look),
            Some(_) => self.look_for_end(spec, &look),
        };
        self.last = Some(look);
        change
    }

    fn look_for_storm(&mut self, spec: &WatchdogSpec, look: &Look) -> Option<Change> {
        let last = self.last.filter(|last| last.sent == look.sent && look.waiting);
        let (Some(last), Some(stalled)) = (last, self.stalled) else {
            // It has sent, or it had nothing to send: the time begins anew.
            self.begin(look);
            return None;
        };
        let paused = look.paused.0.saturating_sub(last.paused.0);
        self.free.add(look.now, Nanos(look.now.since(last.now).0.saturating_sub(paused)));
        if look.now.since(stalled) < spec.detection_time || !self.was_paused(spec, look.now) {
            return None;
        }
        let repeats = self.restored.is_some_and(|end| look.now.since(end) <= REPEATS_WITHIN);
        self.back_off = match spec.back_off && repeats {
            true => (self.back_off * 2).min(MOST_BACK_OFF),
            false => 1,
        };
        (self.stormed, self.detected) = (Some(look.now), Some(look.now));
        self.detections += 1;
        Some(Change::Detected)
    }

    fn begin(&mut self, look: &Look) {
        let paused = look.waiting && look.now < look.paused_until;
        // The pause may have come after the step began whose time this is.
        self.stalled = paused.then_some(look.now.max(look.heard));
        self.free = FreeTimes::default();
    }

    /// Whether the queue was paused for at least 99 % of the detection time before `now`.
    fn was_paused(&self, spec: &WatchdogSpec, now: Time) -> bool {
        let begin = Time(now.0.saturating_sub(spec.detection_time.0));
        self.free.since(begin).0 * 100 <= spec.detection_time.0 * FREE_PERCENT
    }

    fn look_for_end(&mut self, spec: &WatchdogSpec, look: &Look) -> Option<Change> {
        if look.now < self.restored_at(spec, look) {
            return None;
        }
        self.end(look.now);
        self.begin(look);
        Some(Change::Restored)
    }

    /// When the storm is over if no more pauses are received. Not while one still runs, as it may
    /// on a slow port: it would be the next storm.
    fn restored_at(&self, spec: &WatchdogSpec, look: &Look) -> Time {
        let quiet_since = look.heard.max(self.stormed.unwrap_or_default());
        quiet_since.after(self.restoration_time(spec)).max(look.paused_until)
    }

    fn end(&mut self, now: Time) {
        self.stormed = None;
        self.restored = Some(now);
        self.restorations += 1;
    }

    /// Ends a storm at once: its watchdog, its PFC or its port is gone. Whether there was one.
    pub fn give_up(&mut self, now: Time) -> bool {
        let stormed = self.is_stormed();
        if stormed {
            self.end(now);
        }
        (self.last, self.stalled, self.free) = (None, None, FreeTimes::default());
        stormed
    }

    /// When the queue must be looked at although nothing happens to it.
    pub fn deadline(&self, spec: &WatchdogSpec) -> Time {
        let Some(last) = self.last else { return Time::NEVER };
        if self.is_stormed() {
            return self.restored_at(spec, &last);
        }
        let (Some(stalled), true) = (self.stalled, last.now < last.paused_until) else {
            // It is free to send, or has nothing to send.
            return Time::NEVER;
        };
        let begin = Time(last.now.0.saturating_sub(spec.detection_time.0));
        let full = stalled.after(spec.detection_time);
        match self.free.oldest_since(begin) {
            Some(end) if full <= last.now => end.after(spec.detection_time),
            _ => full.max(last.now),
        }
    }

    /// Whether it must be looked at after each step: it stands, or a storm lasts.
    pub const fn is_engaged(&self) -> bool {
        self.stalled.is_some() || self.stormed.is_some()
    }

    /// When the last storm was detected, over or not.
    pub const fn last_detected(&self) -> Option<Time> {
        self.detected
    }

    /// Since when a storm lasts, if one does.
    pub const fn stormed_since(&self) -> Option<Time> {
        self.stormed
    }

    /// The time without a pause after which the storm is over that lasts; as configured where none
    /// does.
    pub fn restoration_time(&self, spec: &WatchdogSpec) -> Nanos {
        let factor = if self.is_stormed() { self.back_off.max(1) } else { 1 };
        Nanos(spec.restoration_time.0.saturating_mul(factor))
    }

    /// Whether a storm lasts.
    pub const fn is_stormed(&self) -> bool {
        self.stormed.is_some()
    }

    /// Storms that began.
    pub const fn detections(&self) -> u64 {
        self.detections
    }

    /// Storms that ended.
    pub const fn restorations(&self) -> u64 {
        self.restorations
    }
}

/// When a stalled queue was free to send, as far as it matters: where there are too many times to
/// keep, old ones are taken together, which makes them count for longer.
#[derive(Clone, Copy, Debug, Default)]
struct FreeTimes {
    /// Ends and lengths, oldest first.
    times: [(Time, Nanos); Self::ROOM],
    len: usize,
}

impl FreeTimes {
    const ROOM: usize = 16;

    fn add(&mut self, end: Time, length: Nanos) {
        if length == Nanos(0) {
            return;
        }
        if self.len == Self::ROOM {
            let oldest = self.times[0].1;
            self.times.copy_within(1.., 0);
            self.times[0].1 .0 += oldest.0;
            self.len -= 1;
        }
        self.times[self.len] = (end, length);
        self.len += 1;
    }

    fn kept_since(&self, begin: Time) -> impl Iterator<Item = &(Time, Nanos)> {
        self.times[..self.len].iter().filter(move |(end, _)| *end > begin)
    }

    /// Time free since `begin`; a time that had begun before counts whole.
    fn since(&self, begin: Time) -> Nanos {
        Nanos(self.kept_since(begin).map(|(_, length)| length.0).sum())
    }

    /// When the oldest time since `begin` ended.
    fn oldest_since(&self, begin: Time) -> Option<Time> {
        self.kept_since(begin).map(|(end, _)| *end).next()
    }
}
