//! A profile change, explored: two workers adopt it one after the other while both charge and
//! release, and the control thread settles it when both have acknowledged (SPEC 3.3, 3.6).
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p holdfast-core --release --test loom_adopt`
#![cfg(loom)]
#![allow(clippy::unwrap_used, clippy::expect_used)] // A failed set-up fails the test.

mod explored;
mod mmu_fixture;

use explored::{explore, fails, finds};
use holdfast_core::explorer::{self, Fault};
use holdfast_core::frame::Charge;
use holdfast_core::mmu::Mmu;
use holdfast_core::profile::{PgSpec, Profile, Xoff};
use holdfast_core::units::Cells;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::Arc;
use loom::thread;
use mmu_fixture::*;
use std::sync::Arc as StdArc;

const BOUND: Option<usize> = Some(2);
/// Workers, each of which acknowledges.
const WORKERS: u32 = 2;

/// What a worker does around its adoption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Nothing,
    /// The port's owner takes a frame in, under the old profile.
    Admit,
    /// One of the frames leaves, under the old profile.
    Release,
    /// The same, when it has adopted already.
    AdmitAfter,
    ReleaseAfter,
}

fn profile(generation: u64, account: PgSpec, pools: &[u32]) -> StdArc<Profile> {
    let ports = vec![port_spec(ONE_CELL_MTU, &[(0, account)])];
    StdArc::new(Profile::new(generation, spec(pools, ports)).unwrap())
}

/// What both share.
struct Change {
    mmu: Mmu,
    old: StdArc<Profile>,
    new: StdArc<Profile>,
    /// Workers that have adopted.
    acknowledged: AtomicU32,
}

impl Change {
    fn work(&self, work: Work, charges: Vec<Charge>) -> Vec<Charge> {
        let charges = self.act(&self.old, work, [Work::Admit, Work::Release], charges);
        self.mmu.adopt(&self.new, port(0), pg(0), &mut |_| {});
        self.acknowledged.fetch_add(1, Ordering::AcqRel);
        self.act(&self.new, work, [Work::AdmitAfter, Work::ReleaseAfter], charges)
    }

    fn act(
        &self,
        profile: &Profile,
        work: Work,
        [admits, releases]: [Work; 2],
        mut charges: Vec<Charge>,
    ) -> Vec<Charge> {
        if work == admits {
            charges.extend(self.mmu.admit(profile, port(0), pg(0), frame(1), &mut |_| {}));
        }
        if work == releases {
            if let Some(charge) = charges.pop() {
                self.mmu.release(profile, charge, &mut |_| {});
            }
        }
        charges
    }

    /// When both have adopted: the level is right without anybody's help, and nothing is left.
    fn settle(&self, charges: Vec<Charge>) {
        let new = &self.new;
        let held = |on, of| {
            let of_pg = charges.iter().filter(|c| c.port() == on && c.pg() == of);
            Cells(of_pg.map(|c| c.cells().0).sum())
        };
        self.mmu.recompute_withheld(new);
        self.mmu.check(new, held).unwrap();
        let now = self.mmu.pg(new, port(0), pg(0));
        let lossless = new.port(port(0)).unwrap().pgs[pg(0)].lossless;
        let over = lossless && now.service >= now.xoff_eff.max(Cells(1));
        assert!(now.xoff || !over, "XOFF was missed at the change: {now:?}");
        let mut left = false;
        self.mmu.reevaluate(new, port(0), pg(0), &mut |_| left = true);
        assert!(!left, "stuck in XOFF after the change: {now:?}");
        for charge in charges {
            self.mmu.release(new, charge, &mut |_| {});
        }
        self.mmu.reevaluate(new, port(0), pg(0), &mut |_| {});
        assert!(self.mmu.idle() && !self.mmu.in_xoff(port(0), pg(0)), "left in XOFF");
    }
}

/// Two frames are there already; the owner's and the other worker's share are one each.
fn change(old: &StdArc<Profile>, new: &StdArc<Profile>, [owner, other]: [Work; 2], needed: u32) {
    explorer::begin();
    let change = Arc::new(Change {
        mmu: Mmu::new(old),
        old: StdArc::clone(old),
        new: StdArc::clone(new),
        acknowledged: AtomicU32::new(0),
    });
    let one = || change.mmu.admit(old, port(0), pg(0), frame(1), &mut |_| {}).ok();
    let (mine, theirs): (Vec<_>, Vec<_>) =
        (one().into_iter().collect(), one().into_iter().collect());
    let second = {
        let change = Arc::clone(&change);
        thread::spawn(move || change.work(other, theirs))
    };
    let mut charges = change.work(owner, mine);
    // The control thread settles as soon as it has the acknowledgements it needs; then the owner
    // may move the PG to the new pool.
    if change.acknowledged.load(Ordering::Acquire) >= needed {
        change.mmu.settle(new.generation());
        charges.extend(change.mmu.admit(new, port(0), pg(0), frame(1), &mut |_| {}));
    }
    charges.extend(second.join().unwrap());
    change.mmu.settle(new.generation());
    change.settle(charges);
}

/// Lower, higher, lossy, lossless again, another pool.
fn changes() -> Vec<(&'static str, StdArc<Profile>, StdArc<Profile>)> {
    let at = |xoff| lossless(0, 1, fixed(4), xoff, 1);
    let limit = PgSpec { xoff: Xoff::AtLimit, ..lossless(0, 1, alpha(0), 2, 1) };
    let open = PgSpec { limit: fixed(4), ..lossy() };
    // What is left in Guaranteed while the PG moves is what the two could mistake.
    let kept = PgSpec { guaranteed: cells(1), ..at(2) };
    let moved = PgSpec { pool: pool(1), ..kept };
    let both = |from, to| (profile(1, from, &[4, 4]), profile(2, to, &[4, 4]));
    let named = |name, (old, new)| (name, old, new);
    vec![
        named("XOFF lowered", both(at(4), at(2))),
        named("XOFF raised", both(at(2), at(4))),
        named("made lossy", both(at(2), open)),
        named("made lossless", both(open, at(2))),
        named(
            "at the limit of a smaller pool",
            (profile(1, limit, &[4, 4]), profile(2, limit, &[2, 4])),
        ),
        named("another pool", both(kept, moved)),
    ]
}

const WORKS: [[Work; 2]; 7] = [
    [Work::Nothing, Work::Nothing],
    [Work::Admit, Work::Nothing],
    [Work::Admit, Work::Release],
    [Work::AdmitAfter, Work::Release],
    [Work::Release, Work::ReleaseAfter],
    [Work::AdmitAfter, Work::ReleaseAfter],
    [Work::ReleaseAfter, Work::Release],
];

fn explore_changes(works: &[[Work; 2]], needed: u32) {
    for (name, old, new) in changes() {
        for work in works {
            let (old, new, work) = (StdArc::clone(&old), StdArc::clone(&new), *work);
            explore(&format!("{name}, {work:?}"), BOUND, move || change(&old, &new, work, needed));
        }
    }
}

#[test]
fn the_last_worker_to_adopt_leaves_the_right_state() {
    explore_changes(&WORKS, WORKERS);
}

#[test]
fn finds_a_charge_that_checks_and_then_writes_at_a_change() {
    finds(Fault::CheckThenCharge, "Receipts", || explore_changes(&WORKS, WORKERS));
}

/// Not a fault of the switch's code but of its user: settled when one worker has acknowledged.
#[test]
fn finds_a_change_that_is_settled_too_early() {
    fails("settled too early", None, "lent", || explore_changes(&WORKS, WORKERS - 1));
}
