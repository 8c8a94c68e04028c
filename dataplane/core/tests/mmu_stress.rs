//! Two real threads on one MMU: what the explorer shows for small switches, on the machine.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)] // A failed set-up fails the test.

mod mmu_fixture;

use holdfast_core::frame::Charge;
use holdfast_core::ids::PgId;
use holdfast_core::mmu::{Edge, EdgeKind, Mmu, View};
use holdfast_core::profile::Profile;
use holdfast_core::units::Cells;
use mmu_fixture::*;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TrySendError};
use std::thread;

const FRAMES: u32 = 150_000;

/// Marsaglia's xorshift: the same run for the same seed, as far as the threads allow.
struct Dice(u32);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 % sides
    }
}

/// What one thread has seen.
#[derive(Default)]
struct Seen {
    edges: Vec<Edge>,
    headroom: u32,
    refused: u32,
    kept: Vec<Charge>,
}

/// The owner of one port: admits frames, releases some of its own and all that come from the
/// other thread, and sends the rest there.
fn worker(
    mmu: &Mmu,
    profile: &Profile,
    own: u8,
    to: &SyncSender<Charge>,
    from: &Receiver<Charge>,
) -> Seen {
    let mut dice = Dice(u32::from(own) + 77);
    let mut seen = Seen::default();
    for round in 0..FRAMES {
        let edges = &mut seen.edges;
        let mut note = |edge| edges.push(edge);
        let of = if dice.roll(2) == 0 { 3 } else { 4 };
        match mmu.admit(profile, port(own), pg(of), frame(1 + dice.roll(3)), &mut note) {
            Ok(charge) => seen.kept.push(charge),
            Err(_) => seen.refused += 1,
        }
        let now = mmu.pg(profile, port(1 - own), pg(of));
        assert!(now.headroom == Cells(0) || now.xoff, "Headroom without XOFF: {now:?}");
        seen.headroom = seen.headroom.max(now.headroom.0);
        // Fill and drain in long waves, so that both edges come.
        let drain = if round / 64 % 2 == 0 { 0 } else { 3 };
        for _ in 0..drain {
            if seen.kept.is_empty() {
                break;
            }
            let at = dice.roll(seen.kept.len() as u32) as usize;
            let charge = seen.kept.swap_remove(at);
            if dice.roll(2) == 0 {
                mmu.release(profile, charge, &mut note);
            } else if let Err(TrySendError::Full(charge) | TrySendError::Disconnected(charge)) =
                to.try_send(charge)
            {
                mmu.release(profile, charge, &mut note);
            }
        }
        while let Ok(charge) = from.try_recv() {
            mmu.release(profile, charge, &mut note);
        }
        for of in [3, 4] {
            mmu.reevaluate(profile, port(own), pg(of), &mut note);
        }
        if round % 1024 == 0 {
            PgId::all().for_each(|pg| mmu.clear_pg_watermarks(port(own), pg));
        }
    }
    seen
}

#[test]
fn two_threads_leave_a_clean_account() {
    let account = lossless(2, 8, alpha(0), 12, 4);
    let one = || port_spec(3 * CELL - 26, &[(3, account), (4, account)]);
    let profile = Profile::new(1, spec(&[40], vec![one(), one()])).unwrap();
    let mmu = Mmu::new(&profile);
    let (to_1, from_0) = sync_channel(8);
    let (to_0, from_1) = sync_channel(8);
    let (mmu_ref, profile_ref) = (&mmu, &profile);
    let (zero, one, rest) = thread::scope(|scope| {
        let zero = scope.spawn(move || {
            let seen = worker(mmu_ref, profile_ref, 0, &to_1, &from_1);
            (seen, from_1)
        });
        let one = scope.spawn(move || {
            let seen = worker(mmu_ref, profile_ref, 1, &to_0, &from_0);
            (seen, from_0)
        });
        let ((zero, from_1), (one, from_0)) = (zero.join().unwrap(), one.join().unwrap());
        let rest: Vec<Charge> = from_0.try_iter().chain(from_1.try_iter()).collect();
        (zero, one, rest)
    });
    let mut edges = [zero.edges, one.edges].concat();
    let receipts: Vec<Charge> = zero.kept.into_iter().chain(one.kept).chain(rest).collect();
    let held = |on, of| {
        let of_pg = receipts.iter().filter(|c| c.port() == on && c.pg() == of);
        Cells(of_pg.map(|c| c.cells().0).sum())
    };
    mmu.check(&profile, held).unwrap();
    for charge in receipts {
        mmu.release(&profile, charge, &mut |edge| edges.push(edge));
    }
    assert!(mmu.idle());
    let mut paused = 0;
    for (on, of) in [(0, 3), (0, 4), (1, 3), (1, 4)] {
        let of_pg = |kind| {
            let same = |e: &&Edge| e.port == port(on) && e.pg == pg(of) && e.kind == kind;
            edges.iter().filter(same).count()
        };
        assert_eq!(of_pg(EdgeKind::Xoff), of_pg(EdgeKind::Xon), "an edge belongs to one CAS");
        assert!(!mmu.in_xoff(port(on), pg(of)));
        assert!(mmu.watermarks(port(on), pg(of), View::Persistent).headroom <= Cells(8));
        paused += of_pg(EdgeKind::Xoff);
    }
    assert!(mmu.pool_watermark(pool(0), View::Persistent) <= Cells(40));
    assert!(paused > 100 && zero.refused + one.refused > 0, "{paused} pauses: too tame a test");
}
