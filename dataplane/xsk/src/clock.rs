//! The clock of the live switch: what `Worker::step` is called with and `kick` answers by.

use holdfast_core::units::Time;
use nix::time::{clock_gettime, ClockId};

/// Nanoseconds of `CLOCK_MONOTONIC`, which no clock adjustment makes jump.
#[inline]
pub fn now() -> Time {
    // The kernel has this clock always; 0 stands for a machine where it hasn't.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Time(0), |at| {
        Time((at.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(at.tv_nsec() as u64))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_never_goes_back() {
        let mut last = super::now();
        for _ in 0..1000 {
            let now = super::now();
            assert!(now >= last);
            last = now;
        }
    }
}
