//! The receiving side of RoCEv2: sequence, iCRC, CE and age of every data frame.

use std::collections::BTreeMap;

use holdfast_wire::roce::{DataOp, RoceView, PSN_MASK};
use holdfast_wire::{Ecn, MacAddr};
use serde::{Serialize, Serializer};

use crate::stamp;
use crate::time::{Nanos, Time};

/// How far back a late frame is still told from a duplicate, in sequence numbers.
const WINDOW: u64 = 1 << 16;
/// Flows that are told apart; frames of further ones are only counted.
const MAX_FLOWS: usize = 4096;

/// What makes a flow: who sends, and to which queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// Source MAC.
    pub src_mac: MacAddr,
    /// Destination queue pair.
    pub qp: u32,
}

/// What one frame was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Not a RoCEv2 data frame of ours.
    Other,
    /// Its iCRC is wrong: nothing in it can be trusted.
    BadIcrc,
    /// A data frame.
    Data {
        /// Its flow.
        key: FlowKey,
        /// How long it was on its way, if it carries a send time.
        age: Option<Nanos>,
    },
}

/// What arrived of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReceivedFlow {
    /// Source MAC.
    #[serde(serialize_with = "as_text")]
    pub src_mac: MacAddr,
    /// Destination queue pair.
    pub qp: u32,
    /// DSCP of the last frame.
    pub dscp: u8,
    /// Frames, duplicates included.
    pub received: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sequence numbers below the highest one that never came.
    pub lost: u64,
    /// Frames that came after one with a higher number.
    pub reordered: u64,
    /// Frames that came again.
    pub duplicates: u64,
    /// Frames older than the window: late or again, that can't be told.
    pub stale: u64,
    /// Frames marked CE.
    pub ce: u64,
    /// The 24-bit PSN after the highest one received.
    pub next_psn: u32,
}

fn as_text<S: Serializer>(mac: &MacAddr, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(mac)
}

/// Everything that arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReceiverReport {
    /// Data frames of all flows.
    pub received: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of the flows' lost.
    pub lost: u64,
    /// Sum of the flows' reordered.
    pub reordered: u64,
    /// Sum of the flows' duplicates.
    pub duplicates: u64,
    /// Sum of the flows' stale.
    pub stale: u64,
    /// Sum of the flows' CE.
    pub ce: u64,
    /// RoCEv2 frames with a wrong iCRC.
    pub icrc_errors: u64,
    /// Frames that are not data of RoCEv2.
    pub other_frames: u64,
    /// Data frames of flows beyond the first 4096.
    pub untracked: u64,
    /// Each flow, by source and queue pair.
    pub flows: Vec<ReceivedFlow>,
}

/// Sequence state of one flow: which numbers of the last [`WINDOW`] have come.
#[derive(Clone, Debug)]
struct Sequence {
    /// One past the highest number, counted on beyond 24 bits.
    next: u64,
    /// The number the flow is taken to have started with.
    first: u64,
    seen: Box<[u64]>,
    counts: ReceivedFlow,
}

impl Sequence {
    fn new(key: FlowKey, first: u32) -> Self {
        // A turn above zero, so that a number before the first one isn't negative.
        let first = u64::from(first) + u64::from(PSN_MASK) + 1;
        let counts = ReceivedFlow {
            src_mac: key.src_mac,
            qp: key.qp,
            dscp: 0,
            received: 0,
            bytes: 0,
            lost: 0,
            reordered: 0,
            duplicates: 0,
            stale: 0,
            ce: 0,
            next_psn: 0,
        };
        Self { next: first, first, seen: vec![0; (WINDOW / 64) as usize].into(), counts }
    }

    /// Sets the bit of `number` and returns what it was.
    fn mark(&mut self, number: u64, value: bool) -> bool {
        let bit = 1 << (number % 64);
        let Some(word) = self.seen.get_mut((number % WINDOW / 64) as usize) else {
            return false;
        };
        let was = *word & bit != 0;
        *word = if value { *word | bit } else { *word & !bit };
        was
    }

    /// Takes the frame with the 24-bit number `psn`, which is the nearest one to what is due.
    fn take(&mut self, psn: u32) {
        let ahead = psn.wrapping_sub(self.next as u32) & PSN_MASK;
        self.counts.received += 1;
        if ahead <= PSN_MASK / 2 {
            let number = self.next + u64::from(ahead);
            if u64::from(ahead) >= WINDOW {
                self.seen.fill(0);
            } else {
                (self.next..number).for_each(|missing| {
                    self.mark(missing, false);
                });
            }
            self.mark(number, true);
            self.counts.lost += u64::from(ahead);
            self.next = number + 1;
            return;
        }
        let behind = u64::from(PSN_MASK) + 1 - u64::from(ahead);
        let number = self.next.saturating_sub(behind);
        if behind > WINDOW || number < self.first {
            self.counts.stale += 1;
        } else if self.mark(number, true) {
            self.counts.duplicates += 1;
        } else {
            self.counts.reordered += 1;
            self.counts.lost -= 1;
        }
    }

    fn report(&self) -> ReceivedFlow {
        let next_psn = self.next as u32 & PSN_MASK;
        ReceivedFlow { next_psn, ..self.counts.clone() }
    }
}

/// Checks the data frames of any number of flows.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Where flows start; `None` to trust the first frame seen.
    first_psn: Option<u32>,
    flows: BTreeMap<FlowKey, Sequence>,
    icrc_errors: u64,
    other_frames: u64,
    untracked: u64,
    data_frames: u64,
}

impl Receiver {
    /// A receiver that takes every flow to start at `first_psn`, so that a loss at its very start
    /// is seen; with `None` a flow starts at whatever comes first.
    pub fn new(first_psn: Option<u32>) -> Self {
        Self { first_psn, ..Self::default() }
    }

    /// Takes one frame.
    pub fn receive(&mut self, now: Time, frame: &[u8]) -> Received {
        let view = RoceView::find(frame);
        let data = view.and_then(|view| Some((DataOp::from_opcode(view.bth.opcode)?, view)));
        let Some((op, view)) = data else {
            self.other_frames += 1;
            return Received::Other;
        };
        if !view.icrc_valid(frame) {
            self.icrc_errors += 1;
            return Received::BadIcrc;
        }
        let src_mac = frame.get(6..).and_then(|rest| rest.first_chunk()).copied();
        let key = FlowKey { src_mac: MacAddr(src_mac.unwrap_or_default()), qp: view.bth.dest_qp };
        self.data_frames += 1;
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&key) {
            self.untracked += 1;
        } else {
            let first = self.first_psn.unwrap_or(view.bth.psn);
            let flow = self.flows.entry(key).or_insert_with(|| Sequence::new(key, first));
            flow.take(view.bth.psn);
            flow.counts.bytes += frame.len() as u64;
            flow.counts.dscp = view.dscp;
            flow.counts.ce += u64::from(view.ecn == Ecn::Ce);
        }
        let age = frame.get(op.payload(view.body)).and_then(|payload| stamp::age(payload, now));
        Received::Data { key, age }
    }

    /// Data frames so far, of all flows.
    pub fn data_frames(&self) -> u64 {
        self.data_frames
    }

    /// All counts.
    pub fn report(&self) -> ReceiverReport {
        let flows: Vec<_> = self.flows.values().map(Sequence::report).collect();
        let sum = |field: fn(&ReceivedFlow) -> u64| flows.iter().map(field).sum();
        ReceiverReport {
            received: self.data_frames,
            bytes: sum(|flow| flow.bytes),
            lost: sum(|flow| flow.lost),
            reordered: sum(|flow| flow.reordered),
            duplicates: sum(|flow| flow.duplicates),
            stale: sum(|flow| flow.stale),
            ce: sum(|flow| flow.ce),
            icrc_errors: self.icrc_errors,
            other_frames: self.other_frames,
            untracked: self.untracked,
            flows,
        }
    }
}
