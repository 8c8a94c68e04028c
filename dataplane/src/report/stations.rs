//! The forwarding database by pages (SPEC 7).

use super::View;
use holdfast_api::message::{FdbEntry, FdbKind, FdbReply};
use holdfast_core::fdb::FdbEntry as Station;
use holdfast_core::ids::PortId;
use std::collections::BinaryHeap;

/// Entries of a page at most: a page stays well below the longest line of the API.
pub(crate) const MAX_PAGE: u32 = 4096;

/// Which page of the FDB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FdbQuery {
    /// Only entries of this port.
    pub(crate) port: Option<PortId>,
    /// Only entries of this VLAN.
    pub(crate) vlan: Option<u16>,
    /// Start here: `next` of the page before.
    pub(crate) from: u64,
    /// At most so many entries; [`MAX_PAGE`] where absent or larger.
    pub(crate) max: Option<u32>,
}

/// A station's place in the order of pages: its address, then its VLAN. An entry that stands
/// there throughout is in exactly one page, whatever comes and goes meanwhile.
const fn place(station: &Station) -> u64 {
    station.mac.to_u64() << 12 | station.vlan as u64
}

/// The answer to `show_fdb`; `view` holds all ports.
pub(crate) fn fdb_reply(view: View<'_>, query: FdbQuery, transparent: bool) -> FdbReply {
    let fdb = &view.board.shared.fdb;
    let wanted = |station: &Station| {
        query.port.is_none_or(|port| port == station.port)
            && query.vlan.is_none_or(|vlan| vlan == station.vlan)
            && place(station) >= query.from
    };
    let max = query.max.unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE) as usize;
    let stations = fdb.iter(view.now).filter(wanted);
    let (page, more) = lowest(stations, max);
    let next = page.last().filter(|_| more).map(|last| place(last) + 1);
    let counters = view.workers.iter().flat_map(|worker| &worker.ports);
    let (full, moves) = counters.fold((0, 0), |(full, moves), port| {
        (full + port.counters.fdb_full, moves + port.counters.fdb_moves)
    });
    FdbReply {
        entries: page.iter().map(|station| entry(view, station, transparent)).collect(),
        next,
        used: fdb.len() as u64,
        size: fdb.capacity() as u64,
        full,
        moves,
    }
}

/// A station that a heap compares by its place.
struct Placed(u64, Station);

impl PartialEq for Placed {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Placed {}
impl PartialOrd for Placed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Placed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

/// The first `max` stations in order, and whether there are more; holds no more than it returns.
fn lowest(stations: impl Iterator<Item = Station>, max: usize) -> (Vec<Station>, bool) {
    let mut heap = BinaryHeap::with_capacity(max + 1);
    let mut more = false;
    for station in stations {
        heap.push(Placed(place(&station), station));
        if heap.len() > max {
            heap.pop();
            more = true;
        }
    }
    (heap.into_sorted_vec().into_iter().map(|placed| placed.1).collect(), more)
}

fn entry(view: View<'_>, station: &Station, transparent: bool) -> FdbEntry {
    FdbEntry {
        mac: station.mac.to_string(),
        vlan: (!transparent).then_some(station.vlan),
        port: view.board.port_name(station.port),
        kind: if station.is_static { FdbKind::Static } else { FdbKind::Learned },
        age_ns: station.age.0,
    }
}
