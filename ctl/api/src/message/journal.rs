//! The switch's journal: what an operator wants to be told afterwards (SPEC 11). Single frames and
//! edges are the trace's ([`super::Event`]).

pub use holdfast_core::down::DownReason;
use serde::{Deserialize, Serialize};
use std::fmt;

mod down_reason;

/// How much an entry of the journal matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Somebody did something, or something is well again.
    Info,
    /// Look at it when there is time.
    Warn,
    /// Frames are lost, or the switch doesn't do what it shall.
    Error,
}

impl Severity {
    /// As on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// Who was at the other end of the control socket, as the kernel says (SO_PEERCRED, unix(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct By {
    /// Process.
    pub pid: i32,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {} uid {} gid {}", self.pid, self.uid, self.gid)
    }
}

/// The answer to `events`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventsReply {
    /// In the order they were written down.
    pub entries: Vec<JournalEntry>,
    /// The cursor for the next call.
    pub next: u64,
    /// Entries from the cursor on, of any severity, that were overwritten before this call.
    pub lost: u64,
}

/// One entry of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Its number, from 1 on since the start, without a gap.
    pub seq: u64,
    /// When, ns of the dataplane's clock.
    pub time_ns: u64,
    /// When by the wall clock, RFC 3339, UTC.
    pub wall_time: String,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: `port h1`, `profile lab`, `worker 0`.
    pub subject: String,
    /// For people.
    pub text: String,
    /// For programs.
    pub what: Occurrence,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Occurrence {
    /// The switch runs.
    Started {
        /// Version of the dataplane.
        version: String,
        /// Name of the profile.
        profile: String,
        /// Its SHA-256, as `show_profile` tells it.
        sha256: String,
        /// How many ports.
        ports: usize,
        /// How many workers.
        workers: usize,
    },
    /// It started with another profile than its file names, or couldn't use the one it had kept.
    LastGood {
        /// Why.
        why: String,
    },
    /// A port's link came up.
    PortUp {
        /// The port.
        port: String,
    },
    /// A port went down.
    PortDown {
        /// The port.
        port: String,
        /// Why.
        #[serde(with = "down_reason")]
        reason: DownReason,
    },
    /// A port was added.
    PortAdded {
        /// Who did it.
        by: By,
        /// The port.
        port: String,
        /// Its netdev.
        ifname: String,
    },
    /// A port was removed.
    PortRemoved {
        /// Who did it.
        by: By,
        /// The port.
        port: String,
    },
    /// A port was opened again: its netdev is back, or was changed.
    PortOpened {
        /// The port.
        port: String,
        /// The address that its netdev has now.
        mac: String,
        /// Its MTU now, bytes.
        mtu: u32,
        /// Its RX queues now.
        queues: u32,
    },
    /// A port can't be opened again yet; it is tried on.
    PortNotOpened {
        /// The port.
        port: String,
        /// Why.
        error: String,
    },
    /// The MTU of a port's netdev is another one now.
    PortMtu {
        /// The port.
        port: String,
        /// Bytes.
        mtu: u32,
    },
    /// News of links came faster than they could be taken.
    LinkNewsLost {
        /// The port; `None` where it isn't known.
        port: Option<String>,
    },
    /// A profile was put into force.
    ProfileApplied {
        /// Who asked.
        by: By,
        /// Its name.
        name: String,
        /// Its SHA-256, as `show_profile` tells it.
        sha256: String,
        /// The generation in force now.
        generation: u64,
        /// How many thresholds changed.
        changes: usize,
        /// Why it would not be there after a restart; `None` if it was kept.
        not_kept: Option<String>,
    },
    /// A profile was refused; the one before stays.
    ProfileRefused {
        /// Who asked.
        by: By,
        /// What its sender calls it.
        file: Option<String>,
        /// SHA-256 of the document, hex.
        document_sha256: String,
        /// The generation that stays in force.
        generation: u64,
        /// Why.
        error: String,
        /// How many were refused in the same way before and have no entry.
        left_out: u64,
    },
    /// Thresholds of the running profile were changed (`set_pg`, `set_wred`).
    ProfileChanged {
        /// Who asked.
        by: By,
        /// The call.
        call: String,
        /// The generation in force now.
        generation: u64,
        /// How many thresholds changed.
        changes: usize,
        /// The first of them.
        first: Option<String>,
    },
    /// Another change was refused.
    ChangeRefused {
        /// Who asked.
        by: By,
        /// The call.
        call: String,
        /// Why.
        error: String,
        /// How many were refused in the same way before and have no entry.
        left_out: u64,
    },
    /// A port's egress was stopped (`port_hold`).
    PortHeld {
        /// Who asked.
        by: By,
        /// The port.
        port: String,
    },
    /// It was let go on (`port_release`).
    PortReleased {
        /// Who asked.
        by: By,
        /// The port.
        port: String,
    },
    /// A static FDB entry was added.
    FdbAdded {
        /// Who asked.
        by: By,
        /// The station.
        mac: String,
        /// Its VLAN.
        vlan: Option<u16>,
        /// The port it lies behind.
        port: String,
    },
    /// An FDB entry was removed.
    FdbRemoved {
        /// Who asked.
        by: By,
        /// The station.
        mac: String,
        /// Its VLAN.
        vlan: Option<u16>,
    },
    /// `user` watermarks were set back.
    WatermarksCleared {
        /// Who asked.
        by: By,
        /// Only of this port.
        port: Option<String>,
        /// Only of this PG.
        pg: Option<u8>,
        /// Only of this queue.
        queue: Option<u8>,
        /// Only of this pool.
        pool: Option<String>,
    },
    /// The kernel lost frames because a worker was late (SPEC 4.3).
    ReceiveOverrun {
        /// The port.
        port: String,
        /// Frames since the entry before of this port.
        frames: u64,
        /// Frames since the start.
        total: u64,
    },
    /// Lossless frames were lost (SPEC 3.5).
    LosslessViolation {
        /// The port.
        port: String,
        /// Frames since the entry before of this port.
        frames: u64,
        /// Frames since the start.
        total: u64,
    },
    /// A peer paused queues without end (SPEC 8). Times to the nanosecond are the trace's.
    StormBegan {
        /// The port.
        port: String,
        /// Its stormed queues.
        queues: Vec<u8>,
        /// Storms of this port since the start.
        total: u64,
    },
    /// It is over.
    StormEnded {
        /// The port.
        port: String,
        /// The queues that go on.
        queues: Vec<u8>,
    },
    /// PGs are suspected of a deadlock: none of their frames can move (SPEC 8).
    DeadlockSuspected {
        /// The port.
        port: String,
        /// Its PGs.
        pgs: Vec<u8>,
        /// The ports whose paused queues hold their frames.
        waits_for: Vec<String>,
        /// Suspicions of this port since the start.
        total: u64,
    },
    /// They aren't any more: a queue that held their frames has moved, or they have left XOFF.
    DeadlockResolved {
        /// The port.
        port: String,
        /// The PGs.
        pgs: Vec<u8>,
    },
    /// A worker didn't answer in time; the call failed.
    WorkerSilent {
        /// Which one.
        worker: usize,
        /// How long it was waited for, ns.
        waited_ns: u64,
        /// How often it didn't answer before that has no entry.
        left_out: u64,
    },
}

impl Occurrence {
    /// How much it matters.
    pub const fn severity(&self) -> Severity {
        match self {
            Self::PortDown { reason: DownReason::NetdevGone | DownReason::NetnsGone, .. }
            | Self::ReceiveOverrun { .. }
            | Self::LosslessViolation { .. }
            | Self::StormBegan { .. }
            | Self::DeadlockSuspected { .. }
            | Self::WorkerSilent { .. } => Severity::Error,
            Self::ProfileApplied { not_kept: Some(_), .. }
            | Self::LastGood { .. }
            | Self::PortDown { .. }
            | Self::PortNotOpened { .. }
            | Self::PortMtu { .. }
            | Self::LinkNewsLost { .. }
            | Self::ProfileRefused { .. }
            | Self::ChangeRefused { .. }
            | Self::PortHeld { .. } => Severity::Warn,
            _ => Severity::Info,
        }
    }

    /// What it is about.
    pub fn subject(&self) -> String {
        match self {
            Self::Started { .. } | Self::LastGood { .. } => "switch".to_owned(),
            Self::PortUp { port }
            | Self::PortAdded { port, .. }
            | Self::PortRemoved { port, .. }
            | Self::PortOpened { port, .. }
            | Self::PortNotOpened { port, .. }
            | Self::PortDown { port, .. }
            | Self::PortMtu { port, .. }
            | Self::PortHeld { port, .. }
            | Self::PortReleased { port, .. }
            | Self::ReceiveOverrun { port, .. }
            | Self::StormBegan { port, .. }
            | Self::StormEnded { port, .. }
            | Self::DeadlockSuspected { port, .. }
            | Self::DeadlockResolved { port, .. }
            | Self::LosslessViolation { port, .. } => format!("port {port}"),
            Self::LinkNewsLost { port } => {
                port.as_ref().map_or_else(|| "ports".to_owned(), |port| format!("port {port}"))
            }
            Self::ProfileApplied { name, .. } => format!("profile {name}"),
            Self::ProfileRefused { file, .. } => {
                format!("profile {}", file.as_deref().unwrap_or("without a name"))
            }
            Self::ProfileChanged { .. } => "profile".to_owned(),
            Self::ChangeRefused { call, .. } => call.clone(),
            Self::FdbAdded { mac, .. } | Self::FdbRemoved { mac, .. } => format!("station {mac}"),
            Self::WatermarksCleared { .. } => "watermarks".to_owned(),
            Self::WorkerSilent { worker, .. } => format!("worker {worker}"),
        }
    }

    /// One sentence for people; the subject isn't repeated.
    pub fn text(&self) -> String {
        match self {
            Self::Started { version, profile, ports, workers, .. } => format!(
                "started: version {version}, profile {profile}, {ports} ports, {workers} workers"
            ),
            Self::LastGood { why } => why.clone(),
            Self::PortUp { .. } => "link up".to_owned(),
            Self::PortDown { reason: DownReason::LinkDown, .. } => {
                "link down; its frames are dropped".to_owned()
            }
            Self::PortDown { reason, .. } => reason.text().to_owned(),
            Self::PortAdded { by, ifname, .. } => format!("added by {by}, netdev {ifname}"),
            Self::PortRemoved { by, .. } => format!("removed by {by}"),
            Self::PortOpened { mac, mtu, queues, .. } => {
                format!("opened again: {mac}, MTU {mtu}, {queues} RX queues")
            }
            Self::PortNotOpened { error, .. } => format!("can't be opened again yet: {error}"),
            Self::PortMtu { mtu, .. } => format!("MTU is {mtu} now"),
            Self::LinkNewsLost { .. } => "news of its link were lost".to_owned(),
            Self::PortHeld { by, .. } => format!("egress held by {by}"),
            Self::PortReleased { by, .. } => format!("egress released by {by}"),
            Self::FdbAdded { by, vlan, port, .. } => {
                format!("static entry at port {port}{} added by {by}", in_vlan(*vlan))
            }
            Self::FdbRemoved { by, vlan, .. } => {
                format!("entry{} removed by {by}", in_vlan(*vlan))
            }
            Self::WatermarksCleared { by, port, pg, queue, pool } => {
                let part =
                    |name: &str, value: Option<String>| value.map(|v| format!(" {name} {v}"));
                let scope = [
                    part("port", port.clone()),
                    part("pg", pg.map(|pg| pg.to_string())),
                    part("queue", queue.map(|queue| queue.to_string())),
                    part("pool", pool.clone()),
                ];
                let scope: String = scope.into_iter().flatten().collect();
                let of = if scope.is_empty() { "all".to_owned() } else { format!("of{scope}") };
                format!("{of} cleared by {by}")
            }
            Self::ReceiveOverrun { frames, total, .. } => {
                format!("the kernel lost {frames} frames: the worker was late; {total} in all")
            }
            Self::LosslessViolation { frames, total, .. } => {
                format!("{frames} lossless frames were lost; {total} in all")
            }
            Self::StormBegan { queues, total, .. } => {
                format!("its peer pauses without end: storm of queues {queues:?}; {total} in all")
            }
            Self::StormEnded { queues, .. } => format!("the storm of queues {queues:?} is over"),
            Self::DeadlockSuspected { pgs, waits_for, total, .. } => format!(
                "suspected deadlock: no frame of PGs {pgs:?} can move, all are in paused queues of \
                 {}; {total} in all; ask holdfast deadlock",
                waits_for.join(", ")
            ),
            Self::DeadlockResolved { pgs, .. } => format!("frames of PGs {pgs:?} move again"),
            Self::WorkerSilent { waited_ns, left_out, .. } => {
                let ms = waited_ns / 1_000_000;
                format!("didn't answer within {ms} ms{}", also(*left_out))
            }
            Self::ProfileApplied { .. }
            | Self::ProfileRefused { .. }
            | Self::ProfileChanged { .. }
            | Self::ChangeRefused { .. } => self.profile_text(),
        }
    }

    fn profile_text(&self) -> String {
        match self {
            Self::ProfileApplied { by, sha256, generation, changes, not_kept, .. } => {
                let sha = sha256.get(..12).unwrap_or(sha256);
                let kept = not_kept.as_ref().map_or_else(String::new, |why| {
                    format!("; not kept for the next start: {why}")
                });
                format!("{sha} applied, generation {generation}, {changes} changes, by {by}{kept}")
            }
            Self::ProfileRefused { by, error, generation, left_out, .. } => {
                let more = also(*left_out);
                format!("refused, generation {generation} stays, by {by}: {error}{more}")
            }
            Self::ProfileChanged { by, call, generation, changes, first } => {
                let first = first.as_deref().map_or_else(String::new, |line| format!(": {line}"));
                format!("{call}: {changes} changes, generation {generation}, by {by}{first}")
            }
            Self::ChangeRefused { by, error, left_out, .. } => {
                format!("refused, by {by}: {error}{}", also(*left_out))
            }
            _ => String::new(),
        }
    }
}

fn in_vlan(vlan: Option<u16>) -> String {
    vlan.map_or_else(String::new, |vlan| format!(", VLAN {vlan}"))
}

fn also(left_out: u64) -> String {
    match left_out {
        0 => String::new(),
        count => format!(" ({count} more before)"),
    }
}

#[cfg(test)]
mod tests;
