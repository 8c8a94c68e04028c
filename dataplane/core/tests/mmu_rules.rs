//! SPEC 3.2 to 3.4 rule by rule, to the cell.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)] // A failed set-up fails the test.

mod mmu_fixture;

use holdfast_core::drop::DropReason;
use holdfast_core::frame::Charge;
use holdfast_core::ids::PrioritySet;
use holdfast_core::mmu::{EdgeKind, Segments};
use holdfast_core::profile::{PgSpec, Profile, Xoff, Xon};
use holdfast_core::units::Cells;
use mmu_fixture::*;

#[test]
fn steps_go_guaranteed_service_headroom_then_refuse() {
    let mut rig = Rig::new(single(lossless(2, 3, fixed(100), 4, 2), 100));
    let mut seen = Vec::new();
    while rig.admit(1) {
        seen.push(rig.state());
        assert!(seen.len() < 200);
    }
    assert_eq!(seen[1], (2, 0, 0, false));
    assert_eq!(seen[4], (2, 3, 0, false));
    assert_eq!(seen[5], (2, 4, 0, true), "XOFF is reached with the charge that makes Service XOFF");
    assert_eq!(seen[6], (2, 4, 1, true));
    // Step 4: when Headroom is full, Service again up to the limit.
    assert_eq!(seen[9], (2, 5, 3, true));
    assert_eq!(seen.len(), 2 + 100 + 3, "exactly G + limit + H one-cell frames");
    let note = &mut |_| {};
    let refused = rig.mmu.admit(&rig.profile, port(0), pg(3), frame(1), note);
    assert_eq!(refused.unwrap_err(), DropReason::HeadroomOverflow);
}

#[test]
fn guaranteed_is_used_in_xoff_too() {
    let mut rig = Rig::new(single(lossless(2, 3, fixed(9), 2, 1), 9));
    rig.admit(2);
    rig.admit(2);
    assert_eq!(rig.state(), (2, 2, 0, true));
    // Service goes first, so that only a release beyond it empties Guaranteed.
    rig.release();
    rig.release();
    let mut rig = Rig::new(single(lossless(2, 9, fixed(9), 2, 1), 9));
    rig.admit(1);
    rig.admit(2);
    assert_eq!(rig.state(), (1, 2, 0, true), "a frame that doesn't fit whole goes on to step 2");
    rig.admit(1);
    assert_eq!(rig.state(), (2, 2, 0, true), "step 1 in XOFF");
    rig.admit(1);
    assert_eq!(rig.state(), (2, 2, 1, true));
}

#[test]
fn a_lossy_pg_stops_at_its_limit() {
    let account = PgSpec { guaranteed: cells(1), limit: fixed(3), ..lossy() };
    let mut rig = Rig::new(single(account, 100));
    assert!(rig.admit(1) && rig.admit(2) && !rig.admit(2) && rig.admit(1) && !rig.admit(1));
    assert_eq!(rig.state(), (1, 3, 0, false));
    let refused = rig.mmu.admit(&rig.profile, port(0), pg(3), frame(1), &mut |_| {});
    assert_eq!(refused.unwrap_err(), DropReason::LossyIngress);
    assert!(rig.edges.is_empty(), "a lossy PG has no edges");
}

#[test]
fn the_pool_bounds_where_the_limit_does_not() {
    let mut rig = Rig::new(single(lossless(0, 2, fixed(50), 40, 10), 3));
    assert!(rig.admit(3));
    assert_eq!(rig.state(), (0, 3, 0, false));
    assert!(rig.admit(1), "a refusal of step 2 goes on to Headroom");
    assert_eq!(rig.state(), (0, 3, 1, true));
    assert!(!rig.admit(2));
    assert!(rig.admit(1) && !rig.admit(1));
}

#[test]
fn a_dynamic_limit_follows_the_free_cells() {
    // alpha 1: the fixpoint of S <= 10 - S is 5.
    let account = PgSpec { limit: alpha(0), ..lossy() };
    let mut rig = Rig::new(single(account, 10));
    let taken = (0..20).filter(|_| rig.admit(1)).count();
    assert_eq!(taken, 5);
    assert_eq!(rig.mmu.pg(&rig.profile, port(0), pg(3)).limit, cells(5));
}

#[test]
fn a_refusal_pauses_below_xoff() {
    let ports = vec![port_spec(3 * CELL - 26, &[(3, lossless(0, 0, fixed(5), 4, 1))])];
    let mut rig = Rig::new(Profile::new(1, spec(&[5], ports)).unwrap());
    rig.admit(3);
    assert!(!rig.admit(3), "no Headroom to take it");
    assert_eq!(rig.state(), (0, 3, 0, true), "but the peer is paused: Service <= R, yet no room");
    rig.release();
    assert_eq!(rig.state(), (0, 0, 0, false));
}

#[test]
fn a_pause_that_the_second_look_ends_makes_two_edges() {
    // A frame above the largest: refused, but one largest frame still fits.
    let mut rig = Rig::new(single(lossless(0, 0, fixed(5), 4, 1), 5));
    rig.admit(3);
    assert!(!rig.admit(3));
    let kinds: Vec<EdgeKind> = rig.edges.iter().map(|edge| edge.kind).collect();
    assert_eq!(kinds, [EdgeKind::Xoff, EdgeKind::Xon]);
    assert!(rig.mmu.take_work(port(0)) && !rig.state().3);
}

/// XOFF comes at floor(G/n)*n + ceil(XOFF/n)*n, resume at the first Service <= R.
#[test]
fn xoff_to_the_cell_for_frames_of_n_cells() {
    for absolute in [false, true] {
        for (g, xoff, window) in [(0, 1, 1), (4, 10, 3), (7, 20, 19), (36, 100, 25), (5, 12, 4)] {
            for n in 1..=9 {
                let mut account = lossless(g, 200, fixed(400), xoff, window);
                if absolute && xoff > window {
                    account.xon = Xon::Absolute(Cells(xoff - window));
                } else if xoff == window {
                    continue;
                }
                xoff_and_resume(account, g, xoff, window, n);
            }
        }
    }
}

fn xoff_and_resume(account: PgSpec, g: u32, xoff: u32, window: u32, n: u32) {
    let mut rig = Rig::new(single(account, 1000));
    let mut kept = 0;
    while rig.edges.is_empty() {
        assert!(rig.admit(n));
        kept += n;
    }
    assert_eq!(kept, g / n * n + xoff.div_ceil(n) * n, "G {g} XOFF {xoff} n {n}");
    assert_eq!(rig.edges[0].kind, EdgeKind::Xoff);
    assert_eq!(rig.edges[0].resume, Cells(xoff - window));
    for _ in 0..3 {
        assert!(rig.admit(n), "Headroom");
    }
    while rig.edges.len() < 2 {
        rig.release();
    }
    let (_, service, headroom, _) = rig.state();
    let resume = xoff - window;
    assert_eq!(headroom, 0);
    assert!(service <= resume && service + n > resume, "R {resume} n {n} at {service}");
    if n == 1 {
        assert_eq!(rig.edges[1].service, Cells(resume));
    }
    while !rig.charges.is_empty() {
        rig.release();
    }
    assert!(rig.mmu.idle());
    assert_eq!(rig.edges.len(), 2);
}

#[test]
fn exit_waits_for_headroom_and_for_room_of_a_largest_frame() {
    // Limit 5 and XOFF 5: at Service 4 the rule S <= R holds, but a frame of 4 cells doesn't fit.
    let ports = vec![port_spec(4 * CELL - 26, &[(3, lossless(0, 9, fixed(5), 5, 1))])];
    let mut rig = Rig::new(Profile::new(1, spec(&[99], ports)).unwrap());
    for n in [1, 1, 3] {
        rig.admit(n);
    }
    assert_eq!(rig.state(), (0, 5, 0, true));
    rig.release();
    assert_eq!(rig.state(), (0, 4, 0, true), "R is reached, a largest frame isn't taken");
    rig.release();
    assert_eq!(rig.state(), (0, 3, 0, true));
    rig.release();
    assert_eq!(rig.state(), (0, 0, 0, false));
}

#[test]
fn xoff_at_the_limit_pauses_where_the_limit_is() {
    let account = PgSpec {
        xoff: Xoff::AtLimit,
        xon: Xon::Offset(Cells(2)),
        ..lossless(0, 4, alpha(0), 1, 0)
    };
    let mut rig = Rig::new(single(account, 10));
    while rig.edges.is_empty() {
        assert!(rig.admit(1));
    }
    // limit now after the charge: 10 - 5 = 5.
    assert_eq!(rig.edges[0].service, cells(5));
    assert_eq!((rig.edges[0].limit, rig.edges[0].xoff), (cells(5), cells(5)));
    rig.release();
    assert_eq!(rig.state(), (0, 4, 0, false), "limit now is 6 after the return, R is 6 - 2");
    assert_eq!((rig.edges[1].limit, rig.edges[1].resume), (cells(6), cells(4)));
}

#[test]
fn an_empty_pg_with_private_headroom_always_leaves() {
    // Another PG holds the whole pool; the largest frame is bigger than this PG's Headroom.
    let other = PgSpec { limit: fixed(4), ..lossy() };
    let big = port_spec(3 * CELL - 26, &[(3, lossless(0, 1, fixed(4), 2, 1)), (0, other)]);
    let mut rig = Rig::new(Profile::new(1, spec(&[4], vec![big])).unwrap());
    assert!(rig.admit_to(0, 0, 4));
    assert!(rig.admit(1));
    assert_eq!(rig.state(), (0, 0, 1, true));
    rig.release();
    assert_eq!(rig.state(), (0, 0, 0, false));
}

#[test]
fn an_empty_pg_on_the_shared_headroom_pool_waits_for_room() {
    let account = PgSpec { headroom_pool: true, ..lossless(0, 2, fixed(2), 2, 1) };
    let ports =
        vec![port_spec(ONE_CELL_MTU, &[(3, account)]), port_spec(ONE_CELL_MTU, &[(3, account)])];
    let mut shared = spec(&[2], ports);
    shared.headroom_pool = cells(2);
    let mut rig = Rig::new(Profile::new(1, shared).unwrap());
    for _ in 0..4 {
        assert!(rig.admit_to(1, 3, 1), "2 of Service, 2 of the headroom pool");
    }
    assert_eq!(rig.mmu.headroom_pool(&rig.profile).lent, cells(2));
    assert!(!rig.admit(1), "nothing is left for the other port");
    assert_eq!(rig.state(), (0, 0, 0, true), "and it waits, though it is empty");
    rig.reevaluate(0, 3);
    assert!(rig.state().3);
    rig.release_of(1, 3);
    rig.reevaluate(0, 3);
    assert_eq!(rig.state(), (0, 0, 0, false), "step 3 would take a frame now");
}

#[test]
fn an_empty_pg_that_nothing_ever_fits_does_not_wait_for_ever() {
    let account = lossless(0, 0, fixed(1), 1, 0);
    let account = PgSpec { xoff: Xoff::AtLimit, ..account };
    let ports = vec![port_spec(3 * CELL - 26, &[(3, account)])];
    let mut rig = Rig::new(Profile::new(1, spec(&[9], ports)).unwrap());
    assert!(!rig.admit(3));
    assert_eq!(rig.state(), (0, 0, 0, false));
    assert_eq!(rig.edges.len(), 2, "paused by the refusal, let go by the second look");
    assert!(rig.admit(1));
}

#[test]
fn the_limit_that_others_free_lets_a_pg_go_at_its_owners_step() {
    let ports = vec![
        port_spec(ONE_CELL_MTU, &[(3, lossless(0, 4, alpha(0), 6, 2))]),
        port_spec(ONE_CELL_MTU, &[(0, PgSpec { limit: fixed(10), ..lossy() })]),
    ];
    let mut rig = Rig::new(Profile::new(1, spec(&[12], ports)).unwrap());
    rig.admit_to(1, 0, 8);
    rig.admit(1);
    rig.admit(1);
    assert_eq!(rig.state(), (0, 2, 0, true), "limit now is 2");
    rig.reevaluate(0, 3);
    assert!(rig.state().3);
    rig.release_of(1, 0);
    assert!(rig.state().3, "a release of another PG doesn't touch this one");
    assert_eq!(rig.mmu.xoff_set(port(0)), 1 << 3);
    rig.reevaluate(0, 3);
    assert_eq!(rig.state(), (0, 2, 0, false));
    assert_eq!(rig.mmu.xoff_set(port(0)), 0);
}

#[test]
fn edges_set_the_work_bit_and_the_level_follows_the_priorities() {
    let both = PgSpec { priorities: PrioritySet(0b1_1000), ..lossless(0, 4, fixed(4), 2, 1) };
    let mut rig = Rig::new(single(both, 9));
    assert!(!rig.mmu.take_work(port(0)));
    rig.admit(2);
    assert!(rig.mmu.take_work(port(0)));
    assert!(!rig.mmu.take_work(port(0)), "taken once");
    let level = rig.mmu.pfc_level(&rig.profile, port(0));
    assert_eq!(level, PrioritySet(0b1000), "priority 4 isn't PFC-enabled");
    rig.release();
    assert!(rig.mmu.take_work(port(0)));
    assert!(rig.mmu.pfc_level(&rig.profile, port(0)).is_empty());
}

#[test]
fn an_unknown_port_is_refused_and_its_frames_still_drain() {
    let account = lossless(1, 2, fixed(2), 2, 1);
    let two = vec![port_spec(ONE_CELL_MTU, &[]), port_spec(ONE_CELL_MTU, &[(3, account)])];
    let mut rig = Rig::new(Profile::new(1, spec(&[4], two)).unwrap());
    for _ in 0..4 {
        assert!(rig.admit_to(1, 3, 1));
    }
    let ports = vec![port_spec(ONE_CELL_MTU, &[])];
    rig.adopt(Profile::new(2, spec(&[4], ports)).unwrap());
    let note = &mut |_| {};
    let refused = rig.mmu.admit(&rig.profile, port(1), pg(3), frame(1), note);
    assert_eq!(refused.unwrap_err(), DropReason::LossyIngress);
    rig.mmu.adopt(&rig.profile, port(1), pg(3), note);
    assert!(!rig.mmu.in_xoff(port(1), pg(3)));
    while !rig.charges.is_empty() {
        rig.release_of(1, 3);
    }
    assert!(rig.mmu.idle());
}

#[test]
fn watermarks_keep_the_peak_of_each_segment_and_pool() {
    use holdfast_core::mmu::View::{Persistent, User};
    let mut rig = Rig::new(single(lossless(2, 3, fixed(4), 4, 2), 9));
    while rig.admit(1) {}
    while !rig.charges.is_empty() {
        rig.release();
    }
    let peak = Segments { guaranteed: cells(2), service: cells(4), headroom: cells(3) };
    assert_eq!(rig.mmu.watermarks(port(0), pg(3), User), peak);
    assert_eq!(rig.mmu.pool_watermark(pool(0), User), cells(4));
    rig.admit(1);
    rig.mmu.clear_pg_watermarks(port(0), pg(2));
    rig.mmu.clear_pool_watermark(pool(1));
    assert_eq!(rig.mmu.watermarks(port(0), pg(3), User), peak, "another PG was cleared");
    assert_eq!(rig.mmu.pool_watermark(pool(0), User), cells(4), "another pool was cleared");
    rig.mmu.clear_pg_watermarks(port(0), pg(3));
    rig.mmu.clear_pool_watermark(pool(0));
    let present = Segments { guaranteed: cells(1), ..Segments::default() };
    assert_eq!(rig.mmu.watermarks(port(0), pg(3), User), present);
    assert_eq!(rig.mmu.watermarks(port(0), pg(3), Persistent), peak);
    assert_eq!(rig.mmu.pool_watermark(pool(0), User), cells(0));
    assert_eq!(rig.mmu.pool_watermark(pool(0), Persistent), cells(4));
}

/// Fault 3: 8 ports x 8 PGs on a tiny pool; every lossless PG pauses before any drop.
#[test]
fn tiny_pools_pause_before_they_drop() {
    for log2 in -8..=7 {
        let account = lossless(4, 8, alpha(log2), 30, 10);
        let pgs: Vec<(u8, PgSpec)> = (0..8).map(|n| (n, account)).collect();
        let ports = (0..8).map(|_| port_spec(ONE_CELL_MTU, &pgs)).collect();
        let profile = Profile::new(1, spec(&[256], ports)).unwrap();
        let mut rig = Rig::new(profile);
        let mut dropped = [[false; 8]; 8];
        for _ in 0..60 {
            for on in 0..8u8 {
                for of in 0..8u8 {
                    let mut edges = 0;
                    let (to, id) = (port(on), pg(of));
                    let was = rig.mmu.in_xoff(to, id);
                    match rig.mmu.admit(&rig.profile, to, id, frame(1), &mut |_| edges += 1) {
                        Ok(charge) => rig.charges.push(charge),
                        Err(_) => {
                            assert!(was, "dropped before the peer was paused");
                            dropped[usize::from(on)][usize::from(of)] = true;
                        }
                    }
                }
            }
        }
        rig.check();
        assert!(dropped.iter().flatten().all(|d| *d), "the test has filled everything");
        drain(&mut rig);
    }
}

fn drain(rig: &mut Rig) {
    for charge in core::mem::take(&mut rig.charges) {
        let charge: Charge = charge;
        rig.mmu.release(&rig.profile, charge, &mut |_| {});
    }
    assert!(rig.mmu.idle());
}
