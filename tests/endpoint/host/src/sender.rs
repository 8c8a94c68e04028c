//! Several flows on one link: paced together, each stopped by its own priority.

use crate::flow::{Flow, FlowReport};
use crate::pace::Pacer;
use crate::pfc::PfcReceiver;
use crate::time::{BitRate, Nanos, Time};

/// What a sender may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The flow with this index may send one frame now.
    Send(usize),
    /// Nothing before this time, unless a resume comes in.
    Wait(Time),
    /// Every flow has made its last frame.
    Done,
}

/// The sending side of a host. Flows take turns; the link's speed bounds their sum.
#[derive(Clone, Debug)]
pub struct Sender {
    flows: Vec<Flow>,
    link: Pacer,
    turn: usize,
}

impl Sender {
    /// A sender on a link of `speed`. `slack` bounds the burst after a delay of the caller.
    pub fn new(flows: Vec<Flow>, speed: BitRate, slack: Nanos) -> Self {
        Self { flows, link: Pacer::new(speed, slack), turn: 0 }
    }

    /// Decides whose turn it is, given the pauses of the link.
    pub fn next(&self, now: Time, pauses: &PfcReceiver) -> Next {
        let mut earliest = None;
        for step in 0..self.flows.len() {
            let index = (self.turn + step) % self.flows.len();
            let Some(flow) = self.flows.get(index).filter(|flow| !flow.exhausted()) else {
                continue;
            };
            let resume = pauses.paused_until(flow.priority(), now).unwrap_or(now);
            let ready = flow.free_at().max(self.link.free_at()).max(resume);
            if ready <= now {
                return Next::Send(index);
            }
            earliest = Some(earliest.map_or(ready, |time: Time| time.min(ready)));
        }
        earliest.map_or(Next::Done, Next::Wait)
    }

    /// Makes the next frame of flow `index` into `buf` and takes the link for it; returns its
    /// length, or `None` if the flow has no frame left or `buf` is too small.
    pub fn make(&mut self, index: usize, now: Time, buf: &mut [u8]) -> Option<usize> {
        let len = self.flows.get_mut(index)?.make(now, buf)?;
        self.link.take(now, len);
        self.turn = index + 1;
        Some(len)
    }

    /// Notes that the link took a frame of flow `index`.
    pub fn note_sent(&mut self, index: usize, len: usize) {
        if let Some(flow) = self.flows.get_mut(index) {
            flow.note_sent(len);
        }
    }

    /// The PFC priority of flow `index`.
    pub fn priority(&self, index: usize) -> Option<u8> {
        self.flows.get(index).map(Flow::priority)
    }

    /// Counts of every flow, in the order they were given.
    pub fn report(&self) -> Vec<FlowReport> {
        self.flows.iter().map(Flow::report).collect()
    }
}
