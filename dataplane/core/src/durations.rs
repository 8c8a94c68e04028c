//! How often something took how long: a histogram of a fixed size.

use crate::units::Nanos;

/// Counts of durations, in power-of-two microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// Those below 2^n us, in the bucket of the smallest n; the last one also counts all longer
    /// ones.
    pub below: [u64; Self::BUCKETS],
    /// Their sum in nanoseconds.
    pub total: u64,
    /// The longest, in nanoseconds.
    pub longest: u64,
}

impl Durations {
    /// Buckets: below 1 us, 2 us, ... 16.4 ms, and longer.
    pub const BUCKETS: usize = 16;

    /// The bucket of a duration.
    pub const fn bucket(time: Nanos) -> usize {
        let bits = (u64::BITS - (time.0 / 1_000).leading_zeros()) as usize;
        if bits < Self::BUCKETS {
            bits
        } else {
            Self::BUCKETS - 1
        }
    }

    /// Counts one.
    pub fn count(&mut self, time: Nanos) {
        self.below[Self::bucket(time)] += 1;
        self.total += time.0;
        self.longest = self.longest.max(time.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_powers_of_two_microseconds() {
        let mut durations = Durations::default();
        for nanos in [0, 999, 1_000, 1_999, 2_000, 40_000_000] {
            durations.count(Nanos(nanos));
        }
        assert_eq!(durations.below[..3], [2, 2, 1]);
        assert_eq!(durations.below[Durations::BUCKETS - 1], 1);
        assert_eq!(durations.longest, 40_000_000);
    }
}
