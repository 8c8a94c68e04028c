//! From what workers read of themselves to the replies of the control API.
//!
//! A worker takes one [`WorkerReading`] between two steps: plain data, so that nothing is
//! formatted or looked up while frames wait. The control thread makes a [`View`] of the readings
//! of all workers and of what they share; each file here turns a view into the replies of one
//! subject. Nothing in here changes anything.

mod accounts;
mod board;
mod buffer;
mod classes;
mod events;
mod pauses;
mod ports;
mod queues;
mod reading;
mod ring_reading;
mod stations;
mod storms;
mod waits;
mod watermarks;

#[cfg(test)]
pub(crate) mod lab;

pub(crate) use accounts::pg_reply;
pub(crate) use board::{Board, View};
pub(crate) use buffer::{buffer_reply, HEADROOM_POOL};
pub(crate) use classes::classify_reply;
pub(crate) use events::{mask_of, trace_reply, EventQuery, RingEvents};
pub(crate) use pauses::pfc_reply;
pub(crate) use ports::ports_reply;
pub(crate) use queues::{ecn_reply, queue_reply};
pub(crate) use reading::{PortReading, QueueReading, WorkerReading};
pub(crate) use ring_reading::{live_rings, PortFacts, RingReading};
pub(crate) use stations::{fdb_reply, FdbQuery};
pub(crate) use storms::watchdog_reply;
pub(crate) use waits::{waits_reply, WorkerWaits};
pub(crate) use watermarks::{watermark_reply, Choice, WatermarkQuery};
