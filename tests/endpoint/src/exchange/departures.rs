//! The sending half: bursts that are short enough to stop for a pause.

use holdfast_host::{FlowReport, ImpairedReceiver, Nanos, Next, PfcReceiver, Sender, Time};
use holdfast_wire::roce::MAX_FRAME_LEN;

use super::read_control;
use crate::clock::now;
use crate::link::{Inlet, Link, LinkError, Outlet};

/// Frames between two looks for a pause.
const BURST: usize = 16;
/// How long to leave a device alone whose queue is full.
const REFUSED: Nanos = Nanos(20_000);

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Frames were sent; there may be more.
    Sent,
    /// Nothing more before this time.
    Wait(Time),
    /// Everything has been sent.
    Done,
}

/// A frame that was made and not taken by the device yet. Its PSN is used: it must go first.
#[derive(Debug)]
struct Made {
    flow: usize,
    priority: u8,
    len: usize,
    bytes: Box<[u8]>,
}

/// A sender with its socket.
#[derive(Debug)]
pub(super) struct Departures {
    outlet: Outlet,
    sender: Sender,
    first: Time,
    /// In the order they were made.
    made: Vec<Made>,
    spare: Vec<Box<[u8]>>,
    sent: u64,
    refusals: u64,
}

impl Departures {
    /// Opens the socket; nothing is sent before `first`.
    pub(super) fn open(link: &Link, sender: Sender, first: Time) -> Result<Self, LinkError> {
        let outlet = Outlet::open(link)?;
        let (made, spare) = (Vec::new(), Vec::new());
        Ok(Self { outlet, sender, first, made, spare, sent: 0, refusals: 0 })
    }

    /// Makes what is due, looks for pauses, and sends a burst of what they allow.
    pub(super) fn step(
        &mut self,
        control: &mut Inlet,
        host: &mut ImpairedReceiver,
    ) -> Result<Step, LinkError> {
        if now() < self.first {
            read_control(control, host)?;
            return Ok(Step::Wait(self.first));
        }
        let next = self.make_due(host.pauses());
        // The last look before the frames go: whatever came in until here is obeyed.
        read_control(control, host)?;
        let (time, pfc) = (now(), host.pauses());
        let go: Vec<bool> =
            self.made.iter().map(|made| pfc.paused_until(made.priority, time).is_none()).collect();
        let allowed = self.made.iter().zip(&go).filter(|(_, &go)| go);
        let burst: Vec<&[u8]> =
            allowed.filter_map(|(made, _)| made.bytes.get(..made.len)).take(BURST).collect();
        let wished = burst.len();
        let taken = self.outlet.send(&burst)?;
        self.note_taken(&go, taken);
        if taken < wished {
            self.refusals += 1;
            return Ok(Step::Wait(now() + REFUSED));
        }
        let held = self.made.iter().filter_map(|made| pfc.paused_until(made.priority, time)).min();
        Ok(match (next, held) {
            _ if taken > 0 => Step::Sent,
            (Next::Send(_), _) => Step::Sent,
            (Next::Wait(due), Some(resume)) => Step::Wait(due.min(resume)),
            (Next::Wait(due), None) => Step::Wait(due),
            (Next::Done, Some(resume)) => Step::Wait(resume),
            (Next::Done, None) => Step::Done,
        })
    }

    /// Makes frames until a burst is together; returns what comes after.
    fn make_due(&mut self, pfc: &PfcReceiver) -> Next {
        let time = now();
        let free = |made: &&Made| pfc.paused_until(made.priority, time).is_none();
        let mut together = self.made.iter().filter(free).count();
        loop {
            let next = self.sender.next(time, pfc);
            let Next::Send(flow) = next else { return next };
            if together >= BURST {
                return next;
            }
            let room = || vec![0; MAX_FRAME_LEN].into_boxed_slice();
            let mut bytes = self.spare.pop().unwrap_or_else(room);
            let made = self.sender.make(flow, time, &mut bytes);
            let (Some(len), Some(priority)) = (made, self.sender.priority(flow)) else {
                // The sender said this flow may send, and every frame fits the room.
                return Next::Done;
            };
            self.made.push(Made { flow, priority, len, bytes });
            together += 1;
        }
    }

    /// Counts and clears the first `taken` frames among those that could go.
    fn note_taken(&mut self, go: &[bool], taken: usize) {
        let mut left = taken;
        let mut kept = Vec::with_capacity(self.made.len());
        for (made, &could_go) in self.made.drain(..).zip(go) {
            if could_go && left > 0 {
                left -= 1;
                self.sent += 1;
                self.sender.note_sent(made.flow, made.len);
                self.spare.push(made.bytes);
            } else {
                kept.push(made);
            }
        }
        self.made = kept;
    }

    /// Frames that the device took.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Times it refused one.
    pub(super) fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Counts of every flow.
    pub(super) fn report(&self) -> Vec<FlowReport> {
        self.sender.report()
    }
}
