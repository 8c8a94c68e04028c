//! The account and its pools, explored: two workers, interleaved at every single atomic operation
//! and with every value that the memory model lets a load return (SPEC 3.2 to 3.4, 3.7).
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p holdfast-core --release --test loom_account`
//!
//! Small switches are enumerated, not picked: sizes, limits, watermarks, what is charged already,
//! and a few operations for each worker. After each change of an account or a pool the invariants
//! are checked on the latest values, and each admission under way notes whether its frame fits at
//! this instant: a refusal is right only if it once did not. Afterwards nothing may be lost, stuck
//! in XOFF or missing from it, and the port's owner must have been told of the last edge.
//!
//! The core of it has no bound. The whole enumeration would take hours so, and lets workers be
//! preempted two or three times. Each fault that the protocol guards against is put back, and two
//! preemptions are enough to find it.
#![cfg(loom)]
#![allow(clippy::unwrap_used, clippy::expect_used)] // A failed set-up fails the test.

mod explored;
mod loom_scenario;
mod mmu_fixture;

use explored::{finds, Tally};
use holdfast_core::explorer::{self, Fault};
use holdfast_core::frame::Charge;
use holdfast_core::mmu::Mmu;
use holdfast_core::profile::{Limit, PgSpec, Profile, Xoff, Xon};
use holdfast_core::units::Cells;
use loom_scenario::{explore, Op, Scenario};
use mmu_fixture::*;
use std::sync::Arc;
use Op::{Admit, AdmitOther, Reevaluate, Release, Signal};

/// What the two workers do.
type Programs<'a> = &'a [(&'a [Op], &'a [Op])];

const BOUND: Option<usize> = Some(3);
const FAULT_BOUND: Option<usize> = Some(2);

/// Explored without a bound: a charge, a release, and the last cells of a pool between them.
const CORE: Programs = &[(&[Admit(1)], &[Release]), (&[Admit(2)], &[Release])];

/// The switches: Guaranteed 0..1, Headroom 0..2, a pool of 1..3, limits and XOFF.
fn accounts(shared: bool) -> Vec<(PgSpec, u32)> {
    let mut all = Vec::new();
    let sizes = (0..=1).flat_map(|g| (0..=2).map(move |h| (g, h)));
    for ((g, h), size) in sizes.flat_map(|gh| (1..=3).map(move |size| (gh, size))) {
        let mut limits: Vec<Limit> = vec![fixed(size), alpha(0), alpha(1)];
        if size == 3 {
            limits.push(fixed(2));
        }
        for limit in limits {
            let at_two = PgSpec { headroom_pool: shared, ..lossless(g, h, limit, 2, 1) };
            let at_limit = PgSpec { xoff: Xoff::AtLimit, ..at_two };
            let no_window = PgSpec { xon: Xon::Offset(cells(0)), ..at_limit };
            all.extend([at_two, at_limit, no_window].map(|account| (account, size)));
        }
    }
    all
}

/// Each of these with every fill of one-cell frames, and one that begins with two cells.
fn fills(accounts: Vec<(PgSpec, u32)>) -> Vec<Scenario> {
    let mut all = Vec::new();
    for (account, size) in accounts {
        let most = account.guaranteed.0 + account.headroom.0 + size;
        for fill in 0..=most {
            all.push(Scenario::new(account, size, vec![1; fill as usize]));
        }
        if most >= 3 {
            all.push(Scenario::new(account, size, vec![2, 1]));
        }
    }
    all
}

/// Says which model failed.
struct Case<'a>(&'a Scenario, &'a [Op], &'a [Op]);

impl Drop for Case<'_> {
    fn drop(&mut self) {
        println!("{:?} against {:?} in {:?}", self.1, self.2, self.0);
    }
}

fn run(name: &str, scenarios: &[Scenario], programs: Programs, bound: Option<usize>) {
    let (mut models, mut executions) = (0u64, 0u64);
    for scenario in scenarios {
        for (first, second) in programs {
            let all = [*first, *second].concat();
            if all.iter().filter(|op| **op == Release).count() <= scenario.fill.len() {
                let case = Case(scenario, first, second);
                executions += explore(scenario, first, second, bound);
                core::mem::forget(case);
                models += 1;
            }
        }
    }
    println!("{name}: {models} models, {executions} executions");
    assert!(models > 0 && executions > models, "the explorer has seen no interleaving");
}

#[test]
fn charge_against_release_without_a_bound() {
    let small = |(account, size): &(PgSpec, u32)| {
        let tight = account.guaranteed == cells(0) && account.headroom <= cells(1) && *size == 2;
        let limit = account.limit == alpha(0) || account.limit == alpha(1);
        tight && limit && account.xoff == Xoff::At(cells(2))
    };
    let core = accounts(false).into_iter().filter(small).collect();
    run("charge against release, unbounded", &fills(core), CORE, None);
}

#[test]
fn charge_against_release() {
    let programs: Programs =
        &[(&[Admit(1)], &[Release]), (&[Admit(2)], &[Release]), (&[Reevaluate], &[Release])];
    run("charge against release", &fills(accounts(false)), programs, BOUND);
}

#[test]
fn release_against_release() {
    let programs: Programs = &[(&[Release], &[Release])];
    run("release against release", &fills(accounts(false)), programs, BOUND);
}

#[test]
fn two_operations_against_one() {
    let programs: Programs =
        &[(&[Admit(1), Admit(1)], &[Release]), (&[Admit(1)], &[Release, Release])];
    run("two operations against one", &fills(accounts(false)), programs, FAULT_BOUND);
}

#[test]
fn charge_against_charge_on_one_pg() {
    let programs: Programs = &[(&[Admit(1)], &[Admit(1)]), (&[Admit(2)], &[Admit(1)])];
    run("charge against charge", &fills(accounts(false)), programs, BOUND);
}

#[test]
fn two_pgs_on_one_pool() {
    let programs: Programs =
        &[(&[Admit(1)], &[Release, AdmitOther(1)]), (&[Admit(1)], &[AdmitOther(1), Release])];
    run("two PGs on one pool", &fills(accounts(false)), programs, FAULT_BOUND);
}

#[test]
fn the_shared_headroom_pool() {
    let programs: Programs = &[(&[Admit(1)], &[Release]), (&[Admit(1)], &[AdmitOther(1)])];
    run("shared headroom pool", &fills(accounts(true)), programs, BOUND);
}

#[test]
fn the_owner_is_told_of_every_edge() {
    let programs: Programs =
        &[(&[Signal], &[Release]), (&[Signal], &[Admit(1)]), (&[Admit(1), Signal], &[Release])];
    run("work bit", &fills(accounts(false)), programs, FAULT_BOUND);
}

#[test]
fn finds_refusal_and_headroom_in_two_steps() {
    finds(Fault::TwoSteps, "Headroom without XOFF", || {
        // It takes a refusal below XOFF_eff, by a frame of two cells, and a release that ends it.
        run("two steps", &fills(accounts(false)), CORE, FAULT_BOUND);
    });
}

#[test]
fn finds_an_exit_check_before_the_return() {
    finds(Fault::ExitBeforeReturn, "stuck in XOFF", || {
        run("exit before return", &fills(accounts(false)), CORE, FAULT_BOUND);
    });
}

#[test]
fn finds_a_missing_second_look() {
    finds(Fault::NoSecondLook, "stuck in XOFF", || {
        run("no second look", &fills(accounts(false)), CORE, FAULT_BOUND);
    });
}

#[test]
fn finds_a_torn_refusal() {
    finds(Fault::TornRefusal, "wrong refusal", || {
        let programs: Programs = &[(&[Admit(1)], &[Release, AdmitOther(1)])];
        run("torn refusal", &fills(accounts(false)), programs, FAULT_BOUND);
    });
}

#[test]
fn finds_a_charge_that_checks_and_then_writes() {
    finds(Fault::CheckThenCharge, "of Service held", || {
        run("check, then charge", &fills(accounts(false)), CORE, FAULT_BOUND);
    });
}

#[test]
fn finds_an_edge_that_a_loser_reports() {
    finds(Fault::DoubleEdge, "edges reported", || {
        let programs: Programs = &[(&[Release], &[Release]), (&[Reevaluate], &[Release])];
        run("double edge", &fills(accounts(false)), programs, FAULT_BOUND);
    });
}

/// A lossy PG with one cell of Guaranteed and one of Service, whose pool changes from 0 to 1.
fn moving(generation: u64) -> Profile {
    let named = pool(u8::from(generation > 1));
    let account = PgSpec { guaranteed: cells(1), limit: fixed(2), pool: named, ..lossy() };
    let ports = vec![port_spec(ONE_CELL_MTU, &[(0, account)])];
    Profile::new(generation, spec(&[2, 2], ports)).unwrap()
}

/// The owner releases and admits while another worker releases; each pool gets back its own. If
/// `both`, all workers run the new profile, else the other one still runs the old.
fn explore_move(both: bool) -> u64 {
    let executions = Tally::begin();
    let counter = executions.clone();
    let (old, new) = (Arc::new(moving(1)), Arc::new(moving(2)));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = BOUND;
    builder.check(move || {
        counter.count();
        explorer::begin();
        let mmu = Arc::new(Mmu::new(&old));
        let admit =
            |mmu: &Mmu, profile| mmu.admit(profile, port(0), pg(0), frame(1), &mut |_| {}).unwrap();
        let (mine, theirs) = (admit(&mmu, &old), admit(&mmu, &old));
        mmu.adopt(&new, port(0), pg(0), &mut |_| {});
        if both {
            mmu.settle(2);
        }
        let other = {
            let (mmu, profile) = (Arc::clone(&mmu), Arc::clone(if both { &new } else { &old }));
            loom::thread::spawn(move || mmu.release(&profile, theirs, &mut |_| {}))
        };
        mmu.release(&new, mine, &mut |_| {});
        let last: Charge = admit(&mmu, &new);
        other.join().unwrap();
        let held = |on, of| if (on, of) == (port(0), pg(0)) { cells(1) } else { Cells::ZERO };
        mmu.check(&new, held).unwrap();
        mmu.release(&new, last, &mut |_| {});
        assert!(mmu.idle());
    });
    executions.executions()
}

#[test]
fn a_pg_changes_pool_while_another_worker_releases() {
    let executions = explore_move(true) + explore_move(false);
    println!("pool change: 2 models, {executions} executions");
    assert!(executions > 100);
}

#[test]
fn finds_a_release_that_does_not_hold_the_move_up() {
    finds(Fault::Unregistered, "lent", || {
        explore_move(true);
    });
}
