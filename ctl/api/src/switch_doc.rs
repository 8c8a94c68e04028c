//! `switch.toml`: ports, workers, rings, FDB, sockets, logging; what needs a restart or names
//! this machine (SPEC 10). What travels between machines is in [`crate::profile_doc`].

use crate::amount::{rate_text, Rate, Span};
use crate::doc::{DocError, Finding, Source};
use holdfast_core::frame::MAX_FRAME_LEN;
use holdfast_core::ids::{MAX_PORTS, MAX_WORKERS};
use holdfast_core::profile::{Trust, FRAME_OVERHEAD};
use holdfast_core::units::Nanos;
use serde::Deserialize;
use std::path::{Path, PathBuf};

mod check;

/// The fastest declared speed whose refresh a live switch is believed (SPEC 4.1).
pub const FASTEST_WITHOUT_LEAVE: u64 = 25_000_000_000;
/// The longest path of a unix socket on Linux: `sun_path` less its terminator.
pub const MAX_SOCKET_PATH: usize = 107;
/// The longest name of a switch, port or pool.
pub const MAX_NAME: usize = 32;

/// The whole file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchDoc {
    /// The switch's name: letters, digits, `-`, `_`.
    pub name: String,
    /// Control socket; default `/run/holdfast/NAME.sock`.
    pub socket: Option<PathBuf>,
    /// Folder of the last good profile; default `/var/lib/holdfast/NAME`.
    pub state: Option<PathBuf>,
    /// The profile, relative to this file's folder.
    pub profile: PathBuf,
    /// Worker threads.
    #[serde(default)]
    pub workers: Workers,
    /// Ports that may be added while the switch runs, beyond those below: memory, parts of the
    /// buffer and descriptors are set aside for them.
    #[serde(default)]
    pub spare_ports: u32,
    /// Descriptor rings and memory.
    #[serde(default)]
    pub rings: RingsDoc,
    /// Forwarding.
    #[serde(default)]
    pub fdb: FdbDoc,
    /// Logging.
    #[serde(default)]
    pub log: LogDoc,
    /// Trace ring.
    #[serde(default)]
    pub trace: TraceDoc,
    /// The ports, in the order of their ids.
    #[serde(rename = "port")]
    pub ports: Vec<PortDoc>,
}

/// How many worker threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "WorkersText")]
pub enum Workers {
    /// One with up to two cores, else one core is left for the rest, up to one worker a port.
    #[default]
    Auto,
    /// So many.
    Count(u32),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "not a number of workers; fix: write \"auto\" or 1..16")]
enum WorkersText {
    Count(u32),
    Word(AutoWord),
}

#[derive(Deserialize)]
enum AutoWord {
    #[serde(rename = "auto")]
    Auto,
}

impl From<WorkersText> for Workers {
    fn from(text: WorkersText) -> Self {
        match text {
            WorkersText::Count(count) => Self::Count(count),
            WorkersText::Word(AutoWord::Auto) => Self::Auto,
        }
    }
}

/// Descriptor rings of each socket, entries; powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RingsDoc {
    /// RX ring, and the fill ring with it: the stall that is survived (SPEC 4.3).
    pub rx: u32,
    /// TX ring; the completion ring has as many.
    pub tx: u32,
}

impl Default for RingsDoc {
    fn default() -> Self {
        Self { rx: 4096, tx: 2048 }
    }
}

/// What happens to reserved group addresses other than 01-80-C2-00-00-0x (SPEC 7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReservedGroups {
    /// Dropped and counted.
    #[default]
    Drop,
    /// Flooded as other groups.
    Forward,
}

/// The forwarding database and flooding.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FdbDoc {
    /// Entries.
    pub size: u32,
    /// A learned entry not seen for so long is removed.
    pub ageing: Span,
    /// Whether VLANs separate; else tags are carried and not looked at.
    pub vlan_aware: bool,
    /// Reserved group addresses.
    pub reserved_groups: ReservedGroups,
    /// Copies of flooded frames that may be under way at once; memory is set aside for them.
    pub flood_limit: u32,
    /// Static entries.
    #[serde(rename = "static")]
    pub statics: Vec<StaticDoc>,
}

impl Default for FdbDoc {
    fn default() -> Self {
        Self {
            size: 16_384,
            ageing: Span(Nanos::millis(300_000)),
            vlan_aware: false,
            reserved_groups: ReservedGroups::Drop,
            flood_limit: 1024,
            statics: Vec::new(),
        }
    }
}

/// A static FDB entry.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaticDoc {
    /// The station's address, `02:00:00:00:00:01`.
    pub mac: String,
    /// Its VLAN; only with `vlan_aware`.
    pub vlan: Option<u16>,
    /// The port it lies behind.
    pub port: String,
}

/// Levels of logging, least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Only what stops the switch.
    Error,
    /// And what is degraded.
    Warn,
    /// And what changes.
    #[default]
    Info,
    /// And why.
    Debug,
    /// And each step of control; never frames.
    Trace,
}

impl LogLevel {
    /// The level's name as the `log` crate reads it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// Logging to standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogDoc {
    /// The most detailed level that is written.
    pub level: LogLevel,
}

/// The bounded ring of events (SPEC 3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TraceDoc {
    /// Events kept; older ones are overwritten and counted as lost.
    pub events: u32,
}

impl Default for TraceDoc {
    fn default() -> Self {
        Self { events: 65_536 }
    }
}

/// How XDP is attached (SPEC 9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XdpDoc {
    /// Native where the driver has it, else generic.
    #[default]
    Auto,
    /// Native or not at all.
    Native,
    /// Generic.
    Generic,
}

/// A port's trust, where it differs from the profile's (SPEC 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustDoc {
    /// DSCP; PCP for what isn't IP, then the default.
    Dscp,
    /// PCP if tagged, then the default.
    Pcp,
    /// Nothing: the default CoS.
    Port,
}

impl From<TrustDoc> for Trust {
    fn from(doc: TrustDoc) -> Self {
        match doc {
            TrustDoc::Dscp => Self::Dscp,
            TrustDoc::Pcp => Self::Pcp,
            TrustDoc::Port => Self::Port,
        }
    }
}

/// Whether the host behind a veth is made to obey (SPEC 4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostGate {
    /// It isn't.
    #[default]
    Off,
}

impl<'de> Deserialize<'de> for HostGate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        if word == "off" {
            return Ok(Self::Off);
        }
        Err(serde::de::Error::custom(format!(
            "host_gate = {word:?} isn't offered by this release{}write \"off\"",
            crate::amount::FIX_MARK
        )))
    }
}

/// One port.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortDoc {
    /// Unique name for CLI, API and metrics: letters, digits, `-`, `_`.
    pub name: String,
    /// Network namespace: a name, or a path such as `/proc/1234/ns/net`; absent: our own.
    pub netns: Option<String>,
    /// The netdev in that namespace.
    pub ifname: String,
    /// Declared speed: shaper and pause quanta count by it.
    pub speed: Rate,
    /// MTU, bytes; absent: the netdev's.
    pub mtu: Option<u16>,
    /// RX and TX queues to bind; absent: all the netdev has.
    pub queues: Option<u32>,
    /// XDP mode.
    #[serde(default)]
    pub xdp: XdpDoc,
    /// Whether zero-copy is tried where the driver offers it.
    #[serde(default = "yes")]
    pub zero_copy: bool,
    /// What the port believes; absent: what the profile says.
    pub trust: Option<TrustDoc>,
    /// The worker that owns the port; absent: spread evenly.
    pub worker: Option<u8>,
    /// The port it is patched to; must name this port in turn. Absent: the FDB decides.
    pub wire: Option<String>,
    /// VLANs whose tagged frames belong here; only with `vlan_aware`.
    #[serde(default)]
    pub vlans: Vec<u16>,
    /// The VLAN of untagged frames; only with `vlan_aware`, default there 1; 0: none.
    pub pvid: Option<u16>,
    /// Take a declared speed above 25G though refreshes may come late (SPEC 4.1).
    #[serde(default)]
    pub allow_slow_refresh: bool,
    /// Obey 802.3x PAUSE for the whole port; excludes PFC on it.
    #[serde(default)]
    pub link_pause: bool,
    /// Make the host behind a veth obey.
    #[serde(default)]
    pub host_gate: HostGate,
}

const fn yes() -> bool {
    true
}

impl SwitchDoc {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`DocError`]: the first thing wrong, with its line.
    pub fn load(source: &Source) -> Result<Self, DocError> {
        let doc: Self = source.parse()?;
        check::check(&doc).map_err(|finding| source.locate(finding))?;
        Ok(doc)
    }

    /// Checks a port that is to be added to those that there are.
    ///
    /// # Errors
    /// [`Finding`]: the first thing wrong with it.
    pub fn check_with(&self, port: &PortDoc) -> Result<(), Finding> {
        let mut all = self.clone();
        all.ports.push(port.clone());
        all.spare_ports = 0;
        check::check(&all)
    }

    /// The control socket's path.
    pub fn socket_path(&self) -> PathBuf {
        let default = || PathBuf::from(format!("/run/holdfast/{}.sock", self.name));
        self.socket.clone().unwrap_or_else(default)
    }

    /// The folder of what the switch keeps over a restart.
    pub fn state_path(&self) -> PathBuf {
        let default = || PathBuf::from(format!("/var/lib/holdfast/{}", self.name));
        self.state.clone().unwrap_or_else(default)
    }

    /// The profile's path, for a switch file at `file`.
    pub fn profile_path(&self, file: &Path) -> PathBuf {
        file.parent().map_or_else(|| self.profile.clone(), |folder| folder.join(&self.profile))
    }

    /// Names of the ports in the order of their ids.
    pub fn port_names(&self) -> Vec<String> {
        self.ports.iter().map(|port| port.name.clone()).collect()
    }
}

/// Reads `02:00:00:00:00:01`, also with `-`; `None` if it is no address.
pub fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0u8; 6];
    let mut parts = text.split([':', '-']);
    for byte in &mut mac {
        let part = parts.next()?;
        if part.is_empty() || part.len() > 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

/// Whether `name` may name a switch, port or pool.
pub fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(plain)
}

#[cfg(test)]
mod tests;
