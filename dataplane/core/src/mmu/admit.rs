//! Admission: the five steps of SPEC 3.2 for one frame, and the races between them.

use super::account::{Segment, Word};
use super::edge::{refusal, Edge, EdgeKind};
use super::lender::Sources;
use super::limits::{self, Levels};
use super::pool::Read;
use super::{Charge, DropReason, FrameLen, Mmu, PgId, PortId, Profile, Site};
use crate::explorer::{seeded, Fault};
use crate::sync::atomic::Ordering;
use crate::units::Cells;

/// What one look at the account and its pools says.
#[derive(Clone, Copy, Debug)]
struct Verdict {
    /// Where the frame goes; `None` if it is refused.
    place: Option<Segment>,
    /// The account to write.
    next: Word,
    /// Free cells of the pool that the decision saw, after the charge.
    free: Cells,
}

/// Cells of this frame that were taken from pools and not yet written to the account. They are
/// kept while the account is tried anew, for it is only given back what the frame doesn't need.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    service: bool,
    headroom: bool,
}

impl Mmu {
    /// Charges a frame of `len` to (`port`, `pg`), reporting an edge to `edge` if there is one.
    ///
    /// By the port's owner. The frame's cells go into one segment (SPEC 3.2).
    ///
    /// # Errors
    /// [`DropReason::HeadroomOverflow`] on a lossless PG, [`DropReason::LossyIngress`] on a lossy
    /// one or a port that the profile doesn't have; nothing was charged.
    #[inline]
    pub fn admit(
        &self,
        profile: &Profile,
        port: PortId,
        pg: PgId,
        len: FrameLen,
        edge: &mut impl FnMut(Edge),
    ) -> Result<Charge, DropReason> {
        let Some(site) = self.owned_site(profile, port, pg) else {
            return Err(DropReason::LossyIngress);
        };
        let cells = len.to_cells(profile.cell());
        let mut held = Held::default();
        let (before, verdict) = loop {
            let word = site.account.word.load();
            let Some(verdict) = site.judge(word, cells, &mut held) else { continue };
            if site.commit(word, verdict, cells) {
                break (word, verdict);
            }
        };
        site.settle_held(held, verdict.place, cells);
        site.note_peaks(verdict);
        site.after_charge(before, verdict, edge);
        match verdict.place {
            Some(_) => Ok(Charge::new(port, pg, cells)),
            None => Err(refusal(site.spec.lossless)),
        }
    }

    /// Moves a PG to the pools that the owner's profile names, if nothing stands against it: no
    /// cell at all is charged, or all workers know that it may move (see `lender`).
    #[cold]
    pub(super) fn try_move(&self, profile: &Profile, port: PortId, pg: PgId) {
        let Some(spec) = profile.port(port) else { return };
        let account = self.account(port, pg);
        let word = account.word.load();
        let settled = self.settled.load(Ordering::Acquire) == profile.generation();
        if settled || word.is_empty() {
            let named = Sources::named(&spec.pgs[pg]);
            let (service, headroom) = (word.service(), word.headroom());
            account.lender.move_to(named, service == Cells::ZERO, headroom == Cells::ZERO);
        }
    }
}

impl Site<'_> {
    /// Steps 1 to 5 on one value of the account. `None`: look again, something held was given
    /// back or the shared headroom pool has changed.
    #[inline]
    fn judge(&self, word: Word, cells: Cells, held: &mut Held) -> Option<Verdict> {
        let spec = self.spec;
        if word.guaranteed().0 + cells.0 <= spec.guaranteed.0 {
            return Some(self.charged(word, Segment::Guaranteed, cells, None));
        }
        if !spec.lossless || !word.in_xoff() {
            match self.borrow(word, cells, Read::Recent, held) {
                Ok(free) => {
                    return Some(self.charged(word, Segment::Service, cells, Some(free)));
                }
                Err(free) if !spec.lossless => {
                    return Some(Verdict { place: None, next: word, free });
                }
                Err(_) => {}
            }
        }
        self.judge_in_xoff(word, cells, held)
    }

    /// Steps 3 to 5 of a lossless PG, which is in XOFF after them.
    fn judge_in_xoff(&self, word: Word, cells: Cells, held: &mut Held) -> Option<Verdict> {
        let reserve = self.reserve_headroom(word, cells, held);
        if reserve.is_ok() {
            let next = word.plus(Segment::Headroom, cells).paused();
            let free = self.pool.free(self.pool_size, Read::Recent);
            return Some(Verdict { place: Some(Segment::Headroom), next, free });
        }
        match self.borrow(word, cells, Read::Latest, held) {
            Ok(free) => {
                let next = word.plus(Segment::Service, cells).paused();
                Some(Verdict { place: Some(Segment::Service), next, free })
            }
            // Cells that this frame holds itself must not be what refuses it.
            Err(_) if held.service || held.headroom => {
                self.settle_held(*held, None, cells);
                *held = Held::default();
                None
            }
            Err(free) => {
                // The pool was full at one time, the shared headroom pool at another: it counts
                // only if the latter is as it was.
                if let Err(Some(lent)) = reserve {
                    if self.mmu.headroom_pool.lent(Read::Latest) != lent {
                        return None;
                    }
                }
                Some(Verdict { place: None, next: word.paused(), free })
            }
        }
    }

    /// The account after a charge outside XOFF, with XOFF set if the charge pauses the PG.
    #[inline]
    fn charged(&self, word: Word, segment: Segment, cells: Cells, free: Option<Cells>) -> Verdict {
        let mut next = word.plus(segment, cells);
        let mut known = free.unwrap_or_default();
        if self.spec.lossless && !next.in_xoff() {
            if next.service() > Cells::ZERO {
                known = free.unwrap_or_else(|| self.pool.free(self.pool_size, Read::Recent));
                if Levels::at(self.spec, known).pauses(next.service()) {
                    next = next.paused();
                }
            }
            // Only after it was lossy for a while: Headroom in use implies XOFF (SPEC 3.7).
            if next.headroom() > Cells::ZERO {
                next = next.paused();
            }
        }
        Verdict { place: Some(segment), next, free: known }
    }

    /// Takes `cells` of Service from the pool if limit and pool have room. Returns the free cells
    /// of the pool after it.
    ///
    /// # Errors
    /// The free cells that were too few.
    #[inline]
    fn borrow(
        &self,
        word: Word,
        cells: Cells,
        read: Read,
        held: &mut Held,
    ) -> Result<Cells, Cells> {
        let wanted = word.service().0 + cells.0;
        let fits = |free: Cells| wanted <= limits::limit(self.spec.limit, free).0;
        if held.service {
            let lent = self.pool.lent(read).saturating_sub(cells);
            let usable = self.pool_size.saturating_sub(self.pool.withheld());
            let free = usable.saturating_sub(lent);
            let left = free.saturating_sub(cells);
            return if fits(free) { Ok(left) } else { Err(left) };
        }
        let free = self.pool.take(self.pool_size, cells, read, fits)?;
        held.service = true;
        Ok(free)
    }

    /// Takes `cells` of Headroom: private, or from the shared headroom pool with the PG's size
    /// as a cap (SPEC 3.1).
    ///
    /// # Errors
    /// The cells lent by the shared headroom pool if that is what refused.
    fn reserve_headroom(
        &self,
        word: Word,
        cells: Cells,
        held: &mut Held,
    ) -> Result<(), Option<Cells>> {
        if word.headroom().0 + cells.0 > self.spec.headroom.0 {
            return Err(None);
        }
        if !self.shared_headroom || held.headroom {
            return Ok(());
        }
        let pool = &self.mmu.headroom_pool;
        let size = self.profile.spec().headroom_pool;
        while pool.take(size, cells, Read::Latest, |_| true).is_err() {
            let lent = pool.lent(Read::Latest);
            if size.saturating_sub(lent) < cells {
                return Err(Some(lent));
            }
        }
        held.headroom = true;
        Ok(())
    }

    /// Writes the verdict if the account is still what it was made from. A refusal of a lossless
    /// frame is written too, even where it changes nothing: it is final only if the account did
    /// not change while the pool was read. For a lossy frame a second look is enough.
    #[inline]
    fn commit(&self, word: Word, verdict: Verdict, cells: Cells) -> bool {
        let account = &self.account.word;
        if verdict.place.is_none() && !self.spec.lossless {
            return account.load() == word;
        }
        if seeded(Fault::TornRefusal) && verdict.place.is_none() && word.in_xoff() {
            return true;
        }
        let headroom = verdict.place == Some(Segment::Headroom);
        if seeded(Fault::TwoSteps) && headroom && !word.in_xoff() {
            return account.replace(word, word.paused()) && self.second_step(cells);
        }
        account.replace(word, verdict.next)
    }

    /// The second half of [`Fault::TwoSteps`]: XOFF was set, the Headroom charge comes later.
    #[cold]
    fn second_step(&self, cells: Cells) -> bool {
        loop {
            let now = self.account.word.load();
            if self.account.word.replace(now, now.plus(Segment::Headroom, cells)) {
                return true;
            }
        }
    }

    /// Gives back what was taken from pools and not charged.
    #[inline]
    fn settle_held(&self, held: Held, place: Option<Segment>, cells: Cells) {
        if held.service && place != Some(Segment::Service) {
            self.pool.give(cells);
        }
        if held.headroom && place != Some(Segment::Headroom) {
            self.mmu.headroom_pool.give(cells);
        }
    }

    #[inline]
    fn note_peaks(&self, verdict: Verdict) {
        let Verdict { place, next, .. } = verdict;
        match place {
            Some(Segment::Guaranteed) => self.account.guaranteed_peak.note(next.guaranteed()),
            Some(Segment::Service) => self.account.service_peak.note(next.service()),
            Some(Segment::Headroom) => self.account.headroom_peak.note(next.headroom()),
            None => {}
        }
    }

    /// Reports the edge, and looks at the exit rule: after every charge and refusal, and above all
    /// after XOFF was set, for what a release returned meanwhile may already let the PG go.
    #[inline]
    fn after_charge(&self, before: Word, verdict: Verdict, edge: &mut impl FnMut(Edge)) {
        if !verdict.next.in_xoff() || !self.spec.lossless {
            return;
        }
        if !before.in_xoff() {
            self.announce(EdgeKind::Xoff, verdict.next, verdict.free, edge);
            if seeded(Fault::NoSecondLook) {
                return;
            }
        }
        self.leave_xoff(Read::Latest, edge);
    }
}
