//! The invariants of SPEC 3.7, for tests and the simulator.

use super::pool::{Pool, Read};
use super::{Mmu, PgId, PoolId, PortId, Profile, POOLS};
use crate::units::Cells;
use thiserror::Error;

/// An invariant of SPEC 3.7 that doesn't hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// The receipts of a PG and its account differ.
    #[error("port {port} pg {pg}: {charged} charged, {outstanding} in receipts")]
    Receipts {
        /// The port.
        port: PortId,
        /// The priority group.
        pg: PgId,
        /// Sum of the three occupancies.
        charged: Cells,
        /// Sum of the outstanding charges.
        outstanding: Cells,
    },
    /// Headroom is in use outside XOFF.
    #[error("port {port} pg {pg}: {headroom} in Headroom without XOFF")]
    HeadroomWithoutXoff {
        /// The port.
        port: PortId,
        /// The priority group.
        pg: PgId,
        /// Its Headroom occupancy.
        headroom: Cells,
    },
    /// A lossy PG pauses its peer.
    #[error("port {port} pg {pg} is lossy and in XOFF")]
    LossyXoff {
        /// The port.
        port: PortId,
        /// The priority group.
        pg: PgId,
    },
    /// Private sizes are exceeded by more than a shrunk size explains.
    #[error("PGs of pool {pool} hold {excess} above their private sizes, {withheld} explained")]
    Overfull {
        /// The pool that the sizes feed.
        pool: usize,
        /// Cells above Guaranteed and private Headroom.
        excess: Cells,
        /// Cells withheld from the pool for that reason.
        withheld: Cells,
    },
    /// A pool's books and the accounts differ, or more is lent than it has.
    #[error("{pool} pool: {lent} lent, {held} held by PGs, size {size}, {overhang} explained")]
    Pool {
        /// Which pool: its number, or `headroom`.
        pool: String,
        /// Cells lent.
        lent: Cells,
        /// Cells that the accounts say came from it.
        held: Cells,
        /// Its size.
        size: Cells,
        /// Cells it may be over because its size was made smaller.
        overhang: Cells,
    },
}

impl Mmu {
    /// Checks SPEC 3.7 between events: no admission or release may be under way, and all workers
    /// have adopted `profile`. `outstanding` says how many cells a PG's receipts add up to.
    ///
    /// # Errors
    /// The first invariant that doesn't hold.
    pub fn check(
        &self,
        profile: &Profile,
        outstanding: impl Fn(PortId, PgId) -> Cells,
    ) -> Result<(), Violation> {
        let mut service = [Cells::ZERO; POOLS];
        let excess = self.excess(profile);
        let mut shared_headroom = Cells::ZERO;
        for (port, pg) in Self::every_pg() {
            let account = self.account(port, pg);
            let (word, sources) = (account.word.load(), account.lender.load());
            let charged = word.segments().total();
            let receipts = outstanding(port, pg);
            if charged != receipts {
                return Err(Violation::Receipts { port, pg, charged, outstanding: receipts });
            }
            let lent = &mut service[sources.pool() % POOLS];
            *lent = lent.saturating_add(word.service());
            if sources.shared_headroom() {
                shared_headroom = shared_headroom.saturating_add(word.headroom());
            }
            let Some(spec) = profile.port(port).map(|port| &port.pgs[pg]) else { continue };
            let headroom = word.headroom();
            if spec.lossless && headroom > Cells::ZERO && !word.in_xoff() {
                return Err(Violation::HeadroomWithoutXoff { port, pg, headroom });
            }
            if !spec.lossless && word.in_xoff() {
                return Err(Violation::LossyXoff { port, pg });
            }
        }
        for (number, pool) in self.pools.iter().enumerate() {
            let withheld = pool.withheld();
            if excess[number] > withheld {
                let excess = excess[number];
                return Err(Violation::Overfull { pool: number, excess, withheld });
            }
            let size = profile.pool_size(PoolId::new(number as u8).unwrap_or_default());
            check_pool(&number.to_string(), pool, size, service[number])?;
        }
        let size = profile.spec().headroom_pool;
        check_pool("headroom", &self.headroom_pool, size, shared_headroom)
    }
}

/// Lent is what the accounts hold, and no more than the size and what a change explains.
fn check_pool(name: &str, pool: &Pool, size: Cells, held: Cells) -> Result<(), Violation> {
    let (lent, overhang) = (pool.lent(Read::Recent), pool.overhang());
    if lent == held && lent.saturating_sub(size) <= overhang {
        return Ok(());
    }
    Err(Violation::Pool { pool: name.to_owned(), lent, held, size, overhang })
}
