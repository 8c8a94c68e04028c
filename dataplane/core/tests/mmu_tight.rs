//! Fault 3: a buffer of 256 cells for 8 ports with 8 PGs each. Guaranteed and Headroom alone are
//! more than there is unless they are counted; thresholds must neither wrap nor promise what isn't
//! there, and every lossless PG must pause before the first frame is dropped (SPEC 3.1 to 3.3).
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)] // A failed set-up fails the test.

mod mmu_fixture;

use holdfast_core::ids::PgId;
use holdfast_core::mmu::{limit, EdgeKind, Levels};
use holdfast_core::profile::{Limit, PgSpec, PortSpec, Profile, ProfileError, Xoff};
use holdfast_core::units::{Alpha, Cells};
use mmu_fixture::*;
use proptest::prelude::*;

const PORTS: u8 = 8;
const PGS: u8 = 8;
const TOTAL: u32 = 256;
const GUARANTEED: u32 = 4;
const HEADROOM: u32 = 8;
/// Cells of the largest frame.
const LARGEST: u32 = 3;
/// PGs with a guarantee and Headroom of their own for which 256 cells are enough, with a pool.
const PRIVATE: u32 = 20;

/// `own` PGs have Guaranteed and private Headroom, in the order of ports; the others share.
fn switch(log2: i8, own: u32) -> Result<Profile, ProfileError> {
    let account = |number: u32| {
        let mine = number < own;
        PgSpec {
            xoff: Xoff::AtLimit,
            headroom_pool: !mine,
            ..lossless(if mine { GUARANTEED } else { 0 }, HEADROOM, alpha(log2), 2, 1)
        }
    };
    let ports = (0..u32::from(PORTS)).map(|on| -> PortSpec {
        let pgs: Vec<(u8, PgSpec)> =
            (0..PGS).map(|of| (of, account(on * u32::from(PGS) + u32::from(of)))).collect();
        port_spec(LARGEST as u16 * CELL - 26, &pgs)
    });
    let private = own * (GUARANTEED + HEADROOM);
    let pool = TOTAL.saturating_sub(private + HEADROOM);
    let mut plain = spec(&[pool], ports.collect());
    (plain.total, plain.headroom_pool) = (cells(TOTAL), cells(HEADROOM));
    Profile::new(1, plain)
}

/// All 64 of them ask for 768 cells: refused by name, not wrapped into something that fits.
#[test]
fn guarantees_and_headroom_beyond_the_buffer_are_refused_with_the_numbers() {
    let all = u32::from(PORTS) * u32::from(PGS);
    let Err(ProfileError::IngressBudget { needed, guaranteed, headroom, pools, total }) =
        switch(0, all)
    else {
        panic!("768 cells in 256");
    };
    assert_eq!((guaranteed, headroom), (256, 512 + 8));
    assert_eq!((needed, total), (guaranteed + headroom + pools, TOTAL));
}

/// 0 <= threshold <= alpha x free, never more with fewer free cells, never wrapped.
#[test]
fn thresholds_follow_the_free_cells_and_never_wrap() {
    for log2 in -7..=3 {
        let alpha = Limit::Dynamic(Alpha::new(log2).unwrap());
        let account = PgSpec { xoff: Xoff::AtLimit, ..lossless(0, HEADROOM, alpha, 2, 1) };
        let mut before = Cells::ZERO;
        for free in 0..=TOTAL {
            let levels = Levels::at(&account, Cells(free));
            let exact = f64::from(free) * f64::from(log2).exp2();
            assert!(f64::from(levels.limit.0) <= exact, "{levels:?} of {free}, alpha 2^{log2}");
            assert!(f64::from(levels.limit.0) > exact - 1.0, "rounded down by a cell at most");
            assert_eq!(levels.limit, limit(alpha, Cells(free)));
            assert!(before <= levels.limit && levels.resume <= levels.xoff);
            assert!(levels.xoff <= levels.limit);
            before = levels.limit;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Frames to any PG in any order, until each one was refused: each has paused its peer before,
    /// and after XOFF its Headroom takes what was promised. Then all drains.
    #[test]
    fn every_pg_pauses_before_its_first_drop(
        log2 in -7i8..=3,
        ops in prop::collection::vec(
            (0..PORTS, 0..PGS, 1..=LARGEST, prop::bool::weighted(0.2)), 1..600),
    ) {
        let mut rig = Rig::new(switch(log2, PRIVATE).unwrap());
        for (on, of, n, release) in ops {
            if release && rig.charges.iter().any(|c| c.port() == port(on) && c.pg() == pg(of)) {
                rig.release_of(on, of);
            } else {
                let (_, _, headroom, before) = rig.state_of(on, of);
                let taken = rig.admit_to(on, of, n);
                prop_assert!(taken || rig.state_of(on, of).3, "dropped and not paused");
                let mine = u32::from(on) * u32::from(PGS) + u32::from(of) < PRIVATE;
                prop_assert!(
                    taken || !mine || before && headroom + n > HEADROOM,
                    "port {} pg {}: refused {} cells, {} in Headroom, paused before: {}",
                    on, of, n, headroom, before
                );
            }
            let (mmu, profile) = (&rig.mmu, &rig.profile);
            let pool = mmu.pool(profile, pool(0));
            prop_assert!(pool.lent <= pool.size && pool.free == Cells(pool.size.0 - pool.lent.0));
            for of in PgId::all() {
                let now = mmu.pg(profile, port(on), of);
                let most = f64::from(pool.free.0) * f64::from(log2).exp2();
                prop_assert!(f64::from(now.limit.0) <= most, "{:?} of {:?}", now, pool);
            }
        }
        // Each edge to XOFF comes before its XON, and they take turns.
        for (on, of) in (0..PORTS).flat_map(|on| (0..PGS).map(move |of| (on, of))) {
            let edges = rig.edges.iter().filter(|e| e.port == port(on) && e.pg == pg(of));
            let kinds: Vec<EdgeKind> = edges.map(|edge| edge.kind).collect();
            let turns = kinds.chunks(2).all(|two| {
                two[0] == EdgeKind::Xoff && two.get(1).is_none_or(|second| *second == EdgeKind::Xon)
            });
            prop_assert!(turns, "{:?}", kinds);
        }
        for charge in core::mem::take(&mut rig.charges) {
            rig.mmu.release(&rig.profile, charge, &mut |_| {});
        }
        prop_assert!(rig.mmu.idle());
    }
}
