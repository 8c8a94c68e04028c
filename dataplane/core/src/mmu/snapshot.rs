//! What the MMU shows: occupancies, levels and watermarks (SPEC 3.8).

use super::account::Segments;
use super::limits::Levels;
use super::pool::{Pool, Read};
use super::watermark::View;
use super::{Mmu, PgId, PoolId, PortId, Profile, POOLS};
use crate::units::Cells;

/// One PG at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PgSnapshot {
    /// Occupancy of Guaranteed.
    pub guaranteed: Cells,
    /// Occupancy of Service.
    pub service: Cells,
    /// Occupancy of Headroom.
    pub headroom: Cells,
    /// Whether it pauses its peer.
    pub xoff: bool,
    /// The limit of now on Service.
    pub limit: Cells,
    /// XOFF_eff of now.
    pub xoff_eff: Cells,
    /// R of now.
    pub resume: Cells,
}

/// One pool at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolSnapshot {
    /// Its size in the profile.
    pub size: Cells,
    /// Cells lent.
    pub lent: Cells,
    /// Cells held back for shrunk private sizes that are still overfull (SPEC 3.6).
    pub withheld: Cells,
    /// What can be lent now: 0 where size - lent - withheld is negative.
    pub free: Cells,
}

fn pool_snapshot(pool: &Pool, size: Cells) -> PoolSnapshot {
    let (lent, withheld) = (pool.lent(Read::Recent), pool.withheld());
    let free = size.saturating_sub(lent).saturating_sub(withheld);
    PoolSnapshot { size, lent, withheld, free }
}

impl Mmu {
    /// Occupancies of one PG from one read of its account, and its levels at the pool of now.
    /// Levels are 0 for a port that the profile doesn't have.
    pub fn pg(&self, profile: &Profile, port: PortId, pg: PgId) -> PgSnapshot {
        let word = self.account(port, pg).word.load();
        let levels = self.site(profile, port, pg).map(|site| {
            let free = site.pool.free(site.pool_size, Read::Recent);
            Levels::at(site.spec, free)
        });
        PgSnapshot {
            guaranteed: word.guaranteed(),
            service: word.service(),
            headroom: word.headroom(),
            xoff: word.in_xoff(),
            limit: levels.map_or(Cells::ZERO, |levels| levels.limit),
            xoff_eff: levels.map_or(Cells::ZERO, |levels| levels.xoff),
            resume: levels.map_or(Cells::ZERO, |levels| levels.resume),
        }
    }

    /// Cells that a PG holds, all segments together.
    pub fn held(&self, port: PortId, pg: PgId) -> Cells {
        self.account(port, pg).word.load().segments().total()
    }

    /// A Service pool of the ingress view.
    pub fn pool(&self, profile: &Profile, pool: PoolId) -> PoolSnapshot {
        pool_snapshot(&self.pools[pool.index() % POOLS], profile.pool_size(pool))
    }

    /// The pool that the PG's Service comes from now: the profile's, or the old one while cells
    /// of that are still out (SPEC 3.6).
    pub fn lender(&self, port: PortId, pg: PgId) -> PoolId {
        self.account(port, pg).lender.load().pool_id()
    }

    /// The shared headroom pool.
    pub fn headroom_pool(&self, profile: &Profile) -> PoolSnapshot {
        pool_snapshot(&self.headroom_pool, profile.spec().headroom_pool)
    }

    /// The shared pool of the egress view.
    pub fn egress_pool(&self, profile: &Profile) -> PoolSnapshot {
        pool_snapshot(&self.egress, profile.spec().egress_shared)
    }

    /// The highest occupancies of a PG's segments.
    pub fn watermarks(&self, port: PortId, pg: PgId, view: View) -> Segments {
        let account = self.account(port, pg);
        Segments {
            guaranteed: account.guaranteed_peak.get(view),
            service: account.service_peak.get(view),
            headroom: account.headroom_peak.get(view),
        }
    }

    /// The most cells that a Service pool has lent.
    pub fn pool_watermark(&self, pool: PoolId, view: View) -> Cells {
        self.pools[pool.index() % POOLS].peak(view)
    }

    /// The most cells that the shared headroom pool has lent.
    pub fn headroom_pool_watermark(&self, view: View) -> Cells {
        self.headroom_pool.peak(view)
    }

    /// The most cells that the shared egress pool has lent.
    pub fn egress_watermark(&self, view: View) -> Cells {
        self.egress.peak(view)
    }

    /// Lowers the user's watermarks of a PG to its present occupancy. A peak that is reached
    /// meanwhile is kept.
    pub fn clear_pg_watermarks(&self, port: PortId, pg: PgId) {
        let account = self.account(port, pg);
        account.guaranteed_peak.clear_user(|| account.word.load().guaranteed());
        account.service_peak.clear_user(|| account.word.load().service());
        account.headroom_peak.clear_user(|| account.word.load().headroom());
    }

    /// Forgets the watermarks of a port's PGs in both views: its number is given to another port.
    pub fn forget_watermarks(&self, port: PortId) {
        for pg in PgId::all() {
            let account = self.account(port, pg);
            account.guaranteed_peak.forget();
            account.service_peak.forget();
            account.headroom_peak.forget();
        }
    }

    /// Lowers the user's watermark of a pool to what is lent now.
    pub fn clear_pool_watermark(&self, pool: PoolId) {
        self.pools[pool.index() % POOLS].clear_peak();
    }

    /// As [`Mmu::clear_pool_watermark`], of the pool that Headroom is drawn from.
    pub fn clear_headroom_pool_watermark(&self) {
        self.headroom_pool.clear_peak();
    }

    /// As [`Mmu::clear_pool_watermark`], of the pool of egress cells.
    pub fn clear_egress_watermark(&self) {
        self.egress.clear_peak();
    }

    /// Cells that all PGs hold together.
    pub fn occupancy(&self) -> u64 {
        let words = Self::every_pg().map(|(port, pg)| self.account(port, pg).word.load());
        words.map(|word| u64::from(word.segments().total().0)).sum()
    }

    /// Whether nothing is charged or lent anywhere: so it must be after a drain (SPEC 3.7).
    pub fn idle(&self) -> bool {
        let pools = self.pools.iter().chain([&self.headroom_pool, &self.egress]);
        self.occupancy() == 0 && pools.map(|pool| pool.lent(Read::Recent).0).all(|lent| lent == 0)
    }
}
