//! The maps of one port: the set of defaults, then the shared keys, then the port's (SPEC 2).

use crate::facts::PortFacts;
use crate::merge::PortDocs;
use crate::preset::{preset, Preset};
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{MapsDoc, Slot};
use holdfast_core::ids::{
    Cos, Dscp, Pcp, PerCos, PerDscp, PerPcp, PerPriority, PgId, Priority, QueueId, QueueSet,
};
use holdfast_core::profile::{ClassMaps, Trust};

/// The maps, and the set they started from.
pub(crate) fn resolve(
    port: &PortFacts,
    docs: &PortDocs<'_>,
) -> Result<(ClassMaps, &'static Preset), Finding> {
    let last = |pick: fn(&MapsDoc) -> Option<Slot>| docs.maps().filter_map(pick).last();
    let base = docs.maps().filter_map(|maps| maps.base).last().unwrap_or_default();
    let set = preset(base);
    let dscp_default = last(|maps| maps.dscp_default).map_or(set.dscp_default, Slot::number);
    let mut maps = ClassMaps {
        trust: Trust::Dscp,
        default_cos: cos(last(|maps| maps.default_cos).map_or(0, Slot::number)),
        dscp_to_cos: PerDscp::from_fn(|_| cos(dscp_default)),
        pcp_to_cos: PerPcp::from_fn(|pcp| cos(set.pcp[pcp.index()])),
        cos_to_pg: PerCos::from_fn(|cos| PgId::from_bits(set.pg[cos.index()])),
        cos_to_queue: PerCos::from_fn(|cos| QueueId::from_bits(set.queue[cos.index()])),
        priority_to_queues: PerPriority::from_fn(|priority| {
            QueueSet::only(QueueId::from_bits(priority.number()))
        }),
    };
    if let Some(trust) = docs.maps().filter_map(|maps| maps.trust).last() {
        maps.trust = trust.into();
    }
    // switch.toml names this machine's port, the profile travels: the former knows better.
    maps.trust = port.trust.unwrap_or(maps.trust);
    for (dscp, class) in set.dscp {
        maps.dscp_to_cos[Dscp::from_bits(*dscp)] = cos(*class);
    }
    for (doc, shared) in docs.maps().zip([true, false]) {
        let prefix = if shared { "maps".to_owned() } else { format!("port.{}.maps", port.name) };
        apply(&prefix, doc, &mut maps)?;
    }
    Ok((maps, set))
}

const fn cos(number: u8) -> Cos {
    Cos::from_bits(number)
}

fn apply(prefix: &str, doc: &MapsDoc, maps: &mut ClassMaps) -> Result<(), Finding> {
    let mut named = [None; Dscp::COUNT];
    for (range, class) in &doc.dscp_to_cos {
        for dscp in range.first..=range.last {
            let id = Dscp::from_bits(dscp);
            if let Some(earlier) = named[id.index()].replace(*range) {
                let key = format!("{prefix}.dscp_to_cos.{range}");
                let message = format!("DSCP {dscp} is also in {earlier}");
                return Err(Finding::new(key, message, "name each DSCP once"));
            }
            maps.dscp_to_cos[id] = cos(class.number());
        }
    }
    for (pcp, class) in &doc.pcp_to_cos {
        maps.pcp_to_cos[Pcp::from_bits(pcp.number())] = cos(class.number());
    }
    for (class, pg) in &doc.cos_to_pg {
        maps.cos_to_pg[cos(class.number())] = PgId::from_bits(pg.number());
    }
    for (class, queue) in &doc.cos_to_queue {
        maps.cos_to_queue[cos(class.number())] = QueueId::from_bits(queue.number());
    }
    for (priority, queues) in &doc.priority_to_queues {
        let set = queues.iter().fold(QueueSet::EMPTY, |set, queue| {
            set.or(QueueSet::only(QueueId::from_bits(queue.number())))
        });
        maps.priority_to_queues[Priority::from_bits(priority.number())] = set;
    }
    Ok(())
}
