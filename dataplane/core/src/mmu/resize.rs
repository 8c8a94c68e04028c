//! Sizes that change while cells are in use (SPEC 3.6).

use super::{Mmu, PoolId, PortId, Profile, PGS, POOLS, PORTS};
use crate::ids::PgId;
use crate::profile::PgSpec;
use crate::units::Cells;

impl Mmu {
    /// Withholds from each pool the cells that PGs still hold above a private size which feeds it.
    /// By every worker at adoption, before [`Mmu::adopt`], for the limits follow from it. A
    /// profile older than the last one changes nothing.
    pub fn recompute_withheld(&self, profile: &Profile) {
        let excess = self.excess(profile);
        for (number, cells) in excess.into_iter().enumerate() {
            let pool = &self.pools[number];
            pool.set_withheld(profile.generation(), cells);
            pool.set_overhang(profile.pool_size(PoolId::new(number as u8).unwrap_or_default()));
        }
        self.headroom_pool.set_overhang(profile.spec().headroom_pool);
    }

    /// [`Mmu::recompute_withheld`] while anything is withheld, by one worker in each step. Costs a
    /// load a pool otherwise.
    #[inline]
    pub fn recompute_withheld_if_any(&self, profile: &Profile) {
        if self.pools.iter().any(|pool| pool.withheld() > Cells::ZERO) {
            self.recompute_withheld(profile);
        }
    }

    /// Cells above Guaranteed and private Headroom, by the pool that these sizes feed. A port that
    /// the profile no longer has has no sizes; what it holds was fed by the pool it draws from.
    pub(super) fn excess(&self, profile: &Profile) -> [Cells; POOLS] {
        let mut excess = [Cells::ZERO; POOLS];
        for (port, pg) in Self::every_pg() {
            let account = self.account(port, pg);
            let (word, sources) = (account.word.load(), account.lender.load());
            let spec = profile.port(port).map(|port| &port.pgs[pg]);
            let guaranteed = spec.map_or(Cells::ZERO, |spec| spec.guaranteed);
            let headroom = if sources.shared_headroom() {
                Cells::ZERO
            } else {
                private_excess(word.headroom(), spec)
            };
            let pool = spec.map_or(sources.pool(), |spec| spec.pool.index());
            let over = &mut excess[pool % POOLS];
            *over = over.saturating_add(word.guaranteed().saturating_sub(guaranteed));
            *over = over.saturating_add(headroom);
        }
        excess
    }

    /// All PGs that have an account.
    pub(super) fn every_pg() -> impl Iterator<Item = (PortId, PgId)> {
        (0..PORTS as u8)
            .flat_map(|n| PgId::all().take(PGS).map(move |pg| (PortId::from_bits(n), pg)))
    }
}

/// Cells of private Headroom above its size. A PG that is to draw from the shared headroom pool
/// has none; but until its Headroom is 0 it goes on with its cap as the size, so as to lose
/// nothing, and the whole cap counts.
fn private_excess(headroom: Cells, spec: Option<&PgSpec>) -> Cells {
    match spec {
        Some(spec) if spec.headroom_pool && headroom > Cells::ZERO => headroom.max(spec.headroom),
        Some(spec) => headroom.saturating_sub(spec.headroom),
        None => headroom,
    }
}
