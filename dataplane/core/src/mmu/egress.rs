//! The egress view: one account a queue, one pool for all (SPEC 3.5).

use super::pool::Read;
use super::watermark::View;
use super::{limits, Mmu};
use crate::drop::DropReason;
use crate::profile::{Profile, QueueSpec};
use crate::units::Cells;

/// The account of one egress queue. The port's owner has it alone, so it is plain data.
#[derive(Debug, Default)]
pub struct QueueAccount {
    guaranteed: Cells,
    shared: Cells,
    user_peak: Cells,
    persistent_peak: Cells,
}

impl QueueAccount {
    /// Charges a frame of `cells`: to the guarantee if it fits whole, else to the shared pool.
    ///
    /// A lossless frame is never refused, ingress admission is its only gate; so more may be lent
    /// than the pool has, and free then counts as 0.
    ///
    /// # Errors
    /// [`DropReason::QueueLimit`]: a lossy frame over the queue's limit or the pool; nothing was
    /// charged.
    #[inline]
    pub fn join(
        &mut self,
        mmu: &Mmu,
        profile: &Profile,
        spec: &QueueSpec,
        cells: Cells,
        lossless: bool,
    ) -> Result<(), DropReason> {
        if self.guaranteed.0 + cells.0 <= spec.guarantee.0 {
            self.guaranteed.0 += cells.0;
        } else {
            let (pool, size) = (&mmu.egress, profile.spec().egress_shared);
            if lossless {
                pool.lend(cells);
            } else {
                let wanted = self.shared.saturating_add(cells);
                let fits =
                    |free| spec.limit.is_none_or(|limit| wanted <= limits::limit(limit, free));
                let taken = pool.take(size, cells, Read::Recent, fits);
                taken.map_err(|_| DropReason::QueueLimit)?;
            }
            self.shared.0 += cells.0;
        }
        let occupancy = self.occupancy();
        self.user_peak = self.user_peak.max(occupancy);
        self.persistent_peak = self.persistent_peak.max(occupancy);
        Ok(())
    }

    /// Takes `cells` of a frame that has left back, from the shared part first.
    #[inline]
    pub fn leave(&mut self, mmu: &Mmu, cells: Cells) {
        debug_assert!(cells <= self.occupancy(), "{cells} leave, {self:?}");
        let shared = self.shared.min(cells);
        if shared > Cells::ZERO {
            self.shared.0 -= shared.0;
            mmu.egress.give(shared);
        }
        self.guaranteed = self.guaranteed.saturating_sub(cells.saturating_sub(shared));
    }

    /// Cells that the queue holds.
    #[inline]
    pub const fn occupancy(&self) -> Cells {
        Cells(self.guaranteed.0 + self.shared.0)
    }

    /// Cells of it that the shared pool lent.
    pub const fn shared(&self) -> Cells {
        self.shared
    }

    /// The highest occupancy in one of the two views (SPEC 3.8).
    pub const fn watermark(&self, view: View) -> Cells {
        match view {
            View::User => self.user_peak,
            View::Persistent => self.persistent_peak,
        }
    }

    /// Lowers the user's watermark to the present occupancy.
    pub fn clear_user_watermark(&mut self) {
        self.user_peak = self.occupancy();
    }
}
