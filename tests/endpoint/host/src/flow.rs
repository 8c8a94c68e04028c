//! One flow of RoCEv2 data frames: what they look like, how many, how fast.

use holdfast_wire::ethernet::Tag;
use holdfast_wire::roce::{encode_data, BuildError, DataOp, DataPacket, IpPair, Layout, Path};
use holdfast_wire::{Ecn, MacAddr};
use serde::Serialize;

use crate::pace::Pacer;
use crate::stamp;
use crate::time::{BitRate, Nanos, Time};

/// How fast a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// As fast as its link lets it.
    Max,
    /// At most this rate, all wire overhead included.
    Bits(BitRate),
}

/// Everything about a flow that is decided before its first frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// Destination MAC.
    pub dst_mac: MacAddr,
    /// Source MAC.
    pub src_mac: MacAddr,
    /// VLAN tags, outermost first.
    pub tags: Vec<Tag>,
    /// IP addresses.
    pub ip: IpPair,
    /// Differentiated services code point.
    pub dscp: u8,
    /// The ECN field as sent.
    pub ecn: Ecn,
    /// UDP source port.
    pub src_port: u16,
    /// The operation of every frame.
    pub op: DataOp,
    /// Destination queue pair.
    pub qp: u32,
    /// PSN of the first frame.
    pub first_psn: u32,
    /// The PFC priority that stops this flow, 0 to 7.
    pub priority: u8,
    /// Frame lengths in bytes, sent in turn.
    pub sizes: Vec<usize>,
    /// How fast.
    pub rate: Rate,
    /// Frames to send; `None` for no end.
    pub frames: Option<u64>,
}

/// Why a flow can't be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// No frame length given.
    #[error("the flow to queue pair {qp:#x} has no frame size")]
    NoSize {
        /// Destination queue pair.
        qp: u32,
    },
    /// A priority that doesn't exist.
    #[error("priority {priority} is not one of 0 to 7")]
    Priority {
        /// The priority asked for.
        priority: u8,
    },
    /// A frame that can't be built.
    #[error("frames of {size} bytes: {source}")]
    Frame {
        /// The size asked for.
        size: usize,
        /// What is wrong with it.
        source: BuildError,
    },
}

/// A frame ready to be patched: one per size.
#[derive(Clone, Debug)]
struct Template {
    bytes: Vec<u8>,
    layout: Layout,
}

/// A flow in use. Frames are made in order; what the link refuses is offered again, not made anew.
#[derive(Clone, Debug)]
pub struct Flow {
    spec: FlowSpec,
    templates: Vec<Template>,
    pacer: Option<Pacer>,
    made: u64,
    sent: u64,
    bytes: u64,
}

/// What a flow has sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowReport {
    /// Destination queue pair.
    pub qp: u32,
    /// PFC priority.
    pub priority: u8,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Frames that the link took.
    pub sent: u64,
    /// Their bytes, without wire overhead.
    pub bytes: u64,
    /// The 24-bit PSN of the frame after the last one sent.
    pub next_psn: u32,
}

impl Flow {
    /// Builds a frame of each size. `slack` bounds what a late caller may catch up.
    ///
    /// # Errors
    /// [`FlowError`] if the frames can't be built or the priority doesn't exist.
    pub fn new(spec: FlowSpec, slack: Nanos) -> Result<Self, FlowError> {
        if spec.sizes.is_empty() {
            return Err(FlowError::NoSize { qp: spec.qp });
        }
        if spec.priority > 7 {
            return Err(FlowError::Priority { priority: spec.priority });
        }
        let templates = spec.sizes.iter().map(|&size| template(&spec, size));
        let templates = templates.collect::<Result<_, _>>()?;
        let pacer = match spec.rate {
            Rate::Max => None,
            Rate::Bits(rate) => Some(Pacer::new(rate, slack)),
        };
        Ok(Self { spec, templates, pacer, made: 0, sent: 0, bytes: 0 })
    }

    /// The PFC priority of this flow.
    pub fn priority(&self) -> u8 {
        self.spec.priority
    }

    /// True once every frame of the budget has been made.
    pub fn exhausted(&self) -> bool {
        self.spec.frames.is_some_and(|frames| self.made >= frames)
    }

    /// When the flow's own rate lets its next frame go.
    pub fn free_at(&self) -> Time {
        self.pacer.as_ref().map_or(Time(0), Pacer::free_at)
    }

    /// Writes the next frame into `buf`, stamped with `now`; returns its length. `None`, and
    /// nothing is used up, if the budget is exhausted or `buf` is too small.
    pub fn make(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        if self.exhausted() {
            return None;
        }
        let turn = (self.made % self.templates.len().max(1) as u64) as usize;
        let Template { bytes, layout } = self.templates.get(turn)?;
        let frame = buf.get_mut(..bytes.len())?;
        frame.copy_from_slice(bytes);
        stamp::write(frame, layout.payload.clone(), now);
        let psn = self.psn_after(self.made);
        if !(layout.set_psn(frame, psn) && layout.seal(frame)) {
            return None;
        }
        let len = frame.len();
        if let Some(pacer) = &mut self.pacer {
            pacer.take(now, len);
        }
        self.made += 1;
        Some(len)
    }

    /// Notes that the link took the oldest frame it had not taken yet, of `len` bytes.
    pub fn note_sent(&mut self, len: usize) {
        self.sent += 1;
        self.bytes += len as u64;
    }

    fn psn_after(&self, frames: u64) -> u32 {
        // The 24-bit number wraps; the frame count never does.
        (u64::from(self.spec.first_psn).wrapping_add(frames) & 0x00ff_ffff) as u32
    }

    /// All counts.
    pub fn report(&self) -> FlowReport {
        FlowReport {
            qp: self.spec.qp,
            priority: self.spec.priority,
            dscp: self.spec.dscp,
            sent: self.sent,
            bytes: self.bytes,
            next_psn: self.psn_after(self.sent),
        }
    }
}

fn template(spec: &FlowSpec, size: usize) -> Result<Template, FlowError> {
    let path = Path {
        dst_mac: spec.dst_mac,
        src_mac: spec.src_mac,
        tags: &spec.tags,
        ip: spec.ip,
        dscp: spec.dscp,
        ecn: spec.ecn,
        ttl: 64,
        src_port: spec.src_port,
    };
    let packet = DataPacket { path, op: spec.op, dest_qp: spec.qp, psn: spec.first_psn, len: size };
    let mut bytes = vec![0; size];
    let layout =
        encode_data(&mut bytes, &packet).map_err(|source| FlowError::Frame { size, source })?;
    Ok(Template { bytes, layout })
}
