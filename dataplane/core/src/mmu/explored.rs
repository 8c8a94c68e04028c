//! What a model reads without being an event for the explorer.

use super::{Cells, Mmu, PgId, PoolId, PortId, Word, POOLS};
use crate::explorer::value;

impl Mmu {
    /// The latest value of a PG's account.
    pub fn latest(&self, port: PortId, pg: PgId) -> Word {
        Word::from_bits(value(&self.account(port, pg).word))
    }

    /// Cells lent by a pool at this instant.
    pub fn latest_lent(&self, pool: PoolId) -> Cells {
        Cells(value(&*self.pools[pool.index() % POOLS]) as u32)
    }

    /// Cells lent by the shared headroom pool at this instant.
    pub fn latest_headroom_lent(&self) -> Cells {
        Cells(value(&*self.headroom_pool) as u32)
    }
}
