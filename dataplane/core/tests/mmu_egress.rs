//! The egress view (SPEC 3.5).
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)] // A failed set-up fails the test.

mod mmu_fixture;

use holdfast_core::drop::DropReason;
use holdfast_core::mmu::{Mmu, QueueAccount, View};
use holdfast_core::profile::Profile;
use mmu_fixture::*;

fn switch(shared: u32) -> (Mmu, Profile) {
    let mut plain = spec(&[1], vec![port_spec(ONE_CELL_MTU, &[])]);
    plain.egress_shared = cells(shared);
    let profile = Profile::new(1, plain).unwrap();
    (Mmu::new(&profile), profile)
}

#[test]
fn the_guarantee_is_filled_first_and_emptied_last() {
    let (mmu, profile) = switch(10);
    let spec = queue(3, Some(fixed(5)));
    let mut account = QueueAccount::default();
    for _ in 0..3 {
        account.join(&mmu, &profile, &spec, cells(2), false).unwrap();
    }
    // 2 in the guarantee, where the next frame doesn't fit whole, and 4 in the pool.
    assert_eq!((account.occupancy(), account.shared()), (cells(6), cells(4)));
    let refused = account.join(&mmu, &profile, &spec, cells(2), false);
    assert_eq!(refused, Err(DropReason::QueueLimit));
    account.join(&mmu, &profile, &spec, cells(1), false).unwrap();
    assert_eq!((account.occupancy(), account.shared()), (cells(7), cells(4)));
    account.leave(&mmu, cells(5));
    assert_eq!((account.occupancy(), account.shared()), (cells(2), cells(0)));
    account.leave(&mmu, cells(2));
    assert!(mmu.idle());
}

#[test]
fn a_lossy_frame_stops_at_limit_and_pool() {
    let (mmu, profile) = switch(4);
    let mut account = QueueAccount::default();
    let mut other = QueueAccount::default();
    let limited = queue(0, Some(fixed(3)));
    let open = queue(0, None);
    let join = |account: &mut QueueAccount, spec| {
        account.join(&mmu, &profile, spec, cells(1), false).is_ok()
    };
    assert_eq!((0..9).filter(|_| join(&mut account, &limited)).count(), 3);
    assert_eq!((0..9).filter(|_| join(&mut other, &open)).count(), 1, "the pool has one left");
    account.leave(&mmu, cells(2));
    assert_eq!((0..9).filter(|_| join(&mut other, &open)).count(), 2);
    account.leave(&mmu, cells(1));
    other.leave(&mmu, cells(3));
    assert!(mmu.idle());
}

#[test]
fn a_dynamic_queue_limit_follows_the_free_cells() {
    let (mmu, profile) = switch(12);
    let spec = queue(0, Some(alpha(1)));
    let mut account = QueueAccount::default();
    let join =
        |account: &mut QueueAccount| account.join(&mmu, &profile, &spec, cells(1), false).is_ok();
    // S <= 2 * (12 - S) before the charge: 8 is the last that is taken.
    assert_eq!((0..20).filter(|_| join(&mut account)).count(), 8);
}

#[test]
fn a_lossless_frame_is_never_refused_and_lent_may_exceed_the_size() {
    let (mmu, profile) = switch(2);
    let spec = queue(1, Some(fixed(1)));
    let mut account = QueueAccount::default();
    for _ in 0..6 {
        account.join(&mmu, &profile, &spec, cells(1), true).unwrap();
    }
    let pool = mmu.egress_pool(&profile);
    assert_eq!((pool.lent, pool.free), (cells(5), cells(0)));
    assert!(account.join(&mmu, &profile, &spec, cells(1), false).is_err());
    account.leave(&mmu, cells(4));
    assert_eq!((account.occupancy(), account.shared()), (cells(2), cells(1)));
    assert_eq!(account.watermark(View::User), cells(6));
    account.clear_user_watermark();
    assert_eq!(account.watermark(View::User), cells(2));
    assert_eq!(account.watermark(View::Persistent), cells(6));
    assert_eq!(mmu.egress_watermark(View::User), cells(5));
    account.leave(&mmu, cells(2));
    assert!(mmu.idle());
}
