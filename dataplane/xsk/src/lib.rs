//! AF_XDP ports: the memory of frames, rings, the XDP program's loader, and link bring-up.
//!
//! Start with [`Memory`], which makes one [`XskPool`] a worker, and [`open_port`], which makes an
//! [`XskPort`] for the port's worker and a [`PortGuard`] for the control side. The core sees pools
//! and ports by its traits `FramePool` and `PortIo` only.

mod bell;
mod bring_up;
pub mod clock;
mod error;
mod ethtool;
mod inspect;
mod link;
mod link_watch;
mod loader;
mod memory;
mod netns;
mod open;
mod peer;
mod pool;
mod port;
mod rtnetlink;
mod rx;
mod sizing;
mod socket;
mod survey;
mod tx;
mod undo;

pub use bell::{wait, Bell};
pub use bring_up::Change;
pub use error::XskError;
pub use inspect::{inspect, InspectedPeer, Inspection};
pub use link::LinkState;
pub use link_watch::LinkEvent;
pub use loader::{LosslessMap, LosslessWriter, Trust, XdpCounters, XdpMode, XdpPreference};
pub use memory::{Memory, CHUNK_BYTES, MAX_FRAGMENTS};
pub use netns::{Netns, NetnsHandle, NetnsMark};
pub use open::{
    look, open_port, CopyPreference, PortConfig, PortGuard, PortStatus, Seen, ONE_PAGE_MTU,
};
pub use pool::XskPool;
pub use port::{Held, XskPort};
pub use sizing::{chunks_needed, Layout, PortNeed, RingSizes, CONTROL_CHUNKS, CONTROL_SLOTS};
pub use socket::XskStats;
pub use survey::{probe_bpf, probe_socket, survey, Survey, SurveyedPeer};
pub use undo::{put_back, NetdevMark, Original, PutBack, Setting, UndoLog};
