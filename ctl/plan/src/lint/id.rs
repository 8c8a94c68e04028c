//! The checks by name, how grave they are and why they matter.

use serde::{Serialize, Serializer};
use std::fmt;

/// How grave a finding is. Later is graver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Without effect; good to know.
    Info,
    /// Works, but not as well or as long as it should.
    Warning,
    /// Lossless can't hold or the profile contradicts itself: it isn't loaded.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $severity:ident $why:literal),* $(,)?) => {
        /// A check. The letter is its family: B buffer, E ECN with PFC, P PFC, Q QoS, H host,
        /// D document.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Id {
            $($(#[$doc])* $name),*
        }

        impl Id {
            /// All of them, in the order in which findings are listed.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// As people write it: `B04`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name)),*
                }
            }

            /// How grave it is at most.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$name => Severity::$severity),*
                }
            }

            /// What happens in the network if nothing is done about it.
            pub const fn why(self) -> &'static str {
                match self {
                    $(Self::$name => $why),*
                }
            }
        }
    };
}

ids! {
    /// The document can't be read or planned for a reason that no other check names.
    D01 Error "what can't be read or planned can't be loaded",
    /// DSCP, PCP, CoS, PG or queue out of range.
    Q01 Error "there is no such class, so no frame would get what the key says",
    /// Parts exceed the total, in one of the two views of SPEC 3.1.
    B01 Error "cells would be promised twice: a reserved size could be found empty",
    /// Cells without chunks behind them.
    B02 Error "the MMU would admit frames for which there is no memory",
    /// Headroom of a lossless PG against the profile's own formula.
    B03 Error "frames in flight after the pause don't fit: pauses are sent, frames still drop",
    /// XOFF not below what one PG can borrow.
    B04 Error "Headroom is entered before the pause and is gone when it is needed: drops",
    /// XON = 0, or not below XOFF.
    B05 Error "the PG resumes at once or only when it is empty: pause storm or starved egress",
    /// The window between pause and resume is too small or too large.
    B06 Warning "a small window oscillates (pause storm, saw-tooth throughput), a large one \
                 keeps senders paused long after the queue is empty",
    /// XOFF outside 40..70 % of Q_limit.
    B07 Warning "low: pause becomes the normal state and ECN hardly acts; high: little is left \
                 to borrow when the pause comes late",
    /// A lossy PG with Headroom.
    B08 Error "a lossy PG never pauses, so its Headroom is memory that nobody can use",
    /// An egress limit on a lossless queue.
    B09 Info "ingress admission is the only gate of lossless frames, the limit is never applied",
    /// Guaranteed leaves too little Service.
    B10 Warning "little is left to lend: limits shrink early and pauses come often",
    /// A size that holds no frame of the port's MTU.
    B11 Error "a largest frame never fits there, so it is refused or the size is wasted",
    /// What is left between XOFF and the limit is less than Headroom.
    B12 Warning "a limit that shrinks under load reaches XOFF before the pause has acted",
    /// Kmin above Kmax, or 0.
    E01 Error "the marking line isn't one: everything or nothing would be marked",
    /// Kmax not below XOFF.
    E02 Error "PFC pauses before ECN has marked: ECN never acts, pause is the normal state",
    /// Kmax not below the level at which the PG resumes.
    E03 Error "each resume is followed by full marking, and CNPs have no round trip to act \
               before XOFF",
    /// A lossless queue that doesn't mark.
    E04 Warning "only PFC slows its senders: pauses spread through the network",
    /// Kmin not below what a PG can hold when all ports are congested.
    E05 Warning "with all ports congested the limit pauses before the first mark is made",
    /// Pmax outside 0..1.
    E06 Error "it is no probability",
    /// A lossless queue shares its PG with a queue of another class.
    E07 Warning "one queue's frames fill the PG while the other's senders are the ones marked",
    /// Kmin outside 10..80 % of the queue's limit.
    E08 Warning "low: marks at idle cost throughput; high: tail drop comes before the marks act",
    /// PFC and lossless disagree about a priority.
    P01 Error "a lossless PG whose senders aren't paused loses frames; a pause for a lossy \
               priority stops traffic for nothing",
    /// More than two lossless priorities.
    P02 Warning "each needs its own Headroom at each port, and pauses spread further",
    /// All priorities are lossless.
    P03 Warning "control and bulk traffic is paused with the rest: one slow host stops all",
    /// Both ends of a link disagree.
    P04 Error "one end pauses what the other doesn't stop, or sorts frames into another class",
    /// Half of the pause is short for a CPU switch.
    P05 Warning "a switch on a CPU may refresh the pause too late, and the gate opens",
    /// A lossless port without watchdog.
    P06 Warning "a peer that pauses for ever stops the port, and soon its neighbours",
    /// Detection time of the watchdog out of the usual range.
    P07 Warning "short: congestion is taken for a storm and lossless frames are dropped; long: \
                 a storm spreads before it is stopped",
    /// 802.3x PAUSE together with PFC.
    P08 Error "IEEE 802.1Qbb has a port use one of the two: a PAUSE would stop every class",
    /// A CoS of a lossless PG that the PG's pause doesn't stop.
    P09 Error "senders of this CoS go on when the PG pauses: Headroom overflows",
    /// Live: PFC on a port without lossless traffic.
    P10 Info "nobody would miss it: its Headroom is reserved for nothing, or the traffic that it \
              is meant for is lossy",
    /// CNPs aren't served before the lossless data.
    Q02 Warning "congestion notifications wait behind the congestion they report",
    /// Weight 0.
    Q03 Error "the queue would never be served",
    /// A lossless queue without weight or minimum bandwidth.
    Q04 Warning "its share depends on what other strict queues leave, and it starves the \
                 weighted ones",
    /// DSCP maps differ between ports.
    Q05 Warning "a frame changes its class with the port it takes: lossless here, lossy there",
    /// More than one class in a lossless PG.
    Q06 Warning "bulk traffic in the PG pauses the lossless class with it",
    /// Live: VLAN offload. An error: a tagged frame isn't what was on the wire, and by PCP it is
    /// lossy that was lossless.
    H01 Error "tags are taken out of frames, or are put in after the switch has seen them: PCP is \
               lost, and frames leave untagged",
    /// Live: partial checksums. An error: the frames arrive, and their receiver drops them.
    H02 Error "a host leaves its checksums to hardware that a veth doesn't have: receivers drop \
               the frames",
    /// Live: more channels than bound queues. An error: frames are lost, lossless ones among them,
    /// and no counter of the switch moves.
    H03 Error "frames on a channel without a socket go to the kernel and never reach the switch",
    /// Live: generic XDP. A warning: it is correct, but slow.
    H04 Warning "each frame is copied by the kernel first: fewer frames a second, and RX rings \
                 fill earlier",
    /// Live: a worker that shares its core. A warning: as long as nobody else wants the core,
    /// nothing happens.
    H05 Warning "another process on the core stalls all ports of the worker, until their RX rings \
                 overflow",
    /// Live: a NIC that may keep PFC frames. A warning: by the driver it is only known that some
    /// do.
    H06 Warning "without PFC frames both ways nothing is lossless on the port",
    /// Live: Headroom against formula `cpu` and the measured reaction; the RX ring against the
    /// worst stall.
    H07 Error "what arrives before the pause acts doesn't fit: lossless frames are lost",
    /// Live: the link's speed isn't the declared one. An error where it is faster, else a warning.
    H08 Error "pause times, Headroom and the shaper count by the declared speed",
}

impl Id {
    /// Whether only a running switch can be checked for it: [`super::running()`].
    pub const fn is_live(self) -> bool {
        matches!(
            self,
            Self::P10
                | Self::H01
                | Self::H02
                | Self::H03
                | Self::H04
                | Self::H05
                | Self::H06
                | Self::H07
                | Self::H08
        )
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
