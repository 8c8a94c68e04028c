//! Pauses that a port sends (SPEC 4.1): level in, XOFF, refresh and XON frames out.

use super::{PauseCounts, PauseMeter};
use crate::ids::{PerPriority, Priority, PrioritySet};
use crate::profile::{PfcSpec, Resume};
use crate::units::{BitRate, Nanos, Quanta, Time};

/// Why a priority is paused; it stays paused while any cause holds (SPEC 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PauseCause {
    /// A PG mapped to it is in XOFF.
    Mmu,
    /// The RX ring is filling up: this switch is slower than its senders (SPEC 4.3).
    RxBacklog,
    /// The operator wants it.
    Admin,
}

impl PauseCause {
    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 3] = [Self::Mmu, Self::RxBacklog, Self::Admin];

    /// The name in CLI, API and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mmu => "mmu",
            Self::RxBacklog => "rx_backlog",
            Self::Admin => "admin",
        }
    }
}

/// What goes into one PFC frame; `holdfast_wire::mac_control::encode_pfc` writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseFrame {
    /// Class-enable vector: bit n makes `quanta[n]` valid.
    pub enable: u8,
    /// Pause times; 0 for XON and for every clear bit.
    pub quanta: [u16; 8],
}

/// What the peer was told last of one priority.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    at: Time,
    quanta: Quanta,
    /// Since when it has been told so without a gap.
    since: Time,
}

/// The sending side of one port's PFC. Owned by the port's worker.
///
/// In each step: [`set_cause`](Self::set_cause) with the levels of now, then
/// [`next_frame`](Self::next_frame); if the port took the frame, [`sent`](Self::sent). A frame that
/// was not taken is made again, from the level of then.
#[derive(Debug)]
pub struct PauseSender {
    enabled: PrioritySet,
    quanta: Quanta,
    resume: Resume,
    speed: BitRate,
    causes: [PrioritySet; PauseCause::ALL.len()],
    /// No priority is paused any more, whatever the causes say.
    shut: bool,
    /// Priorities of which the peer was told XOFF last.
    told: PrioritySet,
    /// Of these, those that get an XON even where pauses end by expiry.
    owed: PrioritySet,
    last: PerPriority<Told>,
    /// The earliest refresh that falls due while `told` stays as it is.
    next_refresh: Time,
    counts: PerPriority<PauseCounts>,
    meters: PerPriority<PauseMeter>,
}

impl PauseSender {
    /// A sender that has told its peer nothing.
    pub fn new(spec: &PfcSpec, speed: BitRate) -> Self {
        Self {
            enabled: spec.enabled,
            quanta: spec.quanta,
            resume: spec.resume,
            speed,
            causes: [PrioritySet::EMPTY; PauseCause::ALL.len()],
            shut: false,
            told: PrioritySet::EMPTY,
            owed: PrioritySet::EMPTY,
            last: PerPriority::default(),
            next_refresh: Time::NEVER,
            counts: PerPriority::default(),
            meters: PerPriority::default(),
        }
    }

    /// Sets the priorities that `cause` wants paused now, replacing what it wanted before.
    #[inline]
    pub fn set_cause(&mut self, cause: PauseCause, priorities: PrioritySet) {
        self.causes[cause as usize] = priorities;
    }

    /// The PFC-enabled priorities that `cause` wants paused.
    pub fn cause(&self, cause: PauseCause) -> PrioritySet {
        self.causes[cause as usize].and(self.enabled)
    }

    /// The priorities that should be paused now: any cause, PFC enabled, not shut down.
    #[inline]
    pub fn level(&self) -> PrioritySet {
        if self.shut {
            return PrioritySet::EMPTY;
        }
        let [mmu, rx_backlog, admin] = self.causes;
        mmu.or(rx_backlog).or(admin).and(self.enabled)
    }

    /// The priorities that the peer was told to pause, and not to resume since.
    pub const fn paused(&self) -> PrioritySet {
        self.told
    }

    /// The frame that must go out now, if any: XOFF for what is newly paused, refreshes that are
    /// due, XON for what is released, all in one.
    ///
    /// Changes nothing of what is to be sent: without [`sent`](Self::sent) the next call asks for
    /// it again.
    #[inline]
    pub fn next_frame(&mut self, now: Time) -> Option<PauseFrame> {
        let level = self.level();
        if level == self.told && now < self.next_refresh {
            return None;
        }
        self.build(level, now)
    }

    fn build(&mut self, level: PrioritySet, now: Time) -> Option<PauseFrame> {
        self.owed = PrioritySet(self.owed.0 & self.told.0 & !level.0);
        let mut released = PrioritySet(self.told.0 & !level.0);
        if self.resume == Resume::Expire {
            let expiring = PrioritySet(released.0 & !self.owed.0);
            self.end(expiring, now);
            released = self.owed;
        }
        let mut frame = PauseFrame { enable: released.0, quanta: [0; 8] };
        for priority in level.iter() {
            if !self.told.contains(priority) || self.refresh_at(priority) <= now {
                frame.enable |= PrioritySet::only(priority).0;
                frame.quanta[priority.index()] = self.carried().0;
            }
        }
        (frame.enable != 0).then_some(frame)
    }

    /// The port took `frame` at `now`: the peer knows it.
    pub fn sent(&mut self, frame: &PauseFrame, now: Time) {
        let mut resumed = PrioritySet::EMPTY;
        for priority in PrioritySet(frame.enable).iter() {
            let quanta = Quanta(frame.quanta[priority.index()]);
            let counts = &mut self.counts[priority];
            if quanta == Quanta(0) {
                counts.xon += 1;
                resumed = resumed.with(priority);
                continue;
            }
            if self.told.contains(priority) {
                counts.refresh += 1;
            } else {
                counts.xoff += 1;
                self.meters[priority].begin(now);
            }
            // A refresh that comes after the end begins a pause in the eyes of the peer.
            let goes_on = self.remaining(priority, now) > Nanos(0);
            let since = if goes_on { self.last[priority].since } else { now };
            self.told = self.told.with(priority);
            self.last[priority] = Told { at: now, quanta, since };
        }
        self.end(resumed, now);
    }

    /// When [`next_frame`](Self::next_frame) must be asked next, if no cause changes before: the
    /// next refresh, or at once while a frame waits to be taken.
    pub fn deadline(&self) -> Time {
        if self.level() == self.told {
            self.next_refresh
        } else {
            Time::default()
        }
    }

    /// Takes over a changed profile. A paused priority that is no longer PFC-enabled gets XON at
    /// once, also where pauses end by expiry: nobody would know later that it was meant to expire.
    pub fn adopt(&mut self, spec: &PfcSpec, speed: BitRate) {
        self.enabled = spec.enabled;
        self.quanta = spec.quanta;
        self.resume = spec.resume;
        self.speed = speed;
        self.owed = PrioritySet(self.owed.0 | (self.told.0 & !self.enabled.0));
        self.find_next_refresh();
    }

    /// The switch shuts down: XON for every paused priority, and no pause any more (SPEC 14).
    pub fn release_all(&mut self) {
        self.shut = true;
        self.owed = self.told;
    }

    /// The link went down: the peer's state is unknown. What is paused then is told anew.
    pub fn forget(&mut self, now: Time) {
        self.end(self.told, now);
    }

    /// Frames sent for `priority` by kind.
    pub fn counts(&self, priority: Priority) -> PauseCounts {
        self.counts[priority]
    }

    /// What is left at `now` of the pause that the peer was told last for `priority`; a refresh
    /// comes long before its end.
    pub fn remaining(&self, priority: Priority, now: Time) -> Nanos {
        if !self.told.contains(priority) {
            return Nanos(0);
        }
        let Told { at, quanta, .. } = self.last[priority];
        at.after(quanta.at(self.speed)).since(now)
    }

    /// Since when the peer has been told to pause `priority`, if it is now: the last XOFF, or the
    /// last refresh that came after the pause before it had run out.
    pub fn told_since(&self, priority: Priority) -> Time {
        self.last[priority].since
    }

    /// Whether a pause has run out at `now` that should have been refreshed: the peer may have sent
    /// since, and is right to.
    pub fn has_lapsed(&self, now: Time) -> bool {
        self.told.iter().any(|priority| self.remaining(priority, now) == Nanos(0))
    }

    /// How long the peer was held in pause by this port, up to `now`.
    pub fn paused_time(&self, priority: Priority, now: Time) -> Nanos {
        self.meters[priority].total_at(now)
    }

    /// How often the peer was put into pause.
    pub fn transitions(&self, priority: Priority) -> u64 {
        self.meters[priority].transitions
    }

    /// The time that XOFF carries; never 0, which would mean XON.
    const fn carried(&self) -> Quanta {
        if self.quanta.0 == 0 {
            Quanta(1)
        } else {
            self.quanta
        }
    }

    /// A quarter of the pause time after the last frame, the earliest that SPEC 4.1 allows: a
    /// worker may then be late by three quarters of it before the peer starts again.
    fn refresh_at(&self, priority: Priority) -> Time {
        let Told { at, quanta, .. } = self.last[priority];
        let pause = quanta.at(self.speed).0;
        at.after(Nanos(pause.div_ceil(4).max(1)))
    }

    fn find_next_refresh(&mut self) {
        let due = self.told.iter().map(|priority| self.refresh_at(priority)).min();
        self.next_refresh = due.unwrap_or(Time::NEVER);
    }

    fn end(&mut self, priorities: PrioritySet, now: Time) {
        for priority in priorities.iter() {
            self.meters[priority].end(now);
        }
        self.told = PrioritySet(self.told.0 & !priorities.0);
        self.find_next_refresh();
    }
}
