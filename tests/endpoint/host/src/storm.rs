//! A pause storm: pauses of a link that follow each other without a gap, in one piece or in bursts.
//!
//! Gapless means that a pause is refreshed before it runs out. Each frame is due half a pause after
//! the one before. What was late is measured, not hidden: whoever sends says between which two
//! points in time each frame left, and a gap is the longest that these allow.

use holdfast_wire::mac_control::{encode_pause, encode_pfc, FRAME_LEN};
use holdfast_wire::MacAddr;
use serde::Serialize;

use crate::time::{Nanos, Time};

/// What a storm pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StormTarget {
    /// The priorities whose bits are set, by PFC (802.1Qbb).
    Priorities(u8),
    /// The whole link, by PAUSE (802.3 annex 31B).
    Link,
}

impl StormTarget {
    /// The frame from `src` that asks for `quanta` of 512 bit times; 0 asks to resume.
    pub fn frame(self, src: MacAddr, quanta: u16) -> [u8; FRAME_LEN] {
        let mut frame = [0; FRAME_LEN];
        match self {
            Self::Priorities(enable) => encode_pfc(&mut frame, src, enable, &[quanta; 8]),
            Self::Link => encode_pause(&mut frame, src, quanta),
        }
        frame
    }
}

/// Storms that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// How many.
    pub count: u64,
    /// How long each lasts, from its first frame on.
    pub on: Nanos,
    /// How long it is quiet between two of them.
    pub off: Nanos,
}

/// Everything about a storm that is decided before its first frame. It ends by what comes first;
/// with no end named it goes on until it is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StormPlan {
    /// How long one frame pauses.
    pub pause: Nanos,
    /// How long the storm lasts.
    pub length: Option<Nanos>,
    /// Pauses to send.
    pub count: Option<u64>,
    /// In bursts instead of in one piece.
    pub bursts: Option<Bursts>,
    /// Ends each burst, and so the storm, by a resume.
    pub xon: bool,
}

/// What a storm does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StormStep {
    /// Send a pause now, then call [`Storm::note_pause`].
    Pause,
    /// Send a resume now, then call [`Storm::note_resume`].
    Resume,
    /// Nothing before this time.
    Wait(Time),
    /// It is over.
    Done(StormEnd),
}

/// Why a storm is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StormEnd {
    /// All its pauses or bursts have been sent.
    Count,
    /// Its length has passed.
    Length,
    /// [`Storm::stop`] was called.
    Stopped,
}

/// What a storm has sent, and how well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StormReport {
    /// Pauses.
    pub sent: u64,
    /// Resumes.
    pub xons_sent: u64,
    /// Bursts that were begun; a storm in one piece is one.
    pub bursts: u64,
    /// How long one frame pauses.
    pub pause_ns: u64,
    /// The longest that a pause waited for the next one or for the end of its burst.
    pub longest_gap_ns: u64,
    /// How many of these were longer than the pause: the receiver may have sent in between.
    pub gaps_longer_than_pause: u64,
    /// By how much the latest frame missed the half of the pause before it.
    pub most_late_ns: u64,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Quiet until then.
    Off { until: Time },
    /// Pausing. `end` is when the burst has lasted long enough, `last` before the last pause left.
    On { end: Option<Time>, last: Option<Time> },
    /// The burst has ended at `since`; a resume is due.
    Resuming { since: Time, over: Option<StormEnd> },
    /// Nothing more.
    Over(StormEnd),
}

/// A storm at work.
#[derive(Clone, Debug)]
pub struct Storm {
    plan: StormPlan,
    end: Option<Time>,
    phase: Phase,
    report: StormReport,
}

impl Storm {
    /// A storm whose first pause is due at `now`.
    pub fn new(plan: StormPlan, now: Time) -> Self {
        Self {
            plan,
            end: plan.length.map(|length| now + length),
            phase: Phase::Off { until: now },
            report: StormReport { pause_ns: plan.pause.0, ..StormReport::default() },
        }
    }

    /// Decides what is due at `now`.
    pub fn step(&mut self, now: Time) -> StormStep {
        loop {
            match self.phase {
                Phase::Over(end) => return StormStep::Done(end),
                Phase::Resuming { .. } => return StormStep::Resume,
                Phase::Off { .. } if self.end.is_some_and(|end| end <= now) => {
                    self.phase = Phase::Over(StormEnd::Length);
                }
                Phase::Off { until } if now < until => {
                    return StormStep::Wait(self.end.map_or(until, |end| end.min(until)));
                }
                Phase::Off { .. } => {
                    self.report.bursts += 1;
                    let on = self.plan.bursts.map(|bursts| now + bursts.on);
                    let end = [on, self.end].into_iter().flatten().min();
                    self.phase = Phase::On { end, last: None };
                }
                Phase::On { end, last } => {
                    if let Some(step) = self.step_on(now, end, last) {
                        return step;
                    }
                }
            }
        }
    }

    /// A step while pausing; `None` if the burst ended by it.
    fn step_on(&mut self, now: Time, end: Option<Time>, last: Option<Time>) -> Option<StormStep> {
        if self.plan.count.is_some_and(|count| self.report.sent >= count) {
            self.close(now, Some(StormEnd::Count));
            return None;
        }
        if let Some(end) = end.filter(|&end| end <= now) {
            // Nothing was sent since: a pause that had run out by the end has left a gap.
            self.note_gap(last, end);
            let over = self.end.is_some_and(|all| all <= end).then_some(StormEnd::Length);
            self.close(end, over);
            return None;
        }
        let due = last.map_or(now, |last| last + self.half());
        if due <= now {
            return Some(StormStep::Pause);
        }
        Some(StormStep::Wait(end.map_or(due, |end| end.min(due))))
    }

    fn half(&self) -> Nanos {
        Nanos(self.plan.pause.0 / 2)
    }

    /// Ends a burst at `since`, and the storm if it is `over` or this was the last one.
    fn close(&mut self, since: Time, over: Option<StormEnd>) {
        let begun = self.report.bursts;
        let last = self.plan.bursts.is_none_or(|bursts| begun >= bursts.count);
        let over = over.or(last.then_some(StormEnd::Count));
        self.phase = Phase::Resuming { since, over };
        if !self.plan.xon {
            self.rest(since, over);
        }
    }

    fn rest(&mut self, since: Time, over: Option<StormEnd>) {
        let off = self.plan.bursts.map_or(Nanos(0), |bursts| bursts.off);
        self.phase = over.map_or(Phase::Off { until: since + off }, Phase::Over);
    }

    fn note_gap(&mut self, last: Option<Time>, next: Time) {
        let Some(last) = last else { return };
        let gap = next.since(last);
        self.report.longest_gap_ns = self.report.longest_gap_ns.max(gap.0);
        self.report.gaps_longer_than_pause += u64::from(gap > self.plan.pause);
    }

    /// Notes that a pause left, not before `before` and not after `after`.
    pub fn note_pause(&mut self, before: Time, after: Time) {
        self.report.sent += 1;
        if let Phase::On { end, last } = self.phase {
            self.note_gap(last, after);
            let late = last.map_or(Nanos(0), |last| after.since(last + self.half()));
            self.report.most_late_ns = self.report.most_late_ns.max(late.0);
            self.phase = Phase::On { end, last: Some(before) };
        }
    }

    /// Notes that a resume left, or that the caller has given it up.
    pub fn note_resume(&mut self, left: bool) {
        self.report.xons_sent += u64::from(left);
        if let Phase::Resuming { since, over } = self.phase {
            self.rest(since, over);
        }
    }

    /// Ends the storm now; a resume that the plan wishes for is still due if it was pausing.
    pub fn stop(&mut self, now: Time) {
        match self.phase {
            Phase::On { last, .. } => {
                self.note_gap(last, now);
                self.close(now, Some(StormEnd::Stopped));
            }
            Phase::Off { .. } => self.phase = Phase::Over(StormEnd::Stopped),
            Phase::Resuming { since, .. } => {
                self.phase = Phase::Resuming { since, over: Some(StormEnd::Stopped) };
            }
            Phase::Over(_) => {}
        }
    }

    /// Counts and gaps so far.
    pub fn report(&self) -> StormReport {
        self.report
    }
}
