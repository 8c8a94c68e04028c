//! WRED of one egress queue (SPEC 5): whether a frame is marked, by depth and a seeded generator.
//!
//! The bytes are changed by [`holdfast_wire::ip::mark_ce`], by whoever holds the frame.

use crate::profile::{MarkAt, NotEct, WredSpec};
use crate::units::Cells;
use holdfast_wire::ip::Ecn;

/// Fraction bits of the averaged depth: fine enough for the smallest weight, 1/2^15.
const FRACTION: u32 = 24;

/// The marking state of one queue: its generator and its averaged depth.
#[derive(Clone, Debug)]
pub struct Wred {
    random: SplitMix,
    /// Averaged depth in 2^-24 cells.
    average: u64,
}

/// What becomes of a frame that arrives at its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It joins unchanged.
    Join,
    /// It joins and is to be marked CE.
    JoinMarked,
    /// It is dropped (`DropReason::Wred`).
    Drop,
}

impl Wred {
    /// A queue's generator; the same seed decides the same.
    pub const fn new(seed: u64) -> Self {
        Self { random: SplitMix(seed), average: 0 }
    }

    /// Whether a frame that finds `depth` is hit: cells queued and in the TX ring, itself included.
    ///
    /// p = 0 below Kmin, Pmax * (depth - Kmin) / (Kmax - Kmin) up to Kmax, 1 from there on. Exact:
    /// one draw out of 65536 * (Kmax - Kmin), of which Pmax * (depth - Kmin) are hits.
    #[inline]
    pub fn decide(&mut self, spec: &WredSpec, depth: Cells) -> bool {
        let depth = self.averaged(spec.ewma_shift, depth);
        if depth < spec.kmin {
            return false;
        }
        if depth >= spec.kmax {
            return true;
        }
        let above = u64::from(depth.saturating_sub(spec.kmin).0);
        let length = u64::from(spec.kmax.saturating_sub(spec.kmin).0);
        let hits = u64::from(spec.pmax.units()) * above;
        hits > 0 && self.random.below(length << 16) < hits
    }

    /// Decides over a frame that arrives: `ecn` as its header says, Not-ECT for what isn't IP.
    ///
    /// Not-ECT is decided here whatever `mark_at` says, and only lossy queues drop it.
    #[inline(always)]
    pub fn on_arrival(
        &mut self,
        spec: &WredSpec,
        depth: Cells,
        ecn: Ecn,
        lossless: bool,
    ) -> Arrival {
        let (decides, hit) = match ecn {
            Ecn::NotEct => (!lossless && spec.not_ect == NotEct::Drop, Arrival::Drop),
            _ => (spec.mark_at == MarkAt::Enqueue, Arrival::JoinMarked),
        };
        if decides && self.decide(spec, depth) {
            hit
        } else {
            Arrival::Join
        }
    }

    /// Whether a frame that is about to leave is to be marked, as far as it can be.
    #[inline]
    pub fn on_departure(&mut self, spec: &WredSpec, depth: Cells) -> bool {
        spec.mark_at == MarkAt::Dequeue && self.decide(spec, depth)
    }

    /// The depth as it was averaged last, rounded to the nearest cell.
    pub const fn average(&self) -> Cells {
        Cells(((self.average + (1 << (FRACTION - 1))) >> FRACTION) as u32)
    }

    /// The queue is empty: its average starts at 0 again, or the first frame after a long silence
    /// would pay for a congestion long gone.
    #[inline]
    pub fn emptied(&mut self) {
        self.average = 0;
    }

    /// The depth that counts: `depth` itself, or the average rounded to the nearest cell.
    #[inline]
    fn averaged(&mut self, shift: u8, depth: Cells) -> Cells {
        let exact = u64::from(depth.0) << FRACTION;
        let shift = u32::from(shift.min(15));
        if exact >= self.average {
            self.average += (exact - self.average) >> shift;
        } else {
            self.average -= (self.average - exact) >> shift;
        }
        Cells(((self.average + (1 << (FRACTION - 1))) >> FRACTION) as u32)
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): one addition and three mixing steps a number.
#[derive(Clone, Debug)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, each as likely (Lemire, 2019): draws whose low half falls into the
    /// part of 2^64 that `bound` doesn't divide are drawn again.
    fn below(&mut self, bound: u64) -> u64 {
        loop {
            let product = u128::from(self.next()) * u128::from(bound);
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_a_bound_are_equally_likely() {
        // Without drawing again every third number of this bound would come twice as often.
        let bound = 3 << 62;
        let mut random = SplitMix(1);
        let mut counts = [0u32; 3];
        for _ in 0..300_000 {
            let number = random.below(bound);
            assert!(number < bound);
            counts[(number % 3) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (99_000..101_000).contains(count)), "{counts:?}");
    }

    /// The first numbers of SplitMix64 with seed 1234567, as its authors' reference gives them.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = SplitMix(1_234_567);
        let first = [random.next(), random.next(), random.next()];
        let reference =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, reference);
    }
}
