//! PORT_QOS_MAP and the maps it binds: DSCP_TO_TC_MAP, DOT1P_TO_TC_MAP, TC_TO_PRIORITY_GROUP_MAP,
//! TC_TO_QUEUE_MAP, MAP_PFC_PRIORITY_TO_QUEUE and PFC_PRIORITY_TO_PRIORITY_GROUP_MAP. SONiC's TC is
//! our CoS.

use super::config_db::{port_list, slots, ConfigDb, Row};
use super::ports::{places, Port, GLOBAL};
use super::Notes;
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{DscpRange, MapsDoc, Slot};
use holdfast_api::switch_doc::TrustDoc;
use std::collections::BTreeMap;

/// What one port's frames are sorted into, whole: nothing is left to a default.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PortMaps {
    pub trust: TrustDoc,
    pub dscp: [u8; 64],
    pub pcp: [u8; 8],
    /// CoS -> PG.
    pub pg: [u8; 8],
    /// CoS -> queue.
    pub queue: [u8; 8],
    /// Priority -> queue that its pause stops.
    pub stops: [u8; 8],
    /// Priority -> PG whose XOFF pauses it.
    pub paused_by: [Option<u8>; 8],
    /// Priorities on which PFC is on.
    pub enabled: Vec<Slot>,
}

const IDENTITY: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
const FIELDS: [&str; 10] = [
    "dscp_to_tc_map",
    "dot1p_to_tc_map",
    "tc_to_pg_map",
    "tc_to_queue_map",
    "pfc_to_queue_map",
    "pfc_to_pg_map",
    "pfc_enable",
    "pfcwd_sw_enable",
    "pfc_asym",
    "pfcwd_hw_enable",
];

/// The maps of each port.
pub(super) fn read(
    db: &ConfigDb,
    ports: &[Port],
    notes: &mut Notes,
) -> Result<Vec<PortMaps>, Finding> {
    let table = db.table("PORT_QOS_MAP");
    let global = table.get(GLOBAL);
    let mut rows: Vec<Vec<&Row>> = ports.iter().map(|_| global.into_iter().collect()).collect();
    for (key, row) in table {
        row.only(&FIELDS)?;
        if key == GLOBAL {
            continue;
        }
        for place in places(ports, &port_list(key), row)? {
            if rows[place].len() > usize::from(global.is_some()) {
                let message = "the port has a second row";
                return Err(Finding::new(&row.place, message, "name each port once"));
            }
            rows[place].push(row);
        }
    }
    let maps = ports.iter().zip(&rows).map(|(port, rows)| bound(db, &port.name, rows, notes));
    maps.collect()
}

/// The maps of `rows`, of which a later one wins.
fn bound(db: &ConfigDb, port: &str, rows: &[&Row], notes: &mut Notes) -> Result<PortMaps, Finding> {
    let map = |field: &str, table: &str| -> Result<Option<&Row>, Finding> {
        match rows.iter().rev().find(|row| row.get(field).is_some()) {
            Some(row) => db.referred(row, field, table),
            None => Ok(None),
        }
    };
    let dscp = map("dscp_to_tc_map", "DSCP_TO_TC_MAP")?;
    let pcp = map("dot1p_to_tc_map", "DOT1P_TO_TC_MAP")?;
    let trust = match (dscp, pcp) {
        (Some(_), _) => TrustDoc::Dscp,
        (None, Some(_)) => TrustDoc::Pcp,
        (None, None) => TrustDoc::Port,
    };
    if trust != TrustDoc::Dscp {
        let became = match trust {
            TrustDoc::Pcp => "no dscp_to_tc_map: the port trusts PCP",
            _ => "no dscp_to_tc_map and no dot1p_to_tc_map: all frames are CoS 0",
        };
        notes.say("PORT_QOS_MAP", became);
    } else if pcp.is_none() {
        notes.say("PORT_QOS_MAP", "no dot1p_to_tc_map: what isn't IP is CoS 0 whatever its PCP");
    }
    let row = |field: &str| rows.iter().rev().find(|row| row.get(field).is_some());
    let list = |field: &str| match row(field).and_then(|row| row.get(field).map(|v| (row, v))) {
        Some((row, text)) => slots(&row.at(field), text).map(Some),
        None => Ok(None),
    };
    let enabled = list("pfc_enable")?.unwrap_or_default();
    if let Some(watched) = list("pfcwd_sw_enable")?.filter(|watched| *watched != enabled) {
        let text: Vec<String> = watched.iter().map(Slot::to_string).collect();
        let became = format!(
            "the watchdog looks after the queues of all PFC-enabled priorities, not of {} alone",
            text.join(",")
        );
        notes.say(format!("PORT_QOS_MAP|{port}|pfcwd_sw_enable"), became);
    }
    if let Some(row) = row("pfc_asym").filter(|row| row.get("pfc_asym") != Some("off")) {
        let message = "asymmetric PFC can't be expressed: what is paused is also obeyed";
        return Err(Finding::new(row.at("pfc_asym"), message, "turn it off"));
    }
    let pfc_pg = map("pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP")?;
    Ok(PortMaps {
        trust,
        dscp: whole(dscp, "DSCP", notes, |_| 0)?,
        pcp: whole(pcp, "PCP", notes, |_| 0)?,
        pg: whole(map("tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP")?, "TC", notes, |_| 0)?,
        queue: whole(map("tc_to_queue_map", "TC_TO_QUEUE_MAP")?, "TC", notes, |_| 0)?,
        stops: whole(
            map("pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE")?,
            "priority",
            notes,
            |priority| priority,
        )?,
        paused_by: match pfc_pg {
            Some(row) => entries(row)?,
            None => IDENTITY.map(Some),
        },
        enabled,
    })
}

/// The entries of a map from 0..N to 0..7.
fn entries<const N: usize>(row: &Row) -> Result<[Option<u8>; N], Finding> {
    let mut map = [None; N];
    for (from, _) in row.fields() {
        let plain = from.bytes().all(|b| b.is_ascii_digit());
        let index = from.parse::<usize>().ok().filter(|index| *index < N && plain);
        let Some(index) = index else {
            let finding = Finding::new(row.at(from), "out of range", "correct or remove it");
            return Err(finding.numbers(from, format!("0..{}", N - 1)));
        };
        if map[index].is_some() {
            let message = format!("{index} is mapped twice");
            return Err(Finding::new(row.at(from), message, "map each once"));
        }
        map[index] = row.number(from, 0, 7)?;
    }
    Ok(map)
}

/// A map with what it leaves out filled in, and said.
fn whole<const N: usize>(
    row: Option<&Row>,
    what: &str,
    notes: &mut Notes,
    missing: fn(u8) -> u8,
) -> Result<[u8; N], Finding> {
    let map = row.map_or(Ok([None; N]), entries::<N>)?;
    let absent: Vec<String> = (0..N).filter(|n| map[*n].is_none()).map(|n| n.to_string()).collect();
    if let Some(row) = row.filter(|_| !absent.is_empty()) {
        let to = if missing(1) == 0 { "0" } else { "the same number" };
        notes.say(&row.place, format!("has no {what} {}: mapped to {to}", absent.join(",")));
    }
    let mut full = [0; N];
    for ((full, entry), n) in full.iter_mut().zip(map).zip(0u8..) {
        *full = entry.unwrap_or(missing(n));
    }
    Ok(full)
}

impl PortMaps {
    /// The same as a section of a document, every entry named.
    pub fn doc(&self) -> MapsDoc {
        let of = |map: &[u8; 8]| -> BTreeMap<Slot, Slot> {
            let entries = (0u8..).zip(map);
            entries.filter_map(|(from, to)| Slot::new(from).zip(Slot::new(*to))).collect()
        };
        let mut dscp_to_cos = BTreeMap::new();
        let mut first = 0u8;
        for last in 0u8..64 {
            let cos = self.dscp[usize::from(last)];
            if last == 63 || self.dscp[usize::from(last) + 1] != cos {
                let range = DscpRange { first, last };
                dscp_to_cos.extend(Slot::new(cos).map(|cos| (range, cos)));
                first = last + 1;
            }
        }
        MapsDoc {
            base: None,
            trust: Some(self.trust),
            default_cos: Slot::new(0),
            dscp_default: None,
            dscp_to_cos,
            pcp_to_cos: of(&self.pcp),
            cos_to_pg: of(&self.pg),
            cos_to_queue: of(&self.queue),
            priority_to_queues: of(&self.stops).into_iter().map(|(p, q)| (p, vec![q])).collect(),
        }
    }

    /// The priorities that XOFF of `pg` pauses, where PFC is on for them.
    pub fn priorities(&self, pg: Slot) -> Vec<Slot> {
        let all = (0u8..).zip(&self.paused_by).filter(|(_, by)| **by == Some(pg.number()));
        all.filter_map(|(priority, _)| Slot::new(priority)).collect()
    }

    /// Whether PFC is on for a PG that feeds `queue`.
    pub fn is_meant_lossless(&self, queue: Slot) -> bool {
        let feeds = self.queue.iter().zip(&self.pg).filter(|(to, _)| **to == queue.number());
        let paused = |pg: u8| {
            let pg = Slot::new(pg).map(|pg| self.priorities(pg)).unwrap_or_default();
            pg.iter().any(|priority| self.enabled.contains(priority))
        };
        feeds.into_iter().any(|(_, pg)| paused(*pg))
    }
}
