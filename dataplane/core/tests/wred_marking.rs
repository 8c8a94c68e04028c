//! The marking line of SPEC 5, exactly; fault 28.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_core::profile::*;
use holdfast_core::units::*;
use holdfast_core::wred::{Arrival, Wred};
use holdfast_wire::ip::Ecn;
use proptest::prelude::*;

const EVERY_ECN: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

fn spec(kmin: u32, kmax: u32, pmax: Prob16) -> WredSpec {
    WredSpec {
        kmin: Cells(kmin),
        kmax: Cells(kmax),
        pmax,
        mark_at: MarkAt::Dequeue,
        not_ect: NotEct::Drop,
        ewma_shift: 0,
    }
}

fn percent(n: u32) -> Prob16 {
    Prob16::new(65_536 * n / 100).unwrap()
}

/// Hits among `draws` decisions at one depth.
fn hits(spec: &WredSpec, depth: u32, draws: u32) -> u32 {
    let mut wred = Wred::new(u64::from(depth));
    (0..draws).map(|_| u32::from(wred.decide(spec, Cells(depth)))).sum()
}

/// Asserts that the fraction of hits is `p` within 4 sigma.
fn assert_fraction(hits: u32, draws: u32, p: f64) {
    let (mean, sigma) = (f64::from(draws) * p, (f64::from(draws) * p * (1.0 - p)).sqrt());
    assert!((f64::from(hits) - mean).abs() <= 4.0 * sigma, "{hits} of {draws}, not {mean}");
}

#[test]
fn nothing_is_hit_below_kmin_and_everything_from_kmax_on() {
    let spec = spec(500, 2_000, percent(5));
    for depth in [0, 1, 499, 500] {
        assert_eq!(hits(&spec, depth, 100_000), 0, "at {depth}");
    }
    for depth in [2_000, 2_001, u32::MAX] {
        assert_eq!(hits(&spec, depth, 1_000), 1_000, "at {depth}");
    }
}

#[test]
fn the_line_rises_from_0_at_kmin_to_pmax_just_below_kmax() {
    let spec = spec(500, 2_000, percent(5));
    for depth in [501, 650, 1_250, 1_999] {
        let p = f64::from(spec.pmax.units()) / 65_536.0 * f64::from(depth - 500) / 1_500.0;
        assert_fraction(hits(&spec, depth, 1_000_000), 1_000_000, p);
    }
}

#[test]
fn the_smallest_probability_is_not_rounded_away() {
    // p = 1/65536 * 1/3: less than any fixed-point step of 2^-16.
    let spec = spec(10, 13, Prob16::new(1).unwrap());
    let draws = 20_000_000;
    assert_fraction(hits(&spec, 11, draws), draws, 1.0 / 65_536.0 / 3.0);
}

#[test]
fn kmin_equal_to_kmax_is_a_step() {
    let spec = spec(50, 50, percent(5));
    assert_eq!(hits(&spec, 49, 1_000), 0);
    assert_eq!(hits(&spec, 50, 1_000), 1_000);
}

#[test]
fn pmax_0_marks_only_from_kmax_on() {
    let spec = spec(10, 20, Prob16::ZERO);
    assert_eq!(hits(&spec, 19, 1_000), 0);
    assert_eq!(hits(&spec, 20, 1_000), 1_000);
}

#[test]
fn the_same_seed_decides_the_same_and_another_one_differently() {
    let spec = spec(0, 1_000, Prob16::ONE);
    let run = |seed| {
        let mut wred = Wred::new(seed);
        (0..256).map(|_| wred.decide(&spec, Cells(500))).collect::<Vec<_>>()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

/// Fault 28: a blocked queue takes 101 frames of 1024 bytes, then is let go. Kmin 50, Kmax 51
/// frames' worth. The positions follow from the rule: 51 frames deep or more is marked.
#[test]
fn positions_in_a_burst_of_101_follow_from_the_rule() {
    let cells = FrameLen(1_024).to_cells(CellSize::DEFAULT).0;
    let mut spec = spec(50 * cells, 51 * cells, Prob16::ONE);
    let mut wred = Wred::new(1);

    let leaving: Vec<bool> =
        (1..=101).map(|n| wred.on_departure(&spec, Cells((102 - n) * cells))).collect();
    assert!(leaving[..51].iter().all(|marked| *marked), "the first 51 are marked");
    assert!(leaving[51..].iter().all(|marked| !marked), "the last 50 are not");
    assert_eq!(wred.on_arrival(&spec, Cells(u32::MAX), Ecn::Ect0, true), Arrival::Join);

    spec.mark_at = MarkAt::Enqueue;
    let joining: Vec<Arrival> =
        (1..=101).map(|n| wred.on_arrival(&spec, Cells(n * cells), Ecn::Ect0, true)).collect();
    assert!(joining[..50].iter().all(|fate| *fate == Arrival::Join));
    assert!(joining[50..].iter().all(|fate| *fate == Arrival::JoinMarked));
    assert!(!wred.on_departure(&spec, Cells(u32::MAX)), "decided when it joined");
}

/// Fault 28: changed thresholds act on the next decision.
#[test]
fn changed_thresholds_act_on_the_next_decision() {
    let mut wred = Wred::new(3);
    assert!(!wred.decide(&spec(500, 2_000, percent(5)), Cells(400)));
    assert!(wred.decide(&spec(100, 200, percent(5)), Cells(400)));
    assert!(!wred.decide(&spec(500, 2_000, percent(5)), Cells(400)));
}

#[test]
fn not_ect_is_dropped_at_enqueue_on_lossy_queues_only() {
    let full = Cells(1_000);
    for mark_at in [MarkAt::Dequeue, MarkAt::Enqueue] {
        let drop = WredSpec { mark_at, ..spec(10, 20, percent(5)) };
        let pass = WredSpec { not_ect: NotEct::Pass, ..drop };
        let mut wred = Wred::new(0);
        assert_eq!(wred.on_arrival(&drop, full, Ecn::NotEct, false), Arrival::Drop);
        assert_eq!(wred.on_arrival(&drop, full, Ecn::NotEct, true), Arrival::Join);
        assert_eq!(wred.on_arrival(&pass, full, Ecn::NotEct, false), Arrival::Join);
        assert_eq!(wred.on_arrival(&drop, Cells(9), Ecn::NotEct, false), Arrival::Join);
    }
}

#[test]
fn an_average_follows_slowly_and_gets_there() {
    let step = WredSpec { ewma_shift: 4, ..spec(100, 100, Prob16::ONE) };
    let mut wred = Wred::new(0);
    let first = (0..).find(|_| wred.decide(&step, Cells(200)));
    // 200 * (1 - (15/16)^n) reaches 99.5 at n = 11: the 12th decision, counted from 0, is a hit.
    assert_eq!(first, Some(10));
    let last = (0..).find(|_| !wred.decide(&step, Cells(0)));
    assert!(last.is_some());
}

#[test]
fn the_slowest_average_still_reaches_a_constant_depth() {
    let step = WredSpec { ewma_shift: 15, ..spec(100, 100, Prob16::ONE) };
    let mut wred = Wred::new(0);
    let hit = (0..1_000_000).any(|_| wred.decide(&step, Cells(100)));
    assert!(hit, "rounding keeps the average below a depth that never changes");
}

#[test]
fn an_empty_queue_forgets_its_average() {
    let step = WredSpec { ewma_shift: 1, ..spec(100, 100, Prob16::ONE) };
    let mut wred = Wred::new(0);
    for _ in 0..64 {
        wred.decide(&step, Cells(1_000_000));
    }
    wred.emptied();
    assert!(!wred.decide(&step, Cells(1)));
}

proptest! {
    #[test]
    fn no_depth_or_threshold_goes_out_of_bounds(
        kmin: u32, length: u32, pmax in 0u32..=65_536, depth: u32, shift in 0u8..=15, seed: u64,
        ecn in 0usize..4, lossless: bool,
    ) {
        let spec = WredSpec {
            ewma_shift: shift,
            ..spec(kmin, kmin.saturating_add(length), Prob16::new(pmax).unwrap())
        };
        let mut wred = Wred::new(seed);
        for _ in 0..4 {
            let hit = wred.decide(&spec, Cells(depth));
            if shift == 0 {
                prop_assert!(!hit || depth >= kmin);
                prop_assert!(hit || depth < spec.kmax.0);
            }
            let fate = wred.on_arrival(&spec, Cells(depth), EVERY_ECN[ecn], lossless);
            prop_assert!(fate == Arrival::Join || ecn == 0 && !lossless);
        }
    }
}
