//! Suspected deadlocks (SPEC 8): PGs in XOFF none of whose frames can move.
//!
//! A cycle of pauses over several switches shows in each of them alike: a PG pauses its peer, and
//! all its frames stand in queues that are paused in turn. This is found without a count on the
//! path of a frame. The owner of an egress port notices a queue that is paused with frames in it
//! ([`standstill`]); one that has stood so for the detection time is *stuck*: its frames are
//! counted once, by the PGs that they are charged to, and what comes meanwhile when it comes. The
//! counts of all workers meet in [`stuck`]. The owner of an ingress port compares them with the
//! PG's account ([`suspicion`]): if they are equal while the PG is in XOFF, none of its frames is
//! anywhere else. Whichever switch pauses the queues is then the next link of the cycle;
//! `holdfast deadlock` asks it.

pub(crate) mod standstill;
pub mod stuck;
pub(crate) mod suspicion;

use crate::profile::PortSpec;
use crate::units::Nanos;

pub use suspicion::PgSuspicion;

/// The detection time of a port without a watchdog: the watchdog's default (SPEC 8).
pub const DETECTION_TIME: Nanos = Nanos::millis(200);

/// How long a queue of this port stands before it is stuck.
pub fn detection_time(spec: &PortSpec) -> Nanos {
    spec.watchdog.map_or(DETECTION_TIME, |watchdog| watchdog.detection_time)
}
