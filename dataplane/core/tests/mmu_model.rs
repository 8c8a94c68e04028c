//! The MMU against a naive model: SPEC 3.2 to 3.4 and 3.6 as prose in code, one thread.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)] // A failed set-up fails the test.

mod mmu_fixture;

use holdfast_core::ids::{PgId, PoolId};
use holdfast_core::mmu::EdgeKind;
use holdfast_core::profile::{Limit, PgSpec, Profile, Xoff, Xon};
use mmu_fixture::*;
use proptest::prelude::*;

const PORTS: usize = 2;
const PGS: [u8; 2] = [0, 3];
const POOLS: usize = 2;

#[derive(Clone, Debug, Default)]
struct Account {
    g: i64,
    s: i64,
    h: i64,
    xoff: bool,
    pool: usize,
    shared: bool,
}

#[derive(Debug)]
struct Model {
    accounts: [[Account; 2]; PORTS],
    withheld: [i64; POOLS],
    pool_sizes: Vec<i64>,
    headroom_pool: i64,
    specs: [[PgSpec; 2]; PORTS],
    largest: i64,
    edges: Vec<(usize, usize, EdgeKind)>,
}

impl Model {
    fn each(&self) -> impl Iterator<Item = &Account> {
        self.accounts.iter().flatten()
    }

    fn free(&self, pool: usize) -> i64 {
        let lent: i64 = self.each().filter(|a| a.pool == pool).map(|a| a.s).sum();
        (self.pool_sizes[pool] - lent - self.withheld[pool]).max(0)
    }

    fn headroom_pool_free(&self) -> i64 {
        let lent: i64 = self.each().filter(|a| a.shared).map(|a| a.h).sum();
        (self.headroom_pool - lent).max(0)
    }

    fn limit(&self, on: usize, of: usize) -> i64 {
        match self.specs[on][of].limit {
            Limit::Static(cells) => i64::from(cells.0),
            Limit::Dynamic(alpha) => {
                let free = self.free(self.accounts[on][of].pool);
                (free as f64 * 2f64.powi(i32::from(alpha.log2()))).floor() as i64
            }
        }
    }

    /// XOFF_eff and R.
    fn levels(&self, on: usize, of: usize) -> (i64, i64) {
        let spec = self.specs[on][of];
        let limit = self.limit(on, of);
        let (base, xoff_eff) = match spec.xoff {
            Xoff::At(x) => (i64::from(x.0), i64::from(x.0).min(limit)),
            Xoff::AtLimit => (limit, limit),
        };
        let window = match spec.xon {
            Xon::Offset(x) => i64::from(x.0),
            Xon::Absolute(x) => (base - i64::from(x.0)).max(0),
        };
        let window =
            if matches!(spec.xoff, Xoff::At(_)) { window * xoff_eff / base } else { window };
        let resume = (xoff_eff - window).max(i64::from(spec.xon_floor.0)).min(xoff_eff - 1);
        (xoff_eff, resume.max(0))
    }

    fn set(&mut self, on: usize, of: usize, xoff: bool) {
        if self.accounts[on][of].xoff != xoff {
            self.accounts[on][of].xoff = xoff;
            self.edges.push((on, of, if xoff { EdgeKind::Xoff } else { EdgeKind::Xon }));
        }
    }

    fn fits_guaranteed(&self, on: usize, of: usize, n: i64) -> bool {
        self.accounts[on][of].g + n <= i64::from(self.specs[on][of].guaranteed.0)
    }

    fn fits_service(&self, on: usize, of: usize, n: i64) -> bool {
        let account = &self.accounts[on][of];
        account.s + n <= self.limit(on, of) && n <= self.free(account.pool)
    }

    fn fits_headroom(&self, on: usize, of: usize, n: i64) -> bool {
        let account = &self.accounts[on][of];
        let room = !account.shared || n <= self.headroom_pool_free();
        account.h + n <= i64::from(self.specs[on][of].headroom.0) && room
    }

    fn consider_exit(&mut self, on: usize, of: usize) {
        let account = &self.accounts[on][of];
        let (spec, n) = (self.specs[on][of], self.largest);
        let mut leaves = account.h == 0 && account.s <= self.levels(on, of).1;
        let taken = self.fits_guaranteed(on, of, n) || self.fits_service(on, of, n);
        if account.g + account.s + account.h == 0 {
            let private = !account.shared && spec.headroom.0 > 0;
            let size = self.pool_sizes[account.pool];
            let most = match spec.limit {
                Limit::Static(cells) => i64::from(cells.0),
                Limit::Dynamic(alpha) => {
                    (size as f64 * 2f64.powi(i32::from(alpha.log2()))).floor() as i64
                }
            };
            let headroom_most = if account.shared { self.headroom_pool } else { i64::MAX };
            let ever = n <= i64::from(spec.guaranteed.0)
                || n <= most.min(size)
                || n <= headroom_most.min(i64::from(spec.headroom.0));
            leaves &= taken || private || self.fits_headroom(on, of, n) || !ever;
        } else {
            leaves &= taken;
        }
        if account.xoff && (leaves || !spec.lossless) {
            self.set(on, of, false);
        }
    }

    fn consider_entry(&mut self, on: usize, of: usize) {
        let s = self.accounts[on][of].s;
        if self.specs[on][of].lossless && s >= self.levels(on, of).0.max(1) {
            self.set(on, of, true);
        }
    }

    /// A PG changes pool only when its Service is 0 (SPEC 3.6).
    fn consider_move(&mut self, on: usize, of: usize) {
        let spec = self.specs[on][of];
        let account = &mut self.accounts[on][of];
        if account.s == 0 {
            account.pool = spec.pool.index();
        }
        if account.h == 0 {
            account.shared = spec.headroom_pool;
        }
    }

    fn admit(&mut self, on: usize, of: usize, n: i64) -> bool {
        self.consider_move(on, of);
        let lossless = self.specs[on][of].lossless;
        let mut taken = true;
        if self.fits_guaranteed(on, of, n) {
            self.accounts[on][of].g += n;
        } else {
            let open = !lossless || !self.accounts[on][of].xoff;
            if open && self.fits_service(on, of, n) {
                self.accounts[on][of].s += n;
            } else if !lossless {
                return false;
            } else {
                self.set(on, of, true);
                if self.fits_headroom(on, of, n) {
                    self.accounts[on][of].h += n;
                } else if self.fits_service(on, of, n) {
                    self.accounts[on][of].s += n;
                } else {
                    taken = false;
                }
            }
        }
        if lossless && self.accounts[on][of].h > 0 {
            self.set(on, of, true);
        }
        if taken {
            self.consider_entry(on, of);
        }
        if lossless {
            self.consider_exit(on, of);
        }
        taken
    }

    fn release(&mut self, on: usize, of: usize, n: i64) {
        let account = &mut self.accounts[on][of];
        let h = n.min(account.h);
        let s = (n - h).min(account.s);
        account.h -= h;
        account.s -= s;
        account.g -= n - h - s;
        if self.specs[on][of].lossless {
            self.consider_exit(on, of);
        }
    }

    fn reevaluate(&mut self, on: usize, of: usize) {
        if self.accounts[on][of].xoff {
            self.consider_move(on, of);
            self.consider_exit(on, of);
        }
    }

    fn withhold(&mut self) {
        self.withheld = [0; POOLS];
        for on in 0..PORTS {
            for of in 0..PGS.len() {
                let (account, spec) = (&self.accounts[on][of], self.specs[on][of]);
                let held = &mut self.withheld[spec.pool.index()];
                *held += (account.g - i64::from(spec.guaranteed.0)).max(0);
                // Headroom that the shared pool lent is in its books, not in private ones. A PG
                // on its way there may still fill its old private Headroom up to the cap.
                let cap = i64::from(spec.headroom.0);
                if !account.shared && spec.headroom_pool && account.h > 0 {
                    *held += account.h.max(cap);
                } else if !account.shared {
                    *held += (account.h - cap).max(0);
                }
            }
        }
    }

    fn adopt(&mut self, config: &Config) {
        self.configure(config);
        self.withhold();
        for on in 0..PORTS {
            for of in 0..PGS.len() {
                if self.specs[on][of].lossless && self.accounts[on][of].h > 0 {
                    self.set(on, of, true);
                }
                self.consider_entry(on, of);
                self.consider_exit(on, of);
            }
        }
    }

    fn configure(&mut self, config: &Config) {
        self.specs = config.pgs;
        self.pool_sizes = config.pools.iter().map(|size| i64::from(*size)).collect();
        self.headroom_pool = i64::from(config.headroom_pool);
        self.largest = i64::from(config.largest);
    }
}

#[derive(Clone, Debug)]
struct Config {
    pools: [u32; POOLS],
    headroom_pool: u32,
    largest: u16,
    pgs: [[PgSpec; 2]; PORTS],
}

impl Config {
    fn profile(&self, generation: u64) -> Profile {
        let mtu = self.largest * CELL - 26;
        let port = |pgs: &[PgSpec; 2]| port_spec(mtu, &[(PGS[0], pgs[0]), (PGS[1], pgs[1])]);
        let mut plain = spec(&self.pools, self.pgs.iter().map(port).collect());
        plain.headroom_pool = cells(self.headroom_pool);
        Profile::new(generation, plain).unwrap()
    }
}

#[derive(Clone, Debug)]
enum Op {
    Admit(usize, usize, u32),
    Release(prop::sample::Index),
    Reevaluate(usize, usize),
    Change(Box<Config>),
}

fn any_limit() -> impl Strategy<Value = Limit> {
    prop_oneof![(0u32..=14).prop_map(fixed), (-3i8..=3).prop_map(alpha), Just(alpha(7))]
}

fn any_pg() -> impl Strategy<Value = PgSpec> {
    let sizes = (0u32..=5, 0u32..=6, any_limit(), 0u8..POOLS as u8);
    let marks = (2u32..=10, any::<prop::sample::Index>(), any::<bool>(), 0u32..=6);
    let flags = (prop::bool::weighted(0.8), prop::bool::weighted(0.3), prop::bool::weighted(0.3));
    (sizes, marks, flags).prop_map(|((g, h, limit, of), (xoff, xon, absolute, floor), flags)| {
        let (lossless_pg, at_limit, shared) = flags;
        if !lossless_pg {
            return PgSpec { guaranteed: cells(g), limit, pool: pool(of), ..lossy() };
        }
        let xon = cells(1 + xon.index(xoff as usize - 1) as u32);
        PgSpec {
            pool: PoolId::new(of).unwrap(),
            xoff: if at_limit { Xoff::AtLimit } else { Xoff::At(cells(xoff)) },
            xon: if absolute { Xon::Absolute(xon) } else { Xon::Offset(xon) },
            xon_floor: cells(if absolute { 0 } else { floor }),
            headroom_pool: shared,
            ..lossless(g, h, limit, xoff, 1)
        }
    })
}

fn any_config() -> impl Strategy<Value = Config> {
    let pgs = prop::array::uniform2(prop::array::uniform2(any_pg()));
    (prop::array::uniform2(0u32..=24), 0u32..=8, 1u16..=3, pgs).prop_map(
        |(pools, headroom_pool, largest, pgs)| Config { pools, headroom_pool, largest, pgs },
    )
}

fn any_op() -> impl Strategy<Value = Op> {
    let place = || (0..PORTS, 0..PGS.len());
    prop_oneof![
        12 => (place(), 1u32..=3).prop_map(|((on, of), n)| Op::Admit(on, of, n)),
        9 => any::<prop::sample::Index>().prop_map(Op::Release),
        3 => place().prop_map(|(on, of)| Op::Reevaluate(on, of)),
        1 => any_config().prop_map(|config| Op::Change(Box::new(config))),
    ]
}

fn start(config: &Config) -> (Rig, Model) {
    let mut model = Model {
        accounts: Default::default(),
        withheld: [0; POOLS],
        pool_sizes: Vec::new(),
        headroom_pool: 0,
        specs: config.pgs,
        largest: 1,
        edges: Vec::new(),
    };
    model.configure(config);
    for on in 0..PORTS {
        for of in 0..PGS.len() {
            model.consider_move(on, of);
        }
    }
    (Rig::new(config.profile(1)), model)
}

fn index_of(id: PgId) -> usize {
    PGS.iter().position(|n| *n == id.number()).unwrap()
}

fn compare(rig: &Rig, model: &Model) -> Result<(), TestCaseError> {
    for on in 0..PORTS {
        for (of, number) in PGS.into_iter().enumerate() {
            let account = &model.accounts[on][of];
            let now = rig.mmu.pg(&rig.profile, port(on as u8), pg(number));
            let seen = (i64::from(now.guaranteed.0), i64::from(now.service.0));
            prop_assert_eq!(seen, (account.g, account.s));
            prop_assert_eq!((i64::from(now.headroom.0), now.xoff), (account.h, account.xoff));
            let levels = (i64::from(now.xoff_eff.0), i64::from(now.resume.0));
            prop_assert_eq!(i64::from(now.limit.0), model.limit(on, of));
            prop_assert_eq!(levels, model.levels(on, of));
        }
        let bits = rig.mmu.xoff_set(port(on as u8));
        let model_bits = PGS
            .iter()
            .enumerate()
            .fold(0, |set, (of, n)| set | u8::from(model.accounts[on][of].xoff) << n);
        prop_assert_eq!(bits, model_bits);
    }
    for n in 0..POOLS {
        let now = rig.mmu.pool(&rig.profile, pool(n as u8));
        prop_assert_eq!(i64::from(now.free.0), model.free(n));
        prop_assert_eq!(i64::from(now.withheld.0), model.withheld[n]);
    }
    let edges: Vec<_> =
        rig.edges.iter().map(|edge| (edge.port.index(), index_of(edge.pg), edge.kind)).collect();
    prop_assert_eq!(&edges, &model.edges);
    rig.check();
    Ok(())
}

fn run(config: &Config, ops: &[Op]) -> Result<(), TestCaseError> {
    let (mut rig, mut model) = start(config);
    let mut generation = 1;
    for op in ops {
        match op {
            Op::Admit(on, of, n) => {
                let taken = rig.admit_to(*on as u8, PGS[*of], *n);
                prop_assert_eq!(taken, model.admit(*on, *of, i64::from(*n)));
            }
            Op::Release(which) => {
                if rig.charges.is_empty() {
                    continue;
                }
                let charge = rig.charges.remove(which.index(rig.charges.len()));
                let (on, of) = (charge.port().index(), index_of(charge.pg()));
                model.release(on, of, i64::from(charge.cells().0));
                let edges = &mut rig.edges;
                rig.mmu.release(&rig.profile, charge, &mut |edge| edges.push(edge));
            }
            Op::Reevaluate(on, of) => {
                rig.reevaluate(*on as u8, PGS[*of]);
                model.reevaluate(*on, *of);
            }
            Op::Change(config) => {
                generation += 1;
                rig.adopt(config.profile(generation));
                model.adopt(config);
            }
        }
        rig.mmu.recompute_withheld_if_any(&rig.profile);
        model.withhold();
        compare(&rig, &model)?;
    }
    drain(rig)
}

fn drain(mut rig: Rig) -> Result<(), TestCaseError> {
    for charge in core::mem::take(&mut rig.charges) {
        rig.mmu.release(&rig.profile, charge, &mut |_| {});
    }
    prop_assert!(rig.mmu.idle());
    rig.mmu.recompute_withheld_if_any(&rig.profile);
    for on in 0..PORTS as u8 {
        for of in PGS {
            rig.reevaluate(on, of);
            prop_assert!(!rig.state_of(on, of).3, "no PG is left stuck");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn outcomes_edges_and_levels_are_those_of_the_prose(
        config in any_config(), ops in prop::collection::vec(any_op(), 1..80),
    ) {
        run(&config, &ops)?;
    }
}
