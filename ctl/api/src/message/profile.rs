//! The profile in force as `show_profile` tells it: resolved to cells, all ports.

use super::account::WredView;
use super::port::ClassMapsView;
use crate::last_good::sha256;
use holdfast_core::profile::{
    ClassMaps, Limit, PgSpec, PortSpec, Profile, QueueSpec, Resume, Service, Trust, WatchdogAction,
    WatchdogSpec, Xoff, Xon,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod read;

/// The answer to `show_profile`. Sizes and levels in cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileReply {
    /// Its name.
    pub name: String,
    /// Which change made it.
    pub generation: u64,
    /// SHA-256, hex, of all below but `notes` and `need`: the same for the same thresholds,
    /// whatever file they come from.
    pub sha256: String,
    /// Bytes a cell.
    pub cell_bytes: u32,
    /// All cells.
    pub total: u32,
    /// The Service pools.
    pub pools: Vec<PoolView>,
    /// The shared headroom pool; 0 for none.
    pub headroom_pool: u32,
    /// What queues share beyond their guarantees.
    pub egress_shared: u32,
    /// Copies of flooded frames that may be under way.
    pub flood_limit: u32,
    /// What the planner and this build have to say of it: warnings, keys not obeyed.
    pub notes: Vec<String>,
    /// What Headroom was held to when it was loaded; `None` where that isn't known.
    pub need: Option<NeedView>,
    /// One entry a port.
    pub ports: Vec<ProfilePort>,
}

/// What the document said of Headroom's need; the profile in cells doesn't keep it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeedView {
    /// The smallest frame in a lossless class, bytes without FCS.
    pub smallest_lossless_frame: u16,
    /// What the document's formula asks for, one entry a lossless PG; empty without a formula.
    pub formula: Vec<HeadroomNeed>,
}

/// What the formula asks of the Headroom of one PG.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadroomNeed {
    /// The port.
    pub port: String,
    /// 0..7.
    pub pg: u8,
    /// Cells.
    pub need: u32,
    /// Cells, if all lossless frames are of the smallest size.
    pub smallest_need: u32,
    /// The formula with its terms.
    pub terms: String,
}

/// The answer to `apply`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyReply {
    /// Whether it is in force now: not after a dry run.
    pub applied: bool,
    /// Generation of the profile that is in force now.
    pub generation: u64,
    /// Name of the profile of the call.
    pub name: String,
    /// Its SHA-256, as `show_profile` tells it.
    pub sha256: String,
    /// What is different from the profile before, one line each.
    pub changed: Vec<String>,
    /// What the planner has to say of it: warnings.
    pub notes: Vec<String>,
    /// Why it would not be there after a restart; `None` if it was kept on disk.
    pub not_kept: Option<String>,
}

/// A Service pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolView {
    /// Its name.
    pub pool: String,
    /// Its size, cells.
    pub size: u32,
}

/// What the profile says of a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfilePort {
    /// The port.
    pub port: String,
    /// Declared speed, bit/s.
    pub speed_bits_per_second: u64,
    /// MTU, bytes.
    pub mtu: u16,
    /// Priorities with PFC.
    pub pfc_enabled: Vec<u8>,
    /// The time of XOFF frames, quanta.
    pub pause_quanta: u16,
    /// `xon` or `expire`.
    pub resume: String,
    /// Whether 802.3x PAUSE is obeyed.
    pub link_pause: bool,
    /// RX backlog that pauses, frames.
    pub rx_backlog_mark: u32,
    /// Bytes that may be in the TX ring.
    pub tx_inflight: u32,
    /// How late it may be and still catch up, ns.
    pub catch_up_ns: u64,
    /// Its watchdog; `null` for none.
    pub watchdog: Option<WatchdogView>,
    /// Classification.
    pub maps: ClassMapsView,
    /// The eight PGs.
    pub pgs: Vec<PgView>,
    /// The eight queues.
    pub queues: Vec<QueueView>,
}

/// A watchdog as configured (SPEC 8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchdogView {
    /// Paused and stalled for so long is a storm, ns.
    pub detection_ns: u64,
    /// It is over after so long without a pause, ns.
    pub restoration_ns: u64,
    /// `drop`, `forward` or `alert`.
    pub action: String,
    /// Whether storms that repeat double the restoration time.
    pub back_off: bool,
}

impl From<&WatchdogSpec> for WatchdogView {
    fn from(spec: &WatchdogSpec) -> Self {
        let action = match spec.action {
            WatchdogAction::Drop => "drop",
            WatchdogAction::Forward => "forward",
            WatchdogAction::Alert => "alert",
        };
        Self {
            detection_ns: spec.detection_time.0,
            restoration_ns: spec.restoration_time.0,
            action: action.to_owned(),
            back_off: spec.back_off,
        }
    }
}

/// A PG as configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PgView {
    /// 0..7.
    pub pg: u8,
    /// Whether loss is forbidden.
    pub lossless: bool,
    /// Size, cells.
    pub guaranteed: u32,
    /// Size, cells.
    pub headroom: u32,
    /// Whether Headroom is a cap on the shared headroom pool.
    pub headroom_pool: bool,
    /// The pool it borrows from.
    pub pool: String,
    /// Static limit, cells.
    pub limit: Option<u32>,
    /// Dynamic limit 2^n.
    pub alpha: Option<i8>,
    /// Level, cells; `None` for "the limit".
    pub xoff: Option<u32>,
    /// Cells.
    pub xon: u32,
    /// `offset` or `absolute`.
    pub xon_mode: String,
    /// Least resume level, cells.
    pub xon_floor: u32,
    /// Priorities its XOFF pauses.
    pub priorities: Vec<u8>,
}

/// A queue as configured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueView {
    /// 0..7.
    pub queue: u8,
    /// Cells reserved.
    pub guarantee: u32,
    /// Static limit, cells.
    pub limit: Option<u32>,
    /// Dynamic limit 2^n.
    pub alpha: Option<i8>,
    /// `strict`, or its weight.
    pub service: String,
    /// Served first up to here, bit/s.
    pub min_rate: Option<u64>,
    /// Never faster, bit/s.
    pub max_rate: Option<u64>,
    /// Marking.
    pub wred: Option<WredView>,
}

impl ProfileReply {
    /// The reply for `profile`; `names` are the ports' names in the order of their ids.
    pub fn new(profile: &Profile, names: &[String], notes: Vec<String>) -> Self {
        let spec = profile.spec();
        let pools = spec.pools.iter();
        let pool_names: Vec<&str> = spec.pools.iter().map(|(name, _)| name.as_str()).collect();
        let mut reply = Self {
            name: spec.name.clone(),
            generation: profile.generation(),
            sha256: String::new(),
            cell_bytes: spec.cell.bytes(),
            total: spec.total.0,
            pools: pools
                .map(|(name, size)| PoolView { pool: name.clone(), size: size.0 })
                .collect(),
            headroom_pool: spec.headroom_pool.0,
            egress_shared: spec.egress_shared.0,
            flood_limit: spec.flood_limit,
            notes,
            need: None,
            ports: (spec.ports.iter().enumerate())
                .map(|(number, port)| {
                    let name = names.get(number).cloned().unwrap_or_else(|| number.to_string());
                    (name, port)
                })
                // A place without a name is vacant.
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, port)| port_view(name, port, &pool_names))
                .collect(),
        };
        reply.sha256 = sha256(&reply.content().to_string());
        reply
    }

    /// What of it is the profile, and not told about it.
    fn content(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            for told in ["generation", "sha256", "notes", "need"] {
                fields.remove(told);
            }
        }
        value
    }

    /// What is different in `new`, one line each: `ports.h1.pgs.3.xoff: 4096 -> 5000`.
    pub fn difference(&self, new: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        compare("", &self.content(), &new.content(), &mut lines);
        lines
    }
}

/// Goes down where both sides have the same kind of thing; else they differ as a whole.
fn compare(path: &str, old: &Value, new: &Value, lines: &mut Vec<String>) {
    let below = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                compare(&below(key), value, new.get(key).unwrap_or(&Value::Null), lines);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (number, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&below(&entry_name(old, number)), old, new, lines);
            }
        }
        (old, new) if old != new => lines.push(format!("{path}: {old} -> {new}")),
        _ => {}
    }
}

/// What an entry of a list goes by: the name or number that it has, else its place.
fn entry_name(entry: &Value, place: usize) -> String {
    let name = ["port", "pg", "queue", "pool"].into_iter().find_map(|key| entry.get(key));
    match name {
        Some(Value::String(name)) => name.clone(),
        Some(number) => number.to_string(),
        None => place.to_string(),
    }
}

fn port_view(name: String, port: &PortSpec, pools: &[&str]) -> ProfilePort {
    ProfilePort {
        port: name,
        speed_bits_per_second: port.speed.bits_per_second(),
        mtu: port.mtu,
        pfc_enabled: port.pfc.enabled.iter().map(|priority| priority.number()).collect(),
        pause_quanta: port.pfc.quanta.0,
        resume: match port.pfc.resume {
            Resume::Xon => "xon".to_owned(),
            Resume::Expire => "expire".to_owned(),
        },
        link_pause: port.pfc.link_pause,
        rx_backlog_mark: port.pfc.rx_backlog_mark,
        tx_inflight: port.tx_inflight,
        catch_up_ns: port.catch_up.0,
        watchdog: port.watchdog.as_ref().map(WatchdogView::from),
        maps: (&port.maps).into(),
        pgs: port.pgs.iter().map(|(pg, spec)| pg_view(pg.number(), spec, pools)).collect(),
        queues: port.queues.iter().map(|(queue, spec)| queue_view(queue.number(), spec)).collect(),
    }
}

const fn split(limit: Limit) -> (Option<u32>, Option<i8>) {
    match limit {
        Limit::Static(cells) => (Some(cells.0), None),
        Limit::Dynamic(alpha) => (None, Some(alpha.log2())),
    }
}

fn pg_view(number: u8, pg: &PgSpec, pools: &[&str]) -> PgView {
    let (limit, alpha) = split(pg.limit);
    let (xon, mode) = match pg.xon {
        Xon::Offset(cells) => (cells, "offset"),
        Xon::Absolute(cells) => (cells, "absolute"),
    };
    PgView {
        pg: number,
        lossless: pg.lossless,
        guaranteed: pg.guaranteed.0,
        headroom: pg.headroom.0,
        headroom_pool: pg.headroom_pool,
        pool: pools.get(pg.pool.index()).copied().unwrap_or_default().to_owned(),
        limit,
        alpha,
        xoff: match pg.xoff {
            Xoff::At(cells) => Some(cells.0),
            Xoff::AtLimit => None,
        },
        xon: xon.0,
        xon_mode: mode.to_owned(),
        xon_floor: pg.xon_floor.0,
        priorities: pg.priorities.iter().map(|priority| priority.number()).collect(),
    }
}

fn queue_view(number: u8, queue: &QueueSpec) -> QueueView {
    let (limit, alpha) = queue.limit.map_or((None, None), split);
    QueueView {
        queue: number,
        guarantee: queue.guarantee.0,
        limit,
        alpha,
        service: service_name(queue.service),
        min_rate: queue.min_rate.map(holdfast_core::units::BitRate::bits_per_second),
        max_rate: queue.max_rate.map(holdfast_core::units::BitRate::bits_per_second),
        wred: queue.wred.as_ref().map(WredView::from),
    }
}

/// `strict`, or the weight as a number.
pub fn service_name(service: Service) -> String {
    match service {
        Service::Strict => "strict".to_owned(),
        Service::Weight(weight) => weight.to_string(),
    }
}

impl From<&ClassMaps> for ClassMapsView {
    fn from(maps: &ClassMaps) -> Self {
        let trust = match maps.trust {
            Trust::Dscp => "dscp",
            Trust::Pcp => "pcp",
            Trust::Port => "port",
        };
        let numbers = maps.priority_to_queues.0.iter();
        Self {
            trust: trust.to_owned(),
            default_cos: maps.default_cos.number(),
            dscp_to_cos: maps.dscp_to_cos.0.iter().map(|cos| cos.number()).collect(),
            pcp_to_cos: maps.pcp_to_cos.0.iter().map(|cos| cos.number()).collect(),
            cos_to_pg: maps.cos_to_pg.0.iter().map(|pg| pg.number()).collect(),
            cos_to_queue: maps.cos_to_queue.0.iter().map(|queue| queue.number()).collect(),
            priority_to_queues: numbers
                .map(|set| set.iter().map(|queue| queue.number()).collect())
                .collect(),
        }
    }
}
