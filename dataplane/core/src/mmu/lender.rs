//! Which pools a PG draws from, and how it changes them while frames are in flight (SPEC 3.6).
//!
//! A PG moves to the pool that the profile names only when its Service is 0 (to or from the shared
//! headroom pool: when its Headroom is 0); until then it borrows and returns at the old one. The
//! account's word has no bit left for the pool, so a charge and its return must agree on it in
//! another way:
//!
//! - Only the port's owner moves a PG, between its own charges. It sees Service at 0, and as the
//!   only one who charges it knows that it stays 0.
//! - A release reads the lender, then takes the cells out of the account, then returns them. The
//!   owner must not move the PG in between, *and then* charge the account back to the very word
//!   that the release has read (its CAS would succeed and the cells would go to a wrong pool). So
//!   a release of a PG that may move is registered in the lender's word itself, and the owner
//!   moves by a CAS from a word without registrations.
//! - In steady state nobody registers: a release does so when its profile and the lender differ or
//!   the PG is marked as moving. The mark is set at the adoption of a profile that names another
//!   pool, and no PG moves before [`super::Mmu::settle`] has said that all workers run that
//!   profile: each of them has then passed from one step to the next with the mark in sight.

use crate::explorer::{seeded, Fault};
use crate::ids::{PoolId, MAX_POOLS};
use crate::profile::PgSpec;
use crate::sync::atomic::{AtomicU32, Ordering};

const POOL: u32 = MAX_POOLS as u32 - 1;
const SHARED: u32 = MAX_POOLS as u32;
const MOVING: u32 = SHARED << 1;
const REGISTERED: u32 = MOVING << 1;
const _: () = assert!(MAX_POOLS.is_power_of_two());

/// A value of a [`Lender`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sources(u32);

impl Sources {
    /// What a profile names.
    #[inline]
    pub(super) const fn named(spec: &PgSpec) -> Self {
        let shared = if spec.headroom_pool { SHARED } else { 0 };
        Self(spec.pool.index() as u32 | shared)
    }

    /// The pool of its Service.
    #[inline]
    pub(super) const fn pool(self) -> usize {
        (self.0 & POOL) as usize
    }

    /// The same as an id.
    pub(super) fn pool_id(self) -> PoolId {
        PoolId::new((self.0 & POOL) as u8).unwrap_or_default()
    }

    /// Whether Headroom comes from the shared headroom pool.
    #[inline]
    pub(super) const fn shared_headroom(self) -> bool {
        self.0 & SHARED != 0
    }

    #[inline]
    const fn registrations(self) -> u32 {
        self.0 / REGISTERED
    }
}

/// The pools that a PG draws from now.
#[derive(Debug)]
pub(super) struct Lender(AtomicU32);

/// A release's view of the lender; to be given back by [`Lender::leave`].
#[derive(Debug)]
#[must_use]
pub(super) struct Visit {
    pub(super) sources: Sources,
    registered: bool,
}

impl Lender {
    pub(super) fn new(sources: Sources) -> Self {
        Self(AtomicU32::new(sources.0))
    }

    #[inline]
    pub(super) fn load(&self) -> Sources {
        Sources(self.0.load(Ordering::Acquire))
    }

    /// Begins a release under a profile that names `named` (`None`: no such PG any more).
    #[inline]
    pub(super) fn enter(&self, named: Option<Sources>) -> Visit {
        let sources = self.load();
        if named == Some(sources) || seeded(Fault::Unregistered) {
            return Visit { sources, registered: false };
        }
        let before = self.0.fetch_add(REGISTERED, Ordering::AcqRel);
        Visit { sources: Sources(before), registered: true }
    }

    /// Ends a release.
    #[inline]
    pub(super) fn leave(&self, visit: &Visit) {
        if visit.registered {
            self.0.fetch_sub(REGISTERED, Ordering::AcqRel);
        }
    }

    /// Marks the PG as moving if a profile names something else; by every worker at adoption.
    pub(super) fn announce(&self, named: Sources) {
        let now = self.0.fetch_add(0, Ordering::AcqRel);
        if (now ^ named.0) & (POOL | SHARED) != 0 {
            self.0.fetch_or(MOVING, Ordering::AcqRel);
        }
    }

    /// Moves to what the profile names, as far as the occupancies allow; by the port's owner only,
    /// and only when all workers run that profile.
    #[cold]
    pub(super) fn move_to(&self, named: Sources, no_service: bool, no_headroom: bool) {
        let now = self.load();
        let mut next = now.0 & (POOL | SHARED);
        if no_service {
            next = next & !POOL | named.0 & POOL;
        }
        if no_headroom {
            next = next & !SHARED | named.0 & SHARED;
        }
        if next != named.0 {
            next |= MOVING;
        }
        if now.registrations() == 0 && now.0 != next {
            // Lost to a release that has just registered: the owner comes by again.
            let _ = self.0.compare_exchange(now.0, next, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))] // Loom's atomics live in its models only.
mod tests {
    use super::*;

    const OLD: Sources = Sources(0);
    const NEW: Sources = Sources(2 | SHARED);

    #[test]
    fn each_half_moves_when_its_own_cells_are_gone() {
        let lender = Lender::new(OLD);
        lender.announce(NEW);
        lender.move_to(NEW, false, false);
        assert_eq!((lender.load().pool(), lender.load().shared_headroom()), (0, false));
        lender.move_to(NEW, false, true);
        assert_eq!((lender.load().pool(), lender.load().shared_headroom()), (0, true));
        lender.move_to(NEW, true, true);
        assert_eq!(lender.load(), NEW);
    }

    #[test]
    fn a_release_under_way_holds_the_move_up() {
        let lender = Lender::new(OLD);
        lender.announce(NEW);
        let visit = lender.enter(Some(OLD));
        assert!(visit.registered && visit.sources.pool() == 0);
        lender.move_to(NEW, true, true);
        assert_eq!(lender.load().pool(), 0);
        lender.leave(&visit);
        lender.move_to(NEW, true, true);
        assert_eq!(lender.load(), NEW);
        assert!(!lender.enter(Some(NEW)).registered);
    }

    #[test]
    fn a_withdrawn_move_ends_the_mark() {
        let lender = Lender::new(OLD);
        lender.announce(NEW);
        assert_ne!(lender.load(), OLD);
        lender.move_to(OLD, false, false);
        assert_eq!(lender.load(), OLD);
    }
}
