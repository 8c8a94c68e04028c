//! One small switch, what is charged in it, and two workers that act on it at once.

use crate::explored::Tally;
use crate::mmu_fixture::*;
use holdfast_core::drop::DropReason;
use holdfast_core::explorer;
use holdfast_core::frame::Charge;
use holdfast_core::ids::PrioritySet;
use holdfast_core::mmu::{Edge, EdgeKind, Levels, Mmu, Word};
use holdfast_core::profile::{PgSpec, Profile};
use holdfast_core::units::Cells;
use std::sync::{Arc, Mutex};

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// A frame of so many cells comes in at port 0, PG 0.
    Admit(u32),
    /// A frame of so many cells comes in at port 1, PG 0, which draws from the same pools.
    AdmitOther(u32),
    /// One of the frames of port 0 leaves.
    Release,
    /// The exit rule by port 0's owner.
    Reevaluate,
    /// Port 0's owner looks at its work bit and, if it is set, sends the level.
    Signal,
}

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    account: PgSpec,
    pool_size: u32,
    /// Cells of the frames that port 0 holds already.
    pub(crate) fill: Vec<u32>,
}

impl Scenario {
    pub(crate) fn new(account: PgSpec, pool_size: u32, fill: Vec<u32>) -> Self {
        Self { account, pool_size, fill }
    }

    fn profile(&self) -> Profile {
        let one = || port_spec(ONE_CELL_MTU, &[(0, self.account)]);
        let mut plain = spec(&[self.pool_size], vec![one(), one()]);
        if self.account.headroom_pool {
            plain.headroom_pool = self.account.headroom;
        }
        Profile::new(1, plain).unwrap()
    }
}

/// An admission under way.
#[derive(Debug)]
struct Pending {
    on: u8,
    cells: u32,
    /// At one instant since it began the frame did not fit.
    refusable: bool,
}

/// What both workers share.
struct Stage {
    mmu: Mmu,
    profile: Arc<Profile>,
    account: PgSpec,
    /// The level that port 0's owner has sent last.
    sent: Mutex<PrioritySet>,
    pending: Mutex<[Option<Pending>; 2]>,
    flips: Mutex<Flips>,
}

/// How often the XOFF bit of port 0's PG was set and cleared, and how many edges were reported.
#[derive(Debug, Default)]
struct Flips {
    in_xoff: bool,
    seen: [u32; 2],
    reported: [u32; 2],
}

impl Flips {
    /// The bit as it is now.
    fn look(&mut self, in_xoff: bool) {
        if in_xoff != self.in_xoff {
            self.seen[usize::from(in_xoff)] += 1;
            self.in_xoff = in_xoff;
        }
    }

    fn report(&mut self, edge: &Edge) {
        if edge.port == port(0) {
            self.reported[usize::from(edge.kind == EdgeKind::Xoff)] += 1;
        }
    }
}

impl Stage {
    fn free(&self) -> Cells {
        self.profile.pool_size(pool(0)).saturating_sub(self.mmu.latest_lent(pool(0)))
    }

    /// Steps 1 to 4 of SPEC 3.2 on the values of this instant.
    fn fits(&self, on: u8, n: u32) -> bool {
        let word = self.mmu.latest(port(on), pg(0));
        let free = self.free();
        let levels = Levels::at(&self.account, free);
        let shared = self.profile.spec().headroom_pool.0 - self.mmu.latest_headroom_lent().0;
        let headroom = word.headroom().0 + n <= self.account.headroom.0
            && (!self.account.headroom_pool || n <= shared);
        word.guaranteed().0 + n <= self.account.guaranteed.0
            || word.service().0 + n <= levels.limit.0 && n <= free.0
            || headroom
    }

    /// After every change: SPEC 3.7 on the latest values.
    fn observe(&self) {
        let words = [0, 1].map(|on| self.mmu.latest(port(on), pg(0)));
        self.flips.lock().unwrap().look(words[0].in_xoff());
        for word in words {
            let account = &self.account;
            assert!(
                word.headroom() == Cells(0) || word.in_xoff(),
                "Headroom without XOFF: {word:?}"
            );
            assert!(word.guaranteed() <= account.guaranteed, "{word:?}");
            assert!(word.headroom() <= account.headroom, "{word:?}");
        }
        let held = |of: fn(Word) -> Cells| Cells(words.iter().map(|word| of(*word).0).sum());
        let (lent, service) = (self.mmu.latest_lent(pool(0)), held(Word::service));
        assert!(lent <= self.profile.pool_size(pool(0)), "{lent} lent");
        assert!(service <= lent, "{service} of Service held, {lent} lent");
        if self.account.headroom_pool {
            let lent = self.mmu.latest_headroom_lent();
            assert!(lent <= self.profile.spec().headroom_pool, "{lent} lent for Headroom");
            assert!(held(Word::headroom) <= lent);
        }
        for pending in self.pending.lock().unwrap().iter_mut().flatten() {
            pending.refusable |= !self.fits(pending.on, pending.cells);
        }
    }

    fn admit(&self, worker: usize, on: u8, n: u32) -> Option<Charge> {
        let refusable = !self.fits(on, n);
        self.pending.lock().unwrap()[worker] = Some(Pending { on, cells: n, refusable });
        let outcome = self
            .mmu
            .admit(&self.profile, port(on), pg(0), frame(n), &mut |edge| self.report(&edge));
        let pending = self.pending.lock().unwrap()[worker].take().unwrap();
        match outcome {
            Ok(charge) => Some(charge),
            Err(reason) => {
                assert_eq!(reason, DropReason::HeadroomOverflow);
                assert!(pending.refusable, "wrong refusal: the frame fitted all the time");
                None
            }
        }
    }

    fn report(&self, edge: &Edge) {
        self.flips.lock().unwrap().report(edge);
    }

    fn signal(&self) {
        if self.mmu.take_work(port(0)) {
            let level = self.mmu.pfc_level(&self.profile, port(0));
            *self.sent.lock().unwrap() = level;
        }
    }

    /// Runs a worker's operations; returns the receipts it has left.
    fn work(&self, worker: usize, ops: &[Op], mut receipts: Vec<Charge>) -> Vec<Charge> {
        for op in ops {
            match op {
                Op::Admit(n) => receipts.extend(self.admit(worker, 0, *n)),
                Op::AdmitOther(n) => receipts.extend(self.admit(worker, 1, *n)),
                Op::Release => {
                    let at = receipts.iter().position(|charge| charge.port() == port(0)).unwrap();
                    let charge = receipts.remove(at);
                    self.mmu.release(&self.profile, charge, &mut |edge| self.report(&edge));
                }
                Op::Signal => {
                    self.mmu.xoff_set(port(0));
                    self.signal();
                }
                Op::Reevaluate => {
                    let mut report = |edge| self.report(&edge);
                    self.mmu.reevaluate(&self.profile, port(0), pg(0), &mut report);
                }
            }
        }
        receipts
    }

    /// When both are done: nothing lost, and without anybody else's help no PG is in XOFF that
    /// ought to leave, and none is out of it that ought to be in.
    fn settle(&self, receipts: Vec<Charge>, alone: bool) {
        let held = |on, of| {
            let of_pg = receipts.iter().filter(|c| c.port() == on && c.pg() == of);
            Cells(of_pg.map(|c| c.cells().0).sum())
        };
        self.mmu.check(&self.profile, held).unwrap();
        if alone {
            let now = self.mmu.pg(&self.profile, port(0), pg(0));
            let mut left = false;
            self.mmu.reevaluate(&self.profile, port(0), pg(0), &mut |_| left = true);
            assert!(!left, "stuck in XOFF: {now:?}");
            let over = now.service >= now.xoff_eff.max(Cells(1));
            assert!(now.xoff || !over, "XOFF was missed: {now:?}");
        }
        self.signal();
        let level = self.mmu.pfc_level(&self.profile, port(0));
        assert_eq!(*self.sent.lock().unwrap(), level, "an edge without a work bit");
        let in_xoff = u8::from(self.mmu.in_xoff(port(0), pg(0)));
        assert_eq!(self.mmu.xoff_set(port(0)), in_xoff, "a PG in XOFF that its owner can't see");
        for charge in receipts {
            self.mmu.release(&self.profile, charge, &mut |_| {});
        }
        assert!(self.mmu.idle());
        for on in [0, 1] {
            self.mmu.reevaluate(&self.profile, port(on), pg(0), &mut |_| {});
            assert!(!self.mmu.in_xoff(port(on), pg(0)), "an empty PG stuck in XOFF");
        }
    }
}

/// Explores one scenario under two programs; returns how many executions there were.
///
/// `bound` is how often a worker may be preempted, `None` for any number of times.
pub(crate) fn explore(
    scenario: &Scenario,
    first: &[Op],
    second: &[Op],
    bound: Option<usize>,
) -> u64 {
    let executions = Tally::begin();
    let counter = executions.clone();
    let (scenario, first, second) = (scenario.clone(), first.to_vec(), second.to_vec());
    let others =
        [&first, &second].iter().any(|ops| ops.iter().any(|op| matches!(op, Op::AdmitOther(_))));
    let profile = Arc::new(scenario.profile());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = bound;
    builder.check(move || {
        counter.count();
        explorer::begin();
        let stage = Arc::new(Stage {
            mmu: Mmu::new(&profile),
            profile: Arc::clone(&profile),
            account: scenario.account,
            sent: Mutex::new(PrioritySet::EMPTY),
            pending: Mutex::new([None, None]),
            flips: Mutex::new(Flips::default()),
        });
        let admitted = scenario.fill.iter().filter_map(|n| stage.admit(0, 0, *n));
        let mut mine: Vec<Charge> = admitted.collect();
        let wanted = |ops: &[Op]| ops.iter().filter(|op| **op == Op::Release).count();
        if mine.len() < wanted(&first) + wanted(&second) {
            return;
        }
        stage.signal();
        let theirs = mine.split_off(mine.len() - wanted(&second));
        let in_xoff = stage.mmu.latest(port(0), pg(0)).in_xoff();
        *stage.flips.lock().unwrap() = Flips { in_xoff, ..Flips::default() };
        let watcher = Arc::clone(&stage);
        explorer::watch(move || watcher.observe());
        let other = {
            let (stage, ops) = (Arc::clone(&stage), second.clone());
            loom::thread::spawn(move || stage.work(1, &ops, theirs))
        };
        let mut receipts = stage.work(0, &first, mine);
        receipts.extend(other.join().unwrap());
        explorer::unwatch();
        let flips = core::mem::take(&mut *stage.flips.lock().unwrap());
        assert_eq!(flips.seen, flips.reported, "edges reported for each time the bit was flipped");
        stage.settle(receipts, !others);
    });
    executions.executions()
}
