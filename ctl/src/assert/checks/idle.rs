//! Whether every cell is back.

use super::{is_named, no_port, unknown, Check};
use crate::assert::sight::Sight;

/// How many places that hold something are named.
const NAMED: usize = 3;

/// Nothing is held or queued; of named ports only theirs.
pub(super) fn idle(sight: &Sight, named: &[String]) -> Check {
    let (check, wanted) = ("idle".to_owned(), "no cell held");
    if let Some(name) = unknown(sight, named) {
        return Check::new(check, wanted, format!("{name}: {}", no_port(sight)), false);
    }
    let mut held = Vec::new();
    let mut note = |place: String, cells: u64| {
        if cells > 0 {
            held.push(format!("{place} {cells}"));
        }
    };
    for pg in sight.pgs.iter().filter(|pg| is_named(named, &pg.port)) {
        let parts = [pg.occupancy.guaranteed, pg.occupancy.service, pg.occupancy.headroom];
        note(format!("{}:{}", pg.port, pg.pg), parts.map(u64::from).iter().sum());
    }
    for queue in sight.queues.iter().filter(|queue| is_named(named, &queue.port)) {
        note(format!("{} queue {}", queue.port, queue.queue), u64::from(queue.occupancy));
    }
    if named.is_empty() {
        let buffer = &sight.buffer;
        for pool in buffer.pools.iter().chain(&buffer.headroom_pool) {
            note(format!("pool {}", pool.pool), u64::from(pool.lent));
        }
        note("egress".to_owned(), buffer.egress.lent);
        note("flooded copies".to_owned(), buffer.flood_copies);
    }
    let more = held.len().saturating_sub(NAMED);
    let first = held.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let found = match (held.is_empty(), more) {
        (true, _) => "no cell held".to_owned(),
        (false, 0) => first,
        (false, more) => format!("{first}, and {more} more"),
    };
    Check::new(check, wanted, found, held.is_empty())
}
