//! What a RoCEv2 host does, without a clock, a socket or a thread: time comes in as an argument.
//!
//! The endpoint program drives it with real frames, the simulator in virtual time (SPEC 13).
//!
//! - [`announce`]: what makes a host known that doesn't send.
//! - [`pfc`]: the pauses a host has been asked for, per priority.
//! - [`impair`]: a host that obeys them late, or not, on purpose.
//! - [`storm`]: pauses without a gap.
//! - [`pace`]: when the next frame may leave.
//! - [`flow`]: one flow of RoCEv2 frames, its budget, sizes and sequence numbers.
//! - [`sender`]: several flows that share a link and obey its pauses.
//! - [`receiver`]: sequence, iCRC, CE and latency of what arrives.
#![forbid(unsafe_code)]

pub mod announce;
pub mod flow;
pub mod impair;
pub mod pace;
pub mod pfc;
pub mod receiver;
pub mod sender;
mod stamp;
pub mod storm;
pub mod time;

pub use announce::Announcement;
pub use flow::{Flow, FlowReport, FlowSpec, Rate};
pub use impair::{ImpairedReceiver, ImpairmentReport, Impairments};
pub use pace::Pacer;
pub use pfc::{PfcReceiver, PfcReport};
pub use receiver::{FlowKey, Received, ReceivedFlow, Receiver, ReceiverReport};
pub use sender::{Next, Sender};
pub use storm::{Bursts, Storm, StormEnd, StormPlan, StormReport, StormStep, StormTarget};
pub use time::{BitRate, BitRateError, Nanos, Time};
