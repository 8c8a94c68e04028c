//! Release: the account, then the pool, then the exit rule (SPEC 3.3, 3.4).

use super::edge::Edge;
use super::lender::Sources;
use super::pool::Read;
use super::{Charge, Mmu, PgId, PortId, Profile};
use crate::explorer::{seeded, Fault};
use crate::units::Cells;

impl Mmu {
    /// Takes a frame's cells back, reporting an edge to `edge` if there is one. By any worker.
    ///
    /// Headroom first, then Service, then Guaranteed (SPEC 3.4); each pool gets back exactly what
    /// came from it.
    #[inline]
    pub fn release(&self, profile: &Profile, charge: Charge, edge: &mut impl FnMut(Edge)) {
        let (port, pg, cells) = (charge.port(), charge.pg(), charge.cells());
        let account = self.account(port, pg);
        let spec = profile.port(port).map(|port| &port.pgs[pg]);
        let visit = account.lender.enter(spec.map(Sources::named));
        let (mut left, taken) = loop {
            let word = account.word.load();
            let (next, taken) = word.minus(cells);
            if account.word.replace(word, next) {
                break (next, taken);
            }
        };
        if seeded(Fault::ExitBeforeReturn) {
            self.after_release(profile, port, pg, edge);
        }
        if visit.sources.shared_headroom() && taken.headroom > Cells::ZERO {
            self.headroom_pool.give(taken.headroom);
        }
        if taken.service > Cells::ZERO {
            self.pool_at(visit.sources).give(taken.service);
            // Read again: XOFF may have been set by a charge that missed what was returned here.
            left = account.word.load();
        }
        account.lender.leave(&visit);
        if left.in_xoff() && !seeded(Fault::ExitBeforeReturn) {
            self.after_release(profile, port, pg, edge);
        }
    }

    /// The exit rule. A PG that this worker's profile has as lossy leaves XOFF at adoption; if it
    /// is in XOFF here, then because another worker runs a profile that has it as lossless.
    #[cold]
    fn after_release(
        &self,
        profile: &Profile,
        port: PortId,
        pg: PgId,
        edge: &mut impl FnMut(Edge),
    ) {
        let Some(site) = self.site(profile, port, pg) else { return };
        if site.spec.lossless {
            site.leave_xoff(Read::Latest, edge);
        }
    }
}
