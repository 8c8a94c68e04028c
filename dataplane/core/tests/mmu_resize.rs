//! Sizes, watermarks and pools that change while cells are in use (SPEC 3.3, 3.6).
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)] // A failed set-up fails the test.

mod mmu_fixture;

use holdfast_core::mmu::{EdgeKind, PoolSnapshot};
use holdfast_core::profile::{PgSpec, Profile};
use mmu_fixture::*;

fn change(generation: u64, account: PgSpec, pools: &[u32]) -> Profile {
    let ports = vec![port_spec(ONE_CELL_MTU, &[(3, account)])];
    Profile::new(generation, spec(pools, ports)).unwrap()
}

#[test]
fn lowering_xoff_below_the_occupancy_pauses_now() {
    let mut rig = Rig::new(single(lossless(0, 9, fixed(90), 50, 10), 100));
    for _ in 0..20 {
        rig.admit(1);
    }
    rig.adopt(change(2, lossless(0, 9, fixed(90), 20, 5), &[100]));
    assert_eq!(rig.state(), (0, 20, 0, true));
    rig.adopt(change(3, lossless(0, 9, fixed(90), 24, 5), &[100]));
    assert!(rig.state().3, "20 is above R = 19");
    rig.adopt(change(4, lossless(0, 9, fixed(90), 25, 5), &[100]));
    assert!(!rig.state().3, "raising it resumes as soon as the exit rule holds");
}

#[test]
fn a_pg_made_lossy_leaves_at_once_and_its_headroom_drains() {
    let mut rig = Rig::new(single(lossless(0, 9, fixed(9), 2, 1), 9));
    for _ in 0..5 {
        rig.admit(1);
    }
    assert_eq!(rig.state(), (0, 2, 3, true));
    rig.adopt(change(2, PgSpec { limit: fixed(9), ..lossy() }, &[9]));
    assert_eq!(rig.state(), (0, 2, 3, false));
    rig.release();
    assert_eq!(rig.state(), (0, 2, 2, false), "Headroom first, as before");
    rig.admit(1);
    assert_eq!(rig.state(), (0, 3, 2, false));
    rig.adopt(change(3, lossless(0, 9, fixed(9), 8, 1), &[9]));
    assert!(rig.state().3, "Headroom in use implies XOFF again");
    let last = rig.edges.last().unwrap();
    assert_eq!((last.kind, last.headroom), (EdgeKind::Xoff, cells(2)));
}

#[test]
fn a_smaller_private_size_drains_and_is_withheld_from_the_pool_it_feeds() {
    let mut rig = Rig::new(single(lossless(6, 9, fixed(50), 40, 5), 10));
    for _ in 0..6 {
        rig.admit(1);
    }
    rig.adopt(change(2, lossless(2, 9, fixed(50), 40, 5), &[14]));
    let pool_now = || PoolSnapshot { size: cells(14), ..PoolSnapshot::default() };
    let seen = rig.mmu.pool(&rig.profile, pool(0));
    assert_eq!(seen, PoolSnapshot { withheld: cells(4), free: cells(10), ..pool_now() });
    rig.admit(1);
    assert_eq!(rig.state(), (6, 1, 0, false), "no new charge above the new size");
    rig.release();
    rig.release();
    rig.mmu.recompute_withheld_if_any(&rig.profile);
    let seen = rig.mmu.pool(&rig.profile, pool(0));
    assert_eq!(seen, PoolSnapshot { withheld: cells(3), free: cells(11), ..pool_now() });
    while !rig.charges.is_empty() {
        rig.release();
    }
    rig.mmu.recompute_withheld_if_any(&rig.profile);
    let seen = rig.mmu.pool(&rig.profile, pool(0));
    assert_eq!(seen, PoolSnapshot { free: cells(14), ..pool_now() });
}

#[test]
fn a_pool_smaller_than_what_it_has_lent_lends_nothing_until_it_drains() {
    let mut rig = Rig::new(single(PgSpec { limit: fixed(50), ..lossy() }, 10));
    for _ in 0..8 {
        assert!(rig.admit(1));
    }
    rig.adopt(change(2, PgSpec { limit: fixed(50), ..lossy() }, &[5]));
    assert_eq!(rig.mmu.pool(&rig.profile, pool(0)).free, cells(0));
    for _ in 0..3 {
        assert!(!rig.admit(1));
        rig.release();
    }
    assert!(!rig.admit(1));
    rig.release();
    assert!(rig.admit(1), "4 lent of 5");
}

#[test]
fn a_pg_borrows_and_returns_at_the_old_pool_until_its_service_is_0() {
    let old = PgSpec { guaranteed: cells(1), limit: fixed(9), ..lossy() };
    let new = PgSpec { pool: pool(1), ..old };
    let ports = vec![port_spec(ONE_CELL_MTU, &[(3, old)])];
    let mut rig = Rig::new(Profile::new(1, spec(&[9, 9], ports)).unwrap());
    rig.admit(1);
    rig.admit(1);
    rig.adopt(change(2, new, &[9, 9]));
    rig.admit(1);
    let lent = |rig: &Rig, n| rig.mmu.pool(&rig.profile, pool(n)).lent.0;
    assert_eq!((lent(&rig, 0), lent(&rig, 1)), (2, 0), "it borrows at the old one");
    rig.release();
    rig.release();
    assert_eq!(rig.state(), (1, 0, 0, false));
    rig.admit(1);
    assert_eq!((lent(&rig, 0), lent(&rig, 1)), (0, 1), "Guaranteed in use doesn't hold it up");
    rig.release();
    rig.release();
    assert!(rig.mmu.idle());
}

#[test]
fn a_pg_with_cells_stays_at_its_pool_until_all_workers_know() {
    let old = PgSpec { guaranteed: cells(1), limit: fixed(9), ..lossy() };
    let ports = vec![port_spec(ONE_CELL_MTU, &[(3, old)])];
    let mut rig = Rig::new(Profile::new(1, spec(&[9, 9], ports)).unwrap());
    rig.admit(1);
    // As Rig::adopt, but another worker hasn't adopted yet: nobody has called settle.
    rig.profile = change(2, PgSpec { pool: pool(1), ..old }, &[9, 9]);
    rig.mmu.adopt(&rig.profile, port(0), pg(3), &mut |_| {});
    rig.admit(1);
    assert_eq!(rig.mmu.lender(port(0), pg(3)), pool(0));
    rig.release();
    rig.release();
    rig.admit(1);
    assert_eq!(rig.mmu.lender(port(0), pg(3)), pool(1), "an empty account may move at any time");
    rig.profile = change(3, old, &[9, 9]);
    rig.mmu.adopt(&rig.profile, port(0), pg(3), &mut |_| {});
    rig.mmu.settle(3);
    rig.admit(1);
    assert_eq!(rig.mmu.lender(port(0), pg(3)), pool(0));
}

#[test]
fn a_paused_pg_without_service_moves_at_its_owners_step() {
    // The old pool is full with another PG's cells; the new one is free.
    let hog = PgSpec { limit: fixed(4), ..lossy() };
    let old = PgSpec { headroom_pool: true, ..lossless(1, 1, fixed(4), 3, 1) };
    let with = |account: PgSpec| vec![port_spec(ONE_CELL_MTU, &[(3, account), (0, hog)])];
    let mut rig = Rig::new(Profile::new(1, spec(&[4, 4], with(old))).unwrap());
    rig.admit_to(0, 0, 4);
    rig.admit(1);
    rig.admit(1);
    assert_eq!(rig.state(), (1, 0, 0, true));
    let moved = with(PgSpec { pool: pool(1), ..old });
    rig.adopt(Profile::new(2, spec(&[4, 4], moved)).unwrap());
    rig.reevaluate(0, 3);
    assert_eq!(rig.state(), (1, 0, 0, false));
    assert_eq!(rig.mmu.lender(port(0), pg(3)), pool(1));
}

#[test]
fn headroom_returns_to_where_it_came_from() {
    let private = lossless(0, 3, fixed(2), 2, 1);
    let shared = PgSpec { headroom_pool: true, ..private };
    let profile = |generation, account| {
        let mut plain = spec(&[2], vec![port_spec(ONE_CELL_MTU, &[(3, account)])]);
        plain.headroom_pool = cells(3);
        Profile::new(generation, plain).unwrap()
    };
    let mut rig = Rig::new(profile(1, private));
    for _ in 0..4 {
        assert!(rig.admit(1));
    }
    rig.adopt(profile(2, shared));
    let lent = |rig: &Rig| rig.mmu.headroom_pool(&rig.profile).lent.0;
    assert!(rig.admit(1));
    assert_eq!((rig.state().2, lent(&rig)), (3, 0), "private while private Headroom is in use");
    for _ in 0..3 {
        rig.release();
    }
    for _ in 0..2 {
        assert!(rig.admit(1));
    }
    assert_eq!((rig.state().2, lent(&rig)), (2, 2));
    rig.adopt(profile(3, private));
    while !rig.charges.is_empty() {
        rig.release();
    }
    assert!(rig.mmu.idle());
}
