//! The profile document: cell size, pools, PGs, queues, maps, PFC, WRED, scheduler, watchdog;
//! what travels between machines (SPEC 10).
//!
//! Every section may be repeated for one port below `[port.NAME]`; a key there wins over the
//! shared one. Defaults are filled in by the crate `plan`.

use crate::amount::{ByteAmount, CellAmount, Rate, Span, TotalAmount, XoffAmount, FIX_MARK};
use crate::doc::{DocError, Source};
use crate::switch_doc::TrustDoc;
use serde::{de, Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

mod formula;
mod write;
pub use formula::{FormulaDoc, FormulaKind, Share};
use write::is_default;

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileDoc {
    /// The profile's name.
    pub name: String,
    /// Where it fits, for people.
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: String,
    /// The smallest lossless frame for which Headroom holds, bytes without FCS.
    pub smallest_lossless_frame: Option<ByteAmount>,
    /// How Headroom was computed; checked when the profile is loaded.
    pub formula: Option<FormulaDoc>,
    /// The memory.
    #[serde(default, skip_serializing_if = "is_default")]
    pub buffer: BufferDoc,
    /// Service pools.
    #[serde(rename = "pool")]
    pub pools: Vec<PoolDoc>,
    /// Classification.
    #[serde(default, skip_serializing_if = "is_default")]
    pub maps: MapsDoc,
    /// PGs by number.
    #[serde(default, rename = "pg", skip_serializing_if = "is_default")]
    pub pgs: BTreeMap<Slot, PgDoc>,
    /// Queues by number.
    #[serde(default, rename = "queue", skip_serializing_if = "is_default")]
    pub queues: BTreeMap<Slot, QueueDoc>,
    /// PFC.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pfc: PfcDoc,
    /// Pacing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scheduler: SchedulerDoc,
    /// Storm detection; absent: off.
    pub watchdog: Option<WatchdogDoc>,
    /// What differs at a port, by its name.
    #[serde(default, rename = "port", skip_serializing_if = "is_default")]
    pub ports: BTreeMap<String, PortOverrideDoc>,
}

impl ProfileDoc {
    /// Reads a file. Ranges and relations are checked by `plan`, which knows the ports.
    ///
    /// # Errors
    /// [`DocError`]: unknown keys, wrong types and unreadable amounts, with their line.
    pub fn load(source: &Source) -> Result<Self, DocError> {
        source.parse()
    }
}

/// The eight things of a kind there are: CoS, PG, queue, priority, PCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u8);

impl Slot {
    /// 0..7, `None` outside.
    pub const fn new(number: u8) -> Option<Self> {
        if number < 8 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// 0..7.
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A DSCP or a range of them, `"24..31"`, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DscpRange {
    /// The first.
    pub first: u8,
    /// The last, not below the first.
    pub last: u8,
}

impl DscpRange {
    fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let number = |t: &str| {
            let plain = !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
            t.parse::<u8>().ok().filter(|n| plain && *n < 64)
        };
        let (first, last) = (number(first)?, number(last)?);
        (first <= last).then_some(Self { first, last })
    }
}

impl fmt::Display for DscpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}..{}", self.first, self.last)
        }
    }
}

/// What is said of a number that names no [`Slot`].
pub const SLOT_FIX: &str = "use 0..7";
/// What is said of a text that is no [`DscpRange`].
pub const DSCP_FIX: &str = "write one (48) or a range (\"24..31\") of 0..63";

struct SlotVisitor;

impl de::Visitor<'_> for SlotVisitor {
    type Value = Slot;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number in 0..7")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Slot, E> {
        let slot = u8::try_from(number).ok().and_then(Slot::new);
        slot.ok_or_else(|| E::custom(format!("{number} is out of range{FIX_MARK}{SLOT_FIX}")))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Slot, E> {
        self.visit_u64(u64::try_from(number).unwrap_or(u64::MAX))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Slot, E> {
        match text.as_bytes() {
            [digit @ b'0'..=b'7'] => Ok(Slot(digit - b'0')),
            _ => Err(E::custom(format!("{text:?} is out of range{FIX_MARK}{SLOT_FIX}"))),
        }
    }
}

impl<'de> Deserialize<'de> for Slot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SlotVisitor)
    }
}

impl<'de> Deserialize<'de> for DscpRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| de::Error::custom(format!("{text:?} is no DSCP{FIX_MARK}{DSCP_FIX}")))
    }
}

/// The memory and what it is divided into.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferDoc {
    /// Bytes a cell, 64..4096; default 256.
    pub cell_bytes: Option<u32>,
    /// All cells; default `"auto"`: parts x ports + pools + spare.
    #[serde(default, skip_serializing_if = "is_default")]
    pub total: TotalAmount,
    /// Cells that `"auto"` adds, so that live changes have room; default 0.
    pub spare: Option<CellAmount>,
    /// The shared headroom pool; default 0: Headroom is private.
    pub headroom_pool: Option<CellAmount>,
    /// What queues share beyond their guarantees; default: all that guarantees leave.
    pub egress_shared: Option<CellAmount>,
}

/// A Service pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolDoc {
    /// Its name. PGs draw by default from `lossless` or `lossy`.
    pub name: String,
    /// Its size.
    pub size: CellAmount,
}

/// Named sets of defaults for the maps (SPEC 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapBase {
    /// DSCP 24..31 -> CoS 3 lossless, 48 -> CoS 6 strict, the rest CoS 0.
    #[default]
    Ac5p,
    /// DSCP 3, 4 -> CoS 3, 4 lossless, the rest as SONiC's AZURE maps.
    Azure,
    /// DSCP 24, 26 -> CoS 3 lossless, 48 -> CoS 6 strict, the rest CoS 0.
    Nvidia,
}

/// Classification. What is absent is as in `base`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapsDoc {
    /// The set of defaults; default `ac5p`.
    pub base: Option<MapBase>,
    /// What ports believe; default `dscp`.
    pub trust: Option<TrustDoc>,
    /// CoS where nothing else decides; default 0.
    pub default_cos: Option<Slot>,
    /// CoS of a DSCP that no map names; default 0, with `azure` 1.
    pub dscp_default: Option<Slot>,
    /// DSCP or range -> CoS.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dscp_to_cos: BTreeMap<DscpRange, Slot>,
    /// PCP -> CoS.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pcp_to_cos: BTreeMap<Slot, Slot>,
    /// CoS -> PG, where the port is ingress.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cos_to_pg: BTreeMap<Slot, Slot>,
    /// CoS -> queue, where the port is egress.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cos_to_queue: BTreeMap<Slot, Slot>,
    /// Priority -> queues that its pause stops.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority_to_queues: BTreeMap<Slot, Vec<Slot>>,
}

/// How XON is read (SPEC 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XonModeDoc {
    /// AC5P: resume at XOFF - XON.
    #[default]
    Offset,
    /// Resume at XON.
    Absolute,
}

/// One PG.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PgDoc {
    /// Whether loss is forbidden; default as in the maps' `base`.
    pub lossless: Option<bool>,
    /// Size reserved to it; default 0.
    pub guaranteed: Option<CellAmount>,
    /// Size for frames in flight; needed on lossless PGs.
    pub headroom: Option<CellAmount>,
    /// Whether Headroom is a cap on the shared headroom pool; default false.
    pub headroom_pool: Option<bool>,
    /// The pool it borrows from; default `lossless` or `lossy`.
    pub pool: Option<String>,
    /// Static limit; excludes `alpha`.
    pub limit: Option<CellAmount>,
    /// Dynamic limit 2^n, n in -8..7; default 0; excludes `limit`.
    pub alpha: Option<i8>,
    /// When to pause; needed on lossless PGs.
    pub xoff: Option<XoffAmount>,
    /// When to resume; needed on lossless PGs.
    pub xon: Option<CellAmount>,
    /// How `xon` is read; default `offset`.
    pub xon_mode: Option<XonModeDoc>,
    /// Least resume level; default 0.
    pub xon_floor: Option<CellAmount>,
    /// Priorities that its XOFF pauses; default: those of the CoS mapped to it, if lossless.
    pub priorities: Option<Vec<Slot>>,
}

/// One egress queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueDoc {
    /// Cells reserved to it; default 0.
    pub guarantee: Option<CellAmount>,
    /// Static limit of lossy frames; excludes `alpha`.
    pub limit: Option<CellAmount>,
    /// Dynamic limit 2^n of the egress shared cells; default 1 on lossy queues.
    pub alpha: Option<i8>,
    /// Served before all weighted queues; default as in the maps' `base`.
    pub strict: Option<bool>,
    /// Share of bytes among weighted queues, 1..1000; default 15 lossless, 14 lossy.
    pub weight: Option<u16>,
    /// Served first until it has had this rate; default none.
    pub min_rate: Option<Rate>,
    /// Never faster; default none.
    pub max_rate: Option<Rate>,
    /// Marking; absent: none.
    pub wred: Option<WredDoc>,
}

/// Where WRED decides (SPEC 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkAtDoc {
    /// Before the frame leaves.
    #[default]
    Dequeue,
    /// After it joins.
    Enqueue,
}

/// What WRED does to a frame without ECT on a lossy queue (SPEC 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotEctDoc {
    /// Drops it with the marking probability.
    #[default]
    Drop,
    /// Lets it pass.
    Pass,
}

/// A marking line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WredDoc {
    /// `true`: no marking here, whatever the shared section says; default false.
    pub off: Option<bool>,
    /// Nothing below; needed.
    pub kmin: Option<CellAmount>,
    /// Everything from here on; needed.
    pub kmax: Option<CellAmount>,
    /// Probability at `kmax`, 0..1; default 0.2.
    pub pmax: Option<f64>,
    /// Where the depth is taken; default `dequeue`.
    pub mark_at: Option<MarkAtDoc>,
    /// Frames without ECT on a lossy queue; default `drop`.
    pub not_ect: Option<NotEctDoc>,
    /// Exponent n of the average's weight 1/2^n, 0..15; default 0: the depth of now.
    pub ewma_weight: Option<u8>,
}

/// How a paused peer is let go (SPEC 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumeDoc {
    /// By a frame with time 0.
    #[default]
    Xon,
    /// By no longer refreshing.
    Expire,
}

/// PFC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PfcDoc {
    /// Priorities that are paused and whose pauses are obeyed; default as in the maps' `base`.
    pub enabled: Option<Vec<Slot>>,
    /// The time of XOFF frames, 1..65535 quanta of 512 bit times; default 65535.
    pub pause_quanta: Option<u16>,
    /// How a pause ends; default `xon`.
    pub resume: Option<ResumeDoc>,
    /// RX backlog in frames that pauses lossless priorities; default 256 (SPEC 4.3).
    pub rx_backlog_mark: Option<u32>,
}

/// Pacing of a port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerDoc {
    /// Bytes that may be in the TX ring; default the larger of two largest frames and 10 us at
    /// the declared speed (SPEC 4.2).
    pub tx_inflight: Option<ByteAmount>,
    /// How late the port may be and still catch up; default 100us.
    pub catch_up: Option<Span>,
}

/// What the watchdog does to a stormed queue (SPEC 8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchdogActionDoc {
    /// Flush it and drop what comes.
    #[default]
    Drop,
    /// Ignore the pause.
    Forward,
    /// Only report.
    Alert,
}

/// Storm detection (SPEC 8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchdogDoc {
    /// Whether it runs; default true.
    pub enabled: Option<bool>,
    /// Paused for so long with a backlog is a storm, 1ms..60s; default 200ms. Outside of
    /// 100ms..5s the linter warns (P07).
    pub detection_time: Option<Span>,
    /// Restored after so long without a pause, 100ms..60s; default 200ms.
    pub restoration_time: Option<Span>,
    /// What is done; default `drop`.
    pub action: Option<WatchdogActionDoc>,
    /// Whether storms that repeat within 60 s double the restoration time, up to 8 x; default
    /// true.
    pub back_off: Option<bool>,
}

/// What differs at one port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortOverrideDoc {
    /// Classification.
    #[serde(default, skip_serializing_if = "is_default")]
    pub maps: MapsDoc,
    /// PGs by number.
    #[serde(default, rename = "pg", skip_serializing_if = "is_default")]
    pub pgs: BTreeMap<Slot, PgDoc>,
    /// Queues by number.
    #[serde(default, rename = "queue", skip_serializing_if = "is_default")]
    pub queues: BTreeMap<Slot, QueueDoc>,
    /// PFC.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pfc: PfcDoc,
    /// Pacing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scheduler: SchedulerDoc,
    /// Storm detection.
    pub watchdog: Option<WatchdogDoc>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<ProfileDoc, DocError> {
        ProfileDoc::load(&Source::new("p.toml", text))
    }

    const HEAD: &str = "name = \"p\"\n[[pool]]\nname = \"lossless\"\nsize = \"4MiB\"\n";

    #[test]
    fn sections_ranges_and_amounts_are_read() {
        let text = format!(
            "{HEAD}[maps]\nbase = \"azure\"\ndscp_to_cos = {{ \"24..31\" = 3, 48 = 6 }}\n\
             [pg.3]\nxoff = \"55%\"\n[port.h1.pg.3]\nxoff = \"limit\"\n"
        );
        let doc = load(&text).unwrap();
        let range = DscpRange { first: 24, last: 31 };
        assert_eq!(doc.maps.dscp_to_cos.get(&range).map(|slot| slot.number()), Some(3));
        let three = Slot::new(3).unwrap();
        assert_eq!(doc.pgs[&three].xoff, Some(XoffAmount::At(CellAmount::BasisPoints(5_500))));
        assert_eq!(doc.ports["h1"].pgs[&three].xoff, Some(XoffAmount::Limit));
    }

    #[test]
    fn keys_out_of_range_are_named_with_their_line() {
        let error = load(&format!("{HEAD}[pg.8]\nxoff = 3\n")).unwrap_err();
        assert_eq!((error.line, error.finding.key.as_str()), (Some(5), "pg.8"), "{error}");
        let error = load(&format!("{HEAD}[maps]\ndscp_to_cos = {{ 64 = 1 }}\n")).unwrap_err();
        assert_eq!(error.line, Some(6), "{error}");
        let error = load(&format!("{HEAD}[maps]\npcp_to_cos = {{ 1 = 9 }}\n")).unwrap_err();
        assert_eq!(error.finding.key, "maps.pcp_to_cos.1", "{error}");
        let error = load(&format!("{HEAD}[pg.3]\nxof = 3\n")).unwrap_err();
        assert_eq!((error.line, error.finding.key.as_str()), (Some(6), "pg.3.xof"), "{error}");
    }
}
