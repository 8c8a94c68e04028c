//! Pacing by a virtual clock: a frame may leave when the bits before it have left.

use crate::time::{BitRate, Nanos, Time, SECOND};

/// Bytes that a frame takes on the wire beside itself: preamble, FCS and gap (802.3).
pub const WIRE_OVERHEAD: usize = 24;

/// A virtual line of a given rate. Whoever is late may catch up by at most `slack`.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: BitRate,
    slack: Nanos,
    free_at: Time,
    /// What rounding down has left over, in bit-nanoseconds, so that no rate drifts.
    remainder: u64,
}

impl Pacer {
    /// A line that is free at once. `slack` bounds the burst after a delay of the caller.
    pub const fn new(rate: BitRate, slack: Nanos) -> Self {
        Self { rate, slack, free_at: Time(0), remainder: 0 }
    }

    /// When the next frame may start.
    pub const fn free_at(&self) -> Time {
        self.free_at
    }

    /// Takes the line for a frame of `len` bytes (overhead is added) that starts at `now`.
    pub fn take(&mut self, now: Time, len: usize) {
        let start = self.free_at.max(now.before(self.slack));
        let bits = 8 * (len + WIRE_OVERHEAD) as u64;
        let scaled = bits.saturating_mul(SECOND).saturating_add(self.remainder);
        self.remainder = scaled % self.rate.bits();
        self.free_at = start + Nanos(scaled / self.rate.bits());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(rate: &str, slack: u64) -> Pacer {
        Pacer::new(rate.parse().unwrap(), Nanos(slack))
    }

    /// Frames of `len` bytes that leave until `end` if the caller looks every `step`.
    fn frames_until(pacer: &mut Pacer, end: u64, step: u64, len: usize) -> u64 {
        let mut frames = 0;
        for now in (0..end).step_by(step as usize) {
            while pacer.free_at() <= Time(now) {
                pacer.take(Time(now), len);
                frames += 1;
            }
        }
        frames
    }

    #[test]
    fn a_line_carries_its_rate_with_all_overhead() {
        // 1 Gb/s of 1024 + 24 bytes: 119274.8 frames in a second, the last look is 50 us early.
        let frames = frames_until(&mut pacer("1G", 100_000), SECOND, 50_000, 1024);
        assert!((119_260..=119_276).contains(&frames), "{frames}");
    }

    #[test]
    fn rounding_does_not_drift() {
        // 400 Gb/s of 40 + 24 bytes: 1.28 ns each, which no whole number of nanoseconds is.
        let frames = frames_until(&mut pacer("400G", 10_000), 1_000_000, 1_000, 40);
        assert!((780_000..=790_000).contains(&frames), "{frames}");
    }

    #[test]
    fn a_late_caller_catches_up_by_the_slack_only() {
        let mut pacer = pacer("1G", 50_000);
        let late = Time(10 * SECOND);
        let mut burst = 0;
        while pacer.free_at() <= late {
            pacer.take(late, 1226);
            burst += 1;
        }
        // A frame lasts 10 us: five of the past, one of now.
        assert_eq!(burst, 6);
    }
}
