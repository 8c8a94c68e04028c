//! Sizes that change while cells are in use (SPEC 3.6).

use super::{Mmu, PoolId, PortId, Profile, PGS, POOLS, PORTS};
use crate::ids::PgId;
use crate::units::Cells;

impl Mmu {
    /// Withholds from each pool the cells that PGs still hold above a private size which feeds it.
    /// By every worker at adoption. A profile older than the last one changes nothing.
    pub fn recompute_withheld(&self, profile: &Profile) {
        let mut withheld = [Cells::ZERO; POOLS];
        for (number, port) in profile.spec().ports.iter().enumerate().take(PORTS) {
            for (pg, spec) in port.pgs.iter().take(PGS) {
                let word = self.account(PortId::from_bits(number as u8), pg).word.load();
                let pool = &mut withheld[spec.pool.index() % POOLS];
                *pool = pool.saturating_add(word.guaranteed().saturating_sub(spec.guaranteed));
                if !spec.headroom_pool {
                    *pool = pool.saturating_add(word.headroom().saturating_sub(spec.headroom));
                }
            }
        }
        for (number, cells) in withheld.into_iter().enumerate() {
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

    /// All PGs that have an account.
    pub(super) fn every_pg() -> impl Iterator<Item = (PortId, PgId)> {
        (0..PORTS as u8)
            .flat_map(|n| PgId::all().take(PGS).map(move |pg| (PortId::from_bits(n), pg)))
    }
}
