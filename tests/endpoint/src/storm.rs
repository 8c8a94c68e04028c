//! `storm`: pauses without a gap, sent on time and measured.
//!
//! When a frame left is known between two readings of the clock, one before the call that sends it
//! and one after. The report counts a gap from the earlier reading to the later one, so that
//! a real gap is never longer than what is reported.

use holdfast_host::{Nanos, Storm, StormEnd, StormReport, StormStep, StormTarget, Time};
use holdfast_wire::mac_control::FRAME_LEN;
use serde::Serialize;

use crate::cli::StormArgs;
use crate::clock::{now, run_first, timespec, wall_clock, StopSignal};
use crate::link::{Link, LinkError, Outlet};
use crate::report::{announce, deliver, EndedBy};
use crate::EndpointError;

/// How long to leave a device alone whose queue is full.
const REFUSED: Nanos = Nanos(20_000);
/// The clock is watched for the last part of a wait: sleeps end later than asked for.
const WATCH: Nanos = Nanos(100_000);
/// How often a signal to end is looked for.
const LOOK: Nanos = Nanos(20_000_000);
/// How long a resume is tried at a device that refuses it.
const LAST_TRIES: Nanos = Nanos(200_000_000);

/// A storm that wasn't one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StormError {
    /// `--gap-must-hold` didn't.
    #[error(
        "{gaps} gaps were longer than the pause of {pause_ns} ns, the longest {longest_ns} ns: \
         take more --quanta, keep the machine less busy, or let it have CAP_SYS_NICE if the report \
         says \"real_time\":false"
    )]
    Gap {
        /// How many.
        gaps: u64,
        /// The pause time.
        pause_ns: u64,
        /// The longest of them.
        longest_ns: u64,
    },
}

/// When a frame was handed to the device, read right before.
#[derive(Clone, Copy, Debug, Serialize)]
struct SentAt {
    realtime_ns: u64,
    monotonic_ns: u64,
}

/// The report of `storm`.
#[derive(Debug, Serialize)]
struct StormVerbReport {
    interface: String,
    mac: String,
    ended_by: EndedBy,
    duration_ns: u64,
    frame: &'static str,
    /// Those that were paused; all by PAUSE.
    priorities: Vec<u8>,
    quanta: u16,
    speed_bps: u64,
    #[serde(flatten)]
    counts: StormReport,
    /// Times the device refused a frame because its queue was full.
    refusals: u64,
    /// Whether it ran before all ordinary threads (SCHED_FIFO).
    real_time: bool,
    first_pause: Option<SentAt>,
    last_pause: Option<SentAt>,
}

/// Sends the storm.
pub(crate) fn run(args: &StormArgs) -> Result<(), EndpointError> {
    let stop = StopSignal::listen().map_err(EndpointError::Signals)?;
    let link = Link::find(&args.link.interface)?;
    let target = args.target();
    let outlet = Outlet::open(&link)?;
    let real_time = run_first();
    announce(&link)?;
    let start = now();
    let storm = Storm::new(args.plan(), start);
    let (pause, resume) = (target.frame(link.mac(), args.quanta), target.frame(link.mac(), 0));
    let mut sender =
        StormSender { outlet, pause, resume, storm, refusals: 0, first: None, last: None };
    let ended_by = sender.work(&stop)?;
    let counts = sender.storm.report();
    let (frame, mask) = match target {
        StormTarget::Priorities(mask) => ("pfc", mask),
        StormTarget::Link => ("pause", u8::MAX),
    };
    let report = StormVerbReport {
        interface: link.name().to_owned(),
        mac: link.mac().to_string(),
        ended_by,
        duration_ns: now().since(start).0,
        frame,
        priorities: (0..8).filter(|n| mask >> n & 1 == 1).collect(),
        quanta: args.quanta,
        speed_bps: args.speed.bits(),
        counts,
        refusals: sender.refusals,
        real_time,
        first_pause: sender.first,
        last_pause: sender.last,
    };
    deliver(&report, args.link.json.as_deref())?;
    let StormReport { gaps_longer_than_pause: gaps, pause_ns, longest_gap_ns, .. } = counts;
    if args.gap_must_hold && gaps > 0 {
        return Err(StormError::Gap { gaps, pause_ns, longest_ns: longest_gap_ns }.into());
    }
    Ok(())
}

/// A storm with its socket.
struct StormSender {
    outlet: Outlet,
    pause: [u8; FRAME_LEN],
    resume: [u8; FRAME_LEN],
    storm: Storm,
    refusals: u64,
    first: Option<SentAt>,
    last: Option<SentAt>,
}

impl StormSender {
    /// Sends what is due until it is over.
    fn work(&mut self, stop: &StopSignal) -> Result<EndedBy, LinkError> {
        loop {
            if stop.is_set() {
                self.storm.stop(now());
            }
            match self.storm.step(now()) {
                StormStep::Pause => self.send_pause()?,
                StormStep::Resume => self.send_resume()?,
                StormStep::Wait(until) => wait(until),
                StormStep::Done(StormEnd::Count) => return Ok(EndedBy::Count),
                StormStep::Done(StormEnd::Length) => return Ok(EndedBy::Seconds),
                StormStep::Done(StormEnd::Stopped) => return Ok(EndedBy::Signal),
            }
        }
    }

    /// Sends one pause, or leaves a device that refuses it alone for a moment.
    fn send_pause(&mut self) -> Result<(), LinkError> {
        let before = SentAt { monotonic_ns: now().0, realtime_ns: wall_clock().0 };
        if self.outlet.send(&[&self.pause])? == 0 {
            self.refusals += 1;
            sleep(REFUSED);
            return Ok(());
        }
        self.storm.note_pause(Time(before.monotonic_ns), now());
        self.first.get_or_insert(before);
        self.last = Some(before);
        Ok(())
    }

    /// Sends one resume, for a while also at a device that refuses it.
    fn send_resume(&mut self) -> Result<(), LinkError> {
        let begun = now();
        let mut left = false;
        while !left && now().since(begun) < LAST_TRIES {
            left = self.outlet.send(&[&self.resume])? == 1;
            if !left {
                self.refusals += 1;
                sleep(REFUSED);
            }
        }
        self.storm.note_resume(left);
        Ok(())
    }
}

/// Sleeps until shortly before `until`, and watches the clock from there on; returns early now and
/// then, so that signals are seen.
fn wait(until: Time) {
    let left = until.since(now());
    if left > WATCH {
        sleep(Nanos(left.0 - WATCH.0).min(LOOK));
    } else {
        while now() < until {
            std::hint::spin_loop();
        }
    }
}

/// Sleeps, or less if a signal comes.
fn sleep(span: Nanos) {
    // An interrupted sleep is what a signal is for: the caller looks at its flag.
    let _ = nix::poll::ppoll(&mut [], Some(timespec(span)), None);
}
