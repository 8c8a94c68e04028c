//! The calls and their arguments. Filters narrow; an absent filter means all.

use crate::amount::{CellAmount, XoffAmount};
use crate::message::{EventKind, Severity};
use crate::profile_doc::{MarkAtDoc, NotEctDoc, XonModeDoc};
use serde::{Deserialize, Serialize};

macro_rules! calls {
    ($($(#[$doc:meta])* $variant:ident($argument:ty) => $name:literal,)*) => {
        /// Everything a client can ask. Each call but `events` is a barrier: its answer comes
        /// when all workers have done it and the counters in it are fresh (SPEC 11).
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub enum Call {
            $($(#[$doc])* #[serde(rename = $name)] $variant($argument),)*
        }

        impl Call {
            /// The names on the wire.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];

            /// The name on the wire.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }
        }
    };
}

calls! {
    /// A barrier and sign of life -> [`super::PongReply`].
    Ping(Ping) => "ping",
    /// Ports, their link, their rates and drops -> [`super::PortsReply`].
    ShowPorts(PortFilter) => "show_ports",
    /// Frames per DSCP and PCP, and the maps in force -> [`super::ClassifyReply`].
    ShowClassify(PortFilter) => "show_classify",
    /// PG accounts, thresholds, watermarks -> [`super::PgReply`].
    ShowPg(PgFilter) => "show_pg",
    /// Egress queues -> [`super::QueueReply`].
    ShowQueue(QueueFilter) => "show_queue",
    /// PFC sent and received -> [`super::PfcReply`].
    ShowPfc(PortFilter) => "show_pfc",
    /// Marking lines and what they did -> [`super::EcnReply`].
    ShowEcn(QueueFilter) => "show_ecn",
    /// Pools with the limit of each PG beside them -> [`super::BufferReply`].
    ShowBuffer(ShowBuffer) => "show_buffer",
    /// A page of the forwarding database -> [`super::FdbReply`].
    ShowFdb(ShowFdb) => "show_fdb",
    /// The profile in force, in cells -> [`super::ProfileReply`].
    ShowProfile(ShowProfile) => "show_profile",
    /// Watermarks of PGs, queues and pools -> [`super::WatermarkReply`].
    WatermarkShow(WatermarkFilter) => "watermark_show",
    /// Sets `user` watermarks back to the present occupancy -> [`super::Done`].
    WatermarkClear(WatermarkFilter) => "watermark_clear",
    /// Stops a port's egress at once and completely -> [`super::Done`].
    PortHold(PortName) => "port_hold",
    /// Lets it go on -> [`super::Done`].
    PortRelease(PortName) => "port_release",
    /// Puts a whole profile into force, or says what it would change -> [`super::ApplyReply`].
    Apply(Apply) => "apply",
    /// Changes thresholds of a PG in the running profile -> [`super::SetReply`].
    SetPg(SetPg) => "set_pg",
    /// Changes the marking line of a queue in the running profile -> [`super::SetReply`].
    SetWred(SetWred) => "set_wred",
    /// Adds a static FDB entry -> [`super::Done`].
    FdbAdd(FdbAdd) => "fdb_add",
    /// Removes an FDB entry, static or learned -> [`super::Done`].
    FdbDel(FdbDel) => "fdb_del",
    /// Events since a cursor -> [`super::TraceReply`].
    Trace(Trace) => "trace",
    /// Entries of the journal since a cursor; no barrier, workers aren't asked ->
    /// [`super::EventsReply`].
    Events(Events) => "events",
}

macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$fdoc:meta])* $field:ident: $kind:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$fdoc])* #[serde(default, skip_serializing_if = "Option::is_none")]
            pub $field: Option<$kind>,)*
        }
    )*};
}

arguments! {
    /// No arguments.
    Ping {}
    /// No arguments.
    ShowBuffer {}
    /// No arguments.
    ShowProfile {}
    /// One port or all.
    PortFilter {
        /// Its name.
        port: String,
    }
    /// One port or all, one PG or all.
    PgFilter {
        /// The port's name.
        port: String,
        /// The PG, 0..7.
        pg: u8,
    }
    /// One port or all, one queue or all.
    QueueFilter {
        /// The port's name.
        port: String,
        /// The queue, 0..7.
        queue: u8,
    }
    /// Which watermarks. With `pg`, `queue` or `pool` only that kind, else all kinds.
    WatermarkFilter {
        /// The port's name; narrows PGs and queues.
        port: String,
        /// The PG, 0..7.
        pg: u8,
        /// The queue, 0..7.
        queue: u8,
        /// The pool's name.
        pool: String,
    }
    /// A page of the FDB; a page is cut so that the answer stays below 1 MiB.
    ShowFdb {
        /// Only entries of this port.
        port: String,
        /// Only entries of this VLAN.
        vlan: u16,
        /// Start here: `next` of the page before.
        from: u64,
        /// At most so many entries; default and limit 4096.
        max: u32,
    }
    /// Entries of the journal since a cursor.
    Events {
        /// The cursor: `next` of the answer before; absent for the oldest kept.
        since: u64,
        /// At most so many entries; default and limit 64.
        max: u32,
        /// Only entries that matter at least so much.
        severity: Severity,
    }
    /// Events since a cursor. Without `kinds` all that are recorded.
    Trace {
        /// The cursor: `next` of the answer before; absent for the oldest kept.
        since: Vec<u64>,
        /// At most so many events; default and limit 4096.
        max: u32,
        /// Return only these kinds.
        kinds: Vec<EventKind>,
        /// From now on record these kinds too; edges and rx_backlog are always recorded.
        record: Vec<EventKind>,
        /// Return only events of this port.
        port: String,
    }
}

/// A port by its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortName {
    /// The name.
    pub port: String,
}

/// A profile to put into force: all of it or nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// The document, TOML.
    pub profile: String,
    /// What errors shall call it: its file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Check it and say what it would change, and change nothing.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub dry_run: bool,
}

/// New thresholds for a PG: what is absent stays. Amounts are cells as a number, or
/// `"38400B"`, `"40KiB"`, `"55%"` of Q_limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetPg {
    /// The port's name; absent for all ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// The PG, 0..7.
    pub pg: u8,
    /// XOFF watermark, or `"limit"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xoff: Option<XoffAmount>,
    /// XON, as `xon_mode` reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xon: Option<CellAmount>,
    /// Whether XON is an offset or a level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xon_mode: Option<XonModeDoc>,
    /// Least resume level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xon_floor: Option<CellAmount>,
    /// Headroom size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom: Option<CellAmount>,
    /// Guaranteed size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guaranteed: Option<CellAmount>,
    /// Static limit; excludes `alpha`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<CellAmount>,
    /// Dynamic limit 2^n, n in -8..7; excludes `limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<i8>,
}

/// A new marking line for a queue: what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetWred {
    /// The port's name; absent for all ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// The queue, 0..7.
    pub queue: u8,
    /// `true`: no marking on this queue; excludes all other keys.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub off: bool,
    /// Nothing is marked below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kmin: Option<CellAmount>,
    /// Everything is marked from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kmax: Option<CellAmount>,
    /// Probability at `kmax`, 0..1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pmax: Option<f64>,
    /// Where the depth is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark_at: Option<MarkAtDoc>,
    /// What happens to frames without ECT on a lossy queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ect: Option<NotEctDoc>,
    /// Exponent n of the average's weight 1/2^n; 0 for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ewma_weight: Option<u8>,
}

/// A static FDB entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FdbAdd {
    /// The station's address, `02:00:00:00:00:01`.
    pub mac: String,
    /// Its VLAN; absent where the switch is transparent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// The port it lies behind.
    pub port: String,
}

/// The FDB entry to remove.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FdbDel {
    /// The station's address.
    pub mac: String,
    /// Its VLAN; absent where the switch is transparent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
}
