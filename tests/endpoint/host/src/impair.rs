//! A host that obeys pauses badly: not at all, late, or deaf to some of the resumes.
//!
//! A switch has to live with such hosts (SPEC 14). They are made here on purpose, by a generator
//! with a seed, so that a run can be repeated.

use std::collections::VecDeque;

use fastrand::Rng;
use holdfast_wire::MacControl;
use serde::Serialize;

use crate::pfc::{PfcReceiver, PfcReport};
use crate::time::{Nanos, Time};

/// What is wrong with a host; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Obeys no pause at all.
    pub ignore: bool,
    /// Begins and ends each pause so much later.
    pub delay: Nanos,
    /// The share of resumes that it doesn't hear, 0 to 1.
    pub lose_xon: f64,
    /// Decides which resumes those are.
    pub seed: u64,
}

/// What impairments did. Arrays are indexed by priority and count what would have been obeyed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImpairmentReport {
    /// Times above 0 that were ignored.
    pub xoff_ignored: [u64; 8],
    /// Times of 0 that were lost, or ignored with all others.
    pub xon_lost: [u64; 8],
    /// Frames that were obeyed late.
    pub frames_delayed: u64,
    /// Those of them that had no effect yet.
    pub frames_held: u64,
}

/// Pauses as an impaired host obeys them.
#[derive(Clone, Debug)]
pub struct ImpairedReceiver {
    pfc: PfcReceiver,
    impairments: Impairments,
    random: Rng,
    /// Frames without effect yet: when they have it, and on which priorities. In this order.
    held: VecDeque<(Time, MacControl, u8)>,
    report: ImpairmentReport,
}

impl ImpairedReceiver {
    /// A host with the pauses of `pfc` and these impairments.
    pub fn new(pfc: PfcReceiver, impairments: Impairments) -> Self {
        Self {
            pfc,
            impairments,
            random: Rng::with_seed(impairments.seed),
            held: VecDeque::new(),
            report: ImpairmentReport::default(),
        }
    }

    /// Takes one MAC control frame that arrived at `now`. It counts at once; what it asks for has
    /// its effect here, or after the delay in [`ImpairedReceiver::advance`].
    pub fn receive(&mut self, now: Time, frame: &MacControl) {
        self.advance(now);
        self.pfc.count(frame);
        let asked = self.pfc.asked(frame);
        let heard = asked & !self.unheard(frame, asked);
        if self.impairments.delay == Nanos(0) {
            self.pfc.obey(now, frame, heard);
        } else if heard != 0 {
            self.report.frames_delayed += 1;
            let due = now + self.impairments.delay;
            // Arrival times come from the kernel's clock; were one to step back, order holds.
            let due = self.held.back().map_or(due, |&(last, ..)| last.max(due));
            self.held.push_back((due, *frame, heard));
        }
    }

    /// Which of the priorities in `asked` don't hear what `frame` asks for; counts them.
    fn unheard(&mut self, frame: &MacControl, asked: u8) -> u8 {
        let xon = asked & resumes(frame);
        let unheard = match frame {
            _ if self.impairments.ignore => asked,
            // One resume for all priorities is lost for all of them or for none.
            MacControl::Pause { .. } if xon != 0 && self.loses_one() => xon,
            MacControl::Pfc { .. } => (0..8)
                .map(|n| xon & 1 << n)
                .filter(|&priority| priority != 0 && self.loses_one())
                .fold(0, |lost, priority| lost | priority),
            MacControl::Pause { .. } | MacControl::Invalid(_) => 0,
        };
        let each = self.report.xon_lost.iter_mut().zip(&mut self.report.xoff_ignored);
        for (n, (xon_lost, xoff_ignored)) in each.enumerate() {
            let count = if xon >> n & 1 == 1 { xon_lost } else { xoff_ignored };
            *count += u64::from(unheard >> n & 1);
        }
        unheard
    }

    fn loses_one(&mut self) -> bool {
        // Not drawn where nothing is lost: 0 means never, 1 means always.
        self.impairments.lose_xon > 0.0 && self.random.f64() < self.impairments.lose_xon
    }

    /// Lets delayed frames have their effect whose time has come by `now`.
    pub fn advance(&mut self, now: Time) {
        while let Some((due, frame, heard)) = self.held.front().copied() {
            if now < due {
                return;
            }
            self.held.pop_front();
            self.pfc.obey(due, &frame, heard);
        }
    }

    /// When the next delayed frame has its effect: until then [`ImpairedReceiver::pauses`] holds.
    pub fn next_change(&self) -> Option<Time> {
        self.held.front().map(|&(due, ..)| due)
    }

    /// The pauses in effect, as of the last call that took a time.
    pub fn pauses(&self) -> &PfcReceiver {
        &self.pfc
    }

    /// All counts, a running pause up to `now` included.
    pub fn report(&mut self, now: Time) -> (PfcReport, ImpairmentReport) {
        self.advance(now);
        let frames_held = self.held.len() as u64;
        (self.pfc.report(now), ImpairmentReport { frames_held, ..self.report })
    }
}

/// The priorities whose time in `frame` is 0, enabled there or not.
fn resumes(frame: &MacControl) -> u8 {
    match *frame {
        MacControl::Pfc { quanta, .. } => {
            quanta.iter().enumerate().fold(0, |mask, (n, &time)| mask | u8::from(time == 0) << n)
        }
        MacControl::Pause { quanta: 0 } => u8::MAX,
        MacControl::Pause { .. } | MacControl::Invalid(_) => 0,
    }
}
