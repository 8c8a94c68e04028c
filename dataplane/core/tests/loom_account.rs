//! The account and its pools, explored: two workers, interleaved at every single atomic operation
//! and with every value that the memory model lets a load return (SPEC 3.2 to 3.4, 3.7).
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p holdfast-core --release --test loom_account`
//!
//! Small switches are enumerated, not picked: sizes, limits, watermarks, what is charged already,
//! and a few operations for each worker. There is no preemption bound. After each change of an
//! account or a pool the invariants are checked on the latest values, and each admission under way
//! notes whether its frame fits at this instant: a refusal is right only if it once did not.
//! Each fault that the protocol guards against is also put back, to see it found.
#![cfg(loom)]

mod loom_scenario;
mod mmu_fixture;

use holdfast_core::mmu::explorer::{self, Fault};
use holdfast_core::profile::{Limit, PgSpec, Xoff, Xon};
use loom_scenario::{explore, Op, Scenario};
use mmu_fixture::*;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// The switches: G, H, pool, limit, XOFF.
fn accounts(private: bool) -> Vec<(PgSpec, u32)> {
    let mut all = Vec::new();
    for (g, h, pool_size) in
        (0..=1).flat_map(|g| (0..=2).flat_map(move |h| (1..=3).map(move |p| (g, h, p))))
    {
        let mut limits: Vec<Limit> = vec![fixed(pool_size), alpha(0), alpha(1)];
        if pool_size == 3 {
            limits.push(fixed(2));
        }
        for limit in limits {
            let base = PgSpec { headroom_pool: !private, ..lossless(g, h, limit, 2, 1) };
            all.push((base, pool_size));
            all.push((PgSpec { xoff: Xoff::AtLimit, ..base }, pool_size));
            all.push((
                PgSpec { xoff: Xoff::AtLimit, xon: Xon::Offset(cells(0)), ..base },
                pool_size,
            ));
        }
    }
    all
}

/// All of `accounts` with every fill of one-cell frames, and one that begins with two cells.
fn fills(private: bool) -> Vec<Scenario> {
    let mut all = Vec::new();
    for (account, pool_size) in accounts(private) {
        let most = account.guaranteed.0 + account.headroom.0 + pool_size;
        for fill in 0..=most {
            all.push(Scenario::new(account, pool_size, vec![1; fill as usize]));
        }
        if most >= 3 {
            all.push(Scenario::new(account, pool_size, vec![2, 1]));
        }
    }
    all
}

fn run(name: &str, scenarios: Vec<Scenario>, programs: &[(&[Op], &[Op])]) {
    let (mut models, mut executions) = (0u64, 0u64);
    for scenario in &scenarios {
        for (first, second) in programs {
            let releases =
                [*first, *second].concat().iter().filter(|op| **op == Op::Release).count();
            if releases <= scenario.fill.len() {
                executions += explore(scenario, first, second);
                models += 1;
                if std::env::var_os("DBG").is_some() {
                    println!("{models} {executions} {scenario:?} {first:?} {second:?}");
                }
            }
        }
    }
    println!("{name}: {models} models, {executions} executions");
    assert!(models > 0 && executions > models, "the explorer has seen interleavings");
}

/// Whether some scenario fails once `fault` is put into the code.
fn finds(fault: Fault, scenarios: Vec<Scenario>, programs: &[(&[Op], &[Op])]) {
    explorer::seed(Some(fault));
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let found = catch_unwind(AssertUnwindSafe(|| run("seeded", scenarios, programs)));
    std::panic::set_hook(quiet);
    explorer::seed(None);
    let message = found.expect_err("the explorer must find the fault");
    let text = message.downcast_ref::<String>().cloned().unwrap_or_default();
    println!("{fault:?}: {text}");
    assert!(!text.contains("the explorer has seen"), "{text}");
}

use Op::{Admit, AdmitOther, Reevaluate, Release};

#[test]
fn one_charges_and_one_releases() {
    let programs: &[(&[Op], &[Op])] =
        &[(&[Admit(1)], &[Release]), (&[Admit(2)], &[Release]), (&[Reevaluate], &[Release])];
    run("charge against release", fills(true), programs);
}

#[test]
fn two_release() {
    run("release against release", fills(true), &[(&[Release], &[Release])]);
}

#[test]
fn longer_programs() {
    let programs: &[(&[Op], &[Op])] =
        &[(&[Admit(1), Admit(1)], &[Release]), (&[Admit(1)], &[Release, Release])];
    run("two operations against one", fills(true), programs);
}

#[test]
fn two_charge_the_same_pg() {
    let programs: &[(&[Op], &[Op])] = &[(&[Admit(1)], &[Admit(1)]), (&[Admit(2)], &[Admit(1)])];
    run("charge against charge", fills(true), programs);
}

#[test]
fn two_pgs_share_a_pool() {
    let programs: &[(&[Op], &[Op])] =
        &[(&[Admit(1)], &[Release, AdmitOther(1)]), (&[Admit(1)], &[AdmitOther(1), Release])];
    run("two PGs on a pool", fills(true), programs);
}

#[test]
fn the_shared_headroom_pool() {
    let programs: &[(&[Op], &[Op])] = &[(&[Admit(1)], &[Release]), (&[Admit(1)], &[AdmitOther(1)])];
    run("shared headroom pool", fills(false), programs);
}

#[test]
fn finds_refusal_and_headroom_in_two_steps() {
    finds(Fault::TwoSteps, fills(true), &[(&[Admit(1)], &[Release])]);
}

#[test]
fn finds_an_exit_check_before_the_return() {
    finds(Fault::ExitBeforeReturn, fills(true), &[(&[Admit(1)], &[Release])]);
}

#[test]
fn finds_a_missing_second_look() {
    finds(Fault::NoSecondLook, fills(true), &[(&[Admit(1)], &[Release])]);
}

#[test]
fn finds_a_torn_refusal() {
    finds(Fault::TornRefusal, fills(true), &[(&[Admit(1)], &[Release, AdmitOther(1)])]);
}
