//! When a PG enters and leaves XOFF other than by a charge (SPEC 3.3).

use super::account::Word;
use super::edge::{Edge, EdgeKind};
use super::lender::Sources;
use super::limits::{self, highest_resume, Levels};
use super::pool::Read;
use super::{Mmu, PgId, PortId, Profile, Site};
use crate::explorer::{seeded, Fault};
use crate::units::{Cells, FrameLen};

impl Mmu {
    /// The exit rule, by the port's owner in every step while the PG is in XOFF: the limit also
    /// grows when others release. Cheap while it isn't in XOFF.
    #[inline]
    pub fn reevaluate(
        &self,
        profile: &Profile,
        port: PortId,
        pg: PgId,
        edge: &mut impl FnMut(Edge),
    ) {
        if !self.in_xoff(port, pg) {
            return;
        }
        if let Some(site) = self.owned_site(profile, port, pg) {
            site.leave_xoff(Read::Recent, edge);
        }
    }

    /// Entry and exit at a profile change, by every worker for each PG it may charge or release,
    /// between two of its steps (SPEC 3.3): lowering XOFF below the occupancy pauses now, raising
    /// it resumes as soon as the exit rule holds, a PG made lossy leaves XOFF at once.
    pub fn adopt(&self, profile: &Profile, port: PortId, pg: PgId, edge: &mut impl FnMut(Edge)) {
        let Some(site) = self.site(profile, port, pg) else {
            self.abandon(port, pg);
            return;
        };
        site.account.lender.announce(Sources::named(site.spec));
        loop {
            let word = site.account.word.load();
            let free = site.pool.free(site.pool_size, Read::Latest);
            let pauses = Levels::at(site.spec, free).pauses(word.service());
            if word.in_xoff() || !site.spec.lossless || !pauses && word.headroom() == Cells::ZERO {
                break;
            }
            if site.account.word.replace(word, word.paused()) {
                site.announce(EdgeKind::Xoff, word.paused(), free, edge);
                break;
            }
        }
        site.leave_xoff(Read::Latest, edge);
    }

    /// A port that the profile no longer has pauses nobody; its frames drain.
    fn abandon(&self, port: PortId, pg: PgId) {
        let account = &self.account(port, pg).word;
        loop {
            let word = account.load();
            if !word.in_xoff() || account.replace(word, word.resumed()) {
                return;
            }
        }
    }
}

impl Site<'_> {
    /// Clears XOFF by a compare-and-swap if the exit rule holds.
    ///
    /// Whoever changes the account or the pool of this PG calls it afterwards. With
    /// [`Read::Latest`] the last one of them sees what all others did, so that none is needed
    /// after it.
    #[inline]
    pub(super) fn leave_xoff(&self, read: Read, edge: &mut impl FnMut(Edge)) {
        loop {
            let word = self.account.word.load();
            if !word.in_xoff() {
                return;
            }
            // Cheap first: no state of the pool lets a PG go from up there.
            let high = word.service() > highest_resume(self.spec, self.pool_size);
            if self.spec.lossless && (word.headroom() > Cells::ZERO || high) {
                return;
            }
            let free = self.pool.free(self.pool_size, read);
            if !self.may_leave(word, free) {
                return;
            }
            let won = self.account.word.replace(word, word.resumed());
            if won || seeded(Fault::DoubleEdge) {
                self.announce(EdgeKind::Xon, word.resumed(), free, edge);
                return;
            }
        }
    }

    /// The exit rule of SPEC 3.3 on one value of the account while `free` cells are free.
    pub(super) fn may_leave(&self, word: Word, free: Cells) -> bool {
        if !self.spec.lossless {
            return true;
        }
        let levels = Levels::at(self.spec, free);
        if word.headroom() > Cells::ZERO || word.service() > levels.resume {
            return false;
        }
        let largest = self.largest_frame();
        let guaranteed = word.guaranteed().0 + largest.0 <= self.spec.guaranteed.0;
        let service = word.service().0 + largest.0 <= levels.limit.0 && largest <= free;
        guaranteed || service || word.is_empty() && self.empty_may_leave(largest)
    }

    /// An empty PG leaves as soon as step 1, 2 or 3 would take one largest frame, with private
    /// Headroom always. It also leaves if none of them ever would: waiting would have no end.
    fn empty_may_leave(&self, largest: Cells) -> bool {
        let size = self.profile.spec().headroom_pool;
        let within_cap = largest <= self.spec.headroom;
        let (headroom, ever) = if self.shared_headroom {
            let free = self.mmu.headroom_pool.free(size, Read::Latest);
            (within_cap && largest <= free, within_cap && largest <= size)
        } else {
            (self.spec.headroom > Cells::ZERO, within_cap)
        };
        let limit = limits::limit(self.spec.limit, self.pool_size);
        let service_ever = largest <= limit.min(self.pool_size);
        headroom || !ever && !service_ever && largest > self.spec.guaranteed
    }

    /// Cells of the longest frame that the port takes.
    fn largest_frame(&self) -> Cells {
        FrameLen(self.port_spec.largest_frame()).to_cells(self.profile.cell())
    }
}
