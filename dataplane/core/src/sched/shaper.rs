//! A rate kept by a virtual clock (SPEC 6): exact in the long run, with bounded catch-up.

use crate::units::{BitRate, Nanos, Time, WireBytes};

/// Spaces frames so that they keep a rate: the port's speed, a queue's `min_rate` or `max_rate`.
///
/// It shows when the last frame ends at that rate, in nanoseconds and an exact fraction:
/// one byte takes `step / parts` ns, and a rest below 1 ns is carried, never rounded away. So a
/// frame may start less than 1 ns early, and no error adds up.
#[derive(Clone, Debug)]
pub struct Shaper {
    step: u64,
    parts: u64,
    /// When the next frame may start: whole ns, and what is left in 1/`parts` ns.
    next: Time,
    rest: u64,
    catch_up: Nanos,
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

impl Shaper {
    /// A shaper that holds `rate`. After a start up to `catch_up` late, frames may follow faster
    /// until the time is made up.
    pub const fn new(rate: BitRate, catch_up: Nanos) -> Self {
        let (step, parts) = Self::byte_time(rate);
        Self { step, parts, next: Time(0), rest: 0, catch_up }
    }

    /// Takes over another rate from the next frame on.
    pub fn adopt(&mut self, rate: BitRate, catch_up: Nanos) {
        let (step, parts) = Self::byte_time(rate);
        if (step, parts) != (self.step, self.parts) {
            (self.step, self.parts, self.rest) = (step, parts, 0);
        }
        self.catch_up = catch_up;
    }

    /// The nanoseconds of one byte as a reduced fraction.
    const fn byte_time(rate: BitRate) -> (u64, u64) {
        const BYTE: u64 = 8_000_000_000;
        let common = gcd(BYTE, rate.bits_per_second());
        (BYTE / common, rate.bits_per_second() / common)
    }

    /// Whether a frame may start at `now`.
    #[inline]
    pub const fn ready(&self, now: Time) -> bool {
        self.next.0 <= now.0
    }

    /// From when on a frame may start.
    #[inline]
    pub const fn ready_at(&self) -> Time {
        self.next
    }

    /// A frame started at `now`. One that starts late has the lost time made up, up to `catch_up`.
    #[inline]
    pub fn charge(&mut self, wire: WireBytes, now: Time) {
        let earliest = Time(now.0.saturating_sub(self.catch_up.0));
        if self.next < earliest {
            (self.next, self.rest) = (earliest, 0);
        }
        let total = u64::from(wire.0) * self.step + self.rest;
        let (ns, rest) = self.split(total);
        self.next = self.next.after(Nanos(ns));
        self.rest = rest;
    }

    /// Like [`charge`](Self::charge), but a frame that started before its time doesn't push the
    /// clock further ahead: what a queue had beyond its minimum isn't taken off it later.
    #[inline]
    pub fn charge_no_lead(&mut self, wire: WireBytes, now: Time) {
        if self.next > now {
            (self.next, self.rest) = (now, 0);
        }
        self.charge(wire, now);
    }

    /// Nothing waited to be sent at `now`: time that passed before it is not to be made up.
    #[inline]
    pub fn idle(&mut self, now: Time) {
        if self.next < now {
            (self.next, self.rest) = (now, 0);
        }
    }

    /// Whole nanoseconds and the rest. The usual speeds need no 64-bit division.
    #[inline]
    const fn split(&self, total: u64) -> (u64, u64) {
        if self.parts == 1 {
            (total, 0)
        } else if total <= u32::MAX as u64 && self.parts <= u32::MAX as u64 {
            let (total, parts) = (total as u32, self.parts as u32);
            ((total / parts) as u64, (total % parts) as u64)
        } else {
            (total / self.parts, total % self.parts)
        }
    }
}
