//! One FDB entry in 64 bits, and the bijection that makes it fit.

use super::{REACH, SLOTS};
use crate::ids::{PortId, MAX_PORTS};
use holdfast_wire::MacAddr;

/// Bits of an address and a VLAN together.
const KEY_BITS: u32 = 48 + 12;
const KEY_MASK: u64 = (1 << KEY_BITS) - 1;

const STATIC: u64 = 1 << 1;
const DISTANCE_AT: u32 = 2;
const PORT_AT: u32 = 4;
const PORT_MASK: u64 = (MAX_PORTS as u64 - 1) << PORT_AT;
const REST_AT: u32 = 10;
/// Fewest buckets, as a power of two: what the place must tell, since the word has no room for it.
const LEAST_HOME_BITS: u32 = KEY_BITS + REST_AT - u64::BITS;

const _: () = assert!(MAX_PORTS == 1 << (REST_AT - PORT_AT), "a port must fit into its field");
const _: () = assert!(REACH == 1 << (PORT_AT - DISTANCE_AT), "so must a distance");
const _: () = assert!(*super::CAPACITY.start() >= SLOTS << LEAST_HOME_BITS, "and the rest");

/// An address and VLAN, scattered: the bucket it belongs to, and all that the bucket doesn't say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) home: usize,
    rest: u64,
}

/// An entry, or 0 for a free slot: used, static, distance from its home bucket, port, rest of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

impl Word {
    pub(super) const FREE: Self = Self(0);

    pub(super) const fn new(key: Key, distance: usize, port: PortId, is_static: bool) -> Self {
        let entry = Self::pattern(key, distance) | (port.number() as u64) << PORT_AT;
        Self(if is_static { entry | STATIC } else { entry })
    }

    /// What every word of `key` at `distance` has, whatever its port.
    const fn pattern(key: Key, distance: usize) -> u64 {
        key.rest << REST_AT | (distance as u64) << DISTANCE_AT | 1
    }

    #[inline]
    pub(super) const fn is_of(self, key: Key, distance: usize) -> bool {
        self.0 & !(PORT_MASK | STATIC) == Self::pattern(key, distance)
    }

    #[inline]
    pub(super) const fn port(self) -> PortId {
        PortId::from_bits((self.0 >> PORT_AT) as u8)
    }

    /// The same station behind another port.
    pub(super) const fn moved_to(self, port: PortId) -> Self {
        Self(self.0 & !PORT_MASK | (port.number() as u64) << PORT_AT)
    }

    /// The same entry, static.
    pub(super) const fn made_static(self) -> Self {
        Self(self.0 | STATIC)
    }

    pub(super) const fn is_static(self) -> bool {
        self.0 & STATIC != 0
    }

    pub(super) const fn is_free(self) -> bool {
        self.0 == Self::FREE.0
    }

    /// How many buckets before its own the entry's home lies.
    pub(super) const fn distance(self) -> usize {
        (self.0 >> DISTANCE_AT) as usize % REACH
    }

    pub(super) const fn rest(self) -> u64 {
        self.0 >> REST_AT
    }
}

/// A seeded bijection of 60 bits: multiply, fold the high half down, and once more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scatter {
    factors: [u64; 2],
    inverses: [u64; 2],
    rest_bits: u32,
}

/// The number that undoes a multiplication by the odd `factor`, modulo 2^64 (Newton's iteration:
/// each step doubles the correct low bits, of which `factor` itself has three).
const fn inverse(factor: u64) -> u64 {
    let mut inverse = factor;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(factor.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

impl Scatter {
    /// For a table of 2^`home_bits` buckets.
    pub(super) const fn new(seed: u64, home_bits: u32) -> Self {
        let first = (seed ^ 0x9fb2_1c65_1e98_df25) | 1;
        let second = (seed.rotate_left(32) ^ 0xd6e8_feb8_6659_fd93) | 1;
        Self {
            factors: [first, second],
            inverses: [inverse(first), inverse(second)],
            rest_bits: KEY_BITS - home_bits,
        }
    }

    #[inline]
    pub(super) const fn key(&self, mac: MacAddr, vlan: u16) -> Key {
        let mut bits = mac.to_u64() | (vlan as u64 & 0xfff) << 48;
        bits = bits.wrapping_mul(self.factors[0]) & KEY_MASK;
        bits ^= bits >> (KEY_BITS / 2);
        bits = bits.wrapping_mul(self.factors[1]) & KEY_MASK;
        bits ^= bits >> (KEY_BITS / 2);
        bits = bits.wrapping_mul(self.factors[0]) & KEY_MASK;
        Key { home: (bits >> self.rest_bits) as usize, rest: bits & ((1 << self.rest_bits) - 1) }
    }

    /// The address and VLAN whose key has this home and rest: [`Scatter::key`] backwards.
    pub(super) const fn station(&self, home: usize, rest: u64) -> (MacAddr, u16) {
        let mut bits = (home as u64) << self.rest_bits | rest;
        bits = bits.wrapping_mul(self.inverses[0]) & KEY_MASK;
        bits ^= bits >> (KEY_BITS / 2);
        bits = bits.wrapping_mul(self.inverses[1]) & KEY_MASK;
        bits ^= bits >> (KEY_BITS / 2);
        bits = bits.wrapping_mul(self.inverses[0]) & KEY_MASK;
        (MacAddr::from_u64(bits), (bits >> 48) as u16)
    }
}
