//! The calls and their arguments. Filters narrow; an absent filter means all.

use crate::amount::{CellAmount, Rate, XoffAmount};
use crate::message::{EventKind, Severity};
use crate::profile_doc::{MarkAtDoc, NotEctDoc, XonModeDoc};
use crate::switch_doc::{HostGate, PortDoc, TrustDoc, XdpDoc};
use serde::{Deserialize, Deserializer, Serialize};

macro_rules! calls {
    ($($(#[$doc:meta])* $variant:ident($argument:ty) => $effect:ident $name:literal,)*) => {
        /// Everything a client can ask. Each call but `events`, `segment` and `show_host` is a
        /// barrier: its answer comes when all workers have done it and the counters in it are
        /// fresh (SPEC 11).
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

            /// What it does to the switch.
            pub const fn effect(&self) -> Effect {
                match self { $(Self::$variant(_) => Effect::$effect,)* }
            }

            /// What the call `name` does to the switch; `None` if there is no call of that name.
            pub fn effect_of(name: &str) -> Option<Effect> {
                match name {
                    $($name => Some(Effect::$effect),)*
                    _ => None,
                }
            }

            /// The call `name` with `arguments`, whatever they are written in; `None` if there is
            /// no call of that name.
            ///
            /// # Errors
            /// The deserializer's, where an argument is missing, unknown or wrong.
            pub fn read<'de, D>(name: &str, arguments: D) -> Option<Result<Self, D::Error>>
            where
                D: Deserializer<'de>,
            {
                match name {
                    $($name => Some(<$argument>::deserialize(arguments).map(Self::$variant)),)*
                    _ => None,
                }
            }
        }
    };
}

calls! {
    /// A barrier and sign of life -> [`super::PongReply`].
    Ping(Ping) => Reads "ping",
    /// Ports, their link, their rates and drops -> [`super::PortsReply`].
    ShowPorts(PortFilter) => Reads "show_ports",
    /// Frames per DSCP and PCP, and the maps in force -> [`super::ClassifyReply`].
    ShowClassify(PortFilter) => Reads "show_classify",
    /// PG accounts, thresholds, watermarks -> [`super::PgReply`].
    ShowPg(PgFilter) => Reads "show_pg",
    /// Egress queues -> [`super::QueueReply`].
    ShowQueue(QueueFilter) => Reads "show_queue",
    /// PFC sent and received -> [`super::PfcReply`].
    ShowPfc(PortFilter) => Reads "show_pfc",
    /// Marking lines and what they did -> [`super::EcnReply`].
    ShowEcn(QueueFilter) => Reads "show_ecn",
    /// Pools with the limit of each PG beside them -> [`super::BufferReply`].
    ShowBuffer(ShowBuffer) => Reads "show_buffer",
    /// Storms of the queues that a watchdog watches -> [`super::WatchdogReply`].
    ShowWatchdog(QueueFilter) => Reads "show_watchdog",
    /// PGs in XOFF and the queues that hold their frames -> [`super::WaitsReply`].
    ShowWaits(PortFilter) => Reads "show_waits",
    /// A page of the forwarding database -> [`super::FdbReply`].
    ShowFdb(ShowFdb) => Reads "show_fdb",
    /// The profile in force, in cells -> [`super::ProfileReply`].
    ShowProfile(ShowProfile) => Reads "show_profile",
    /// Settings of netdevs and worker threads that others may change, as they are now; no barrier,
    /// workers aren't asked -> [`super::HostReply`].
    ShowHost(PortFilter) => Reads "show_host",
    /// The counters segment: its file comes with the answer (SCM_RIGHTS). No barrier, for it asks
    /// the workers nothing -> [`super::SegmentReply`].
    Segment(Segment) => HandsOver "segment",
    /// Watermarks of PGs, queues and pools -> [`super::WatermarkReply`].
    WatermarkShow(WatermarkFilter) => Reads "watermark_show",
    /// Sets `user` watermarks back to the present occupancy -> [`super::Done`].
    WatermarkClear(WatermarkFilter) => Changes "watermark_clear",
    /// Stops a port's egress at once and completely -> [`super::Done`].
    PortHold(PortName) => Changes "port_hold",
    /// Lets it go on -> [`super::Done`].
    PortRelease(PortName) => Changes "port_release",
    /// Adds a port to the running switch -> [`super::Done`].
    PortAdd(PortAdd) => Changes "port_add",
    /// Ends a port of the running switch -> [`super::Done`].
    PortRemove(PortName) => Changes "port_remove",
    /// Sends frames that change nothing at whoever gets them, to see whether MAC control passes
    /// -> [`super::PreflightReply`].
    Preflight(Preflight) => Changes "preflight",
    /// Puts a whole profile into force, or says what it would change -> [`super::ApplyReply`].
    Apply(Apply) => Changes "apply",
    /// Changes thresholds of a PG in the running profile -> [`super::SetReply`].
    SetPg(SetPg) => Changes "set_pg",
    /// Changes the marking line of a queue in the running profile -> [`super::SetReply`].
    SetWred(SetWred) => Changes "set_wred",
    /// Adds a static FDB entry -> [`super::Done`].
    FdbAdd(FdbAdd) => Changes "fdb_add",
    /// Removes an FDB entry, static or learned -> [`super::Done`].
    FdbDel(FdbDel) => Changes "fdb_del",
    /// Events since a cursor -> [`super::TraceReply`].
    Trace(Trace) => MayChange "trace",
    /// Entries of the journal since a cursor; no barrier, workers aren't asked ->
    /// [`super::EventsReply`].
    Events(Events) => Reads "events",
}

/// What a call does to the switch. Each call says it beside its name, so that none is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only reads.
    Reads,
    /// It changes something; a dry run of `apply` is held to the same right as the apply after it.
    Changes,
    /// It reads, and changes something with one of its arguments: see [`Call::changes`].
    MayChange,
    /// It only reads, but its answer comes with a file: over the socket only.
    HandsOver,
}

impl Call {
    /// Whether it changes anything: then it is allowed only to who may change the switch.
    pub const fn changes(&self) -> bool {
        match (self, self.effect()) {
            // It chooses what is recorded from now on.
            (Self::Trace(trace), _) => trace.record.is_some(),
            (_, Effect::Reads | Effect::HandsOver) => false,
            (_, Effect::Changes | Effect::MayChange) => true,
        }
    }
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
    /// No arguments.
    Segment {}
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

/// A port to add: the keys of a `[[port]]` section, with the same defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortAdd {
    /// Its name.
    pub port: String,
    /// Network namespace: a name or a path; absent: the switch's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<String>,
    /// The netdev in that namespace.
    pub ifname: String,
    /// Declared speed: `"1G"`.
    pub speed: Rate,
    /// MTU, bytes; absent: the netdev's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// RX queues to bind; absent: all the netdev has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<u32>,
    /// What the port believes; absent: what the profile says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<TrustDoc>,
    /// VLANs whose tagged frames belong here; only with `vlan_aware`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vlans: Vec<u16>,
    /// The VLAN of untagged frames; only with `vlan_aware`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pvid: Option<u16>,
    /// Take a declared speed above 25G though refreshes may come late.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub allow_slow_refresh: bool,
    /// Obey 802.3x PAUSE for the whole port.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub link_pause: bool,
}

impl From<&PortAdd> for PortDoc {
    fn from(add: &PortAdd) -> Self {
        Self {
            name: add.port.clone(),
            netns: add.netns.clone(),
            ifname: add.ifname.clone(),
            speed: add.speed,
            mtu: add.mtu,
            queues: add.queues,
            xdp: XdpDoc::default(),
            zero_copy: true,
            trust: add.trust,
            worker: None,
            wire: None,
            vlans: add.vlans.clone(),
            pvid: add.pvid,
            allow_slow_refresh: add.allow_slow_refresh,
            link_pause: add.link_pause,
            host_gate: HostGate::default(),
        }
    }
}

/// Most frames of one [`Preflight`].
pub const MAX_PREFLIGHT: u8 = 8;

/// What the frames of a [`Preflight`] are. Each is counted at a port of a switch that receives it,
/// by what it is, and pauses nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreflightKind {
    /// No MAC control: EtherType 0x88B5 (for experiments) to 01-80-C2-00-00-0E, which no bridge
    /// forwards. Counted as a drop `reserved_group`. Shows that there is a link.
    Link,
    /// MAC control with an opcode that nobody uses: counted as invalid, `unknown_opcode`. Shows
    /// that the EtherType 0x8808 passes.
    UnknownOpcode,
    /// PFC that names no priority: counted as invalid, `empty_vector`. Shows that PFC passes
    /// whatever looks at address, type and opcode.
    EmptyVector,
    /// PFC with time 0 for one priority without PFC: counted as an XON of it. Shows that PFC
    /// passes that a NIC would act upon by itself.
    Resume,
}

/// Frames to send out of a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preflight {
    /// The port.
    pub port: String,
    /// What they are.
    pub kind: PreflightKind,
    /// How many, 1 to [`MAX_PREFLIGHT`].
    pub frames: u8,
    /// The priority of `resume`; one on which this port has no PFC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
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
