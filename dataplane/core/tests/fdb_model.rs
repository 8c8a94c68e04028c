//! The forwarding database (SPEC 7), sentence by sentence, and against a map.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_core::fdb::{Fdb, FdbError, Learn};
use holdfast_core::ids::PortId;
use holdfast_core::units::*;
use holdfast_wire::MacAddr;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const AGEING: Nanos = Nanos(300_000_000_000);

fn port(n: u8) -> PortId {
    PortId::new(n).unwrap()
}

/// The station with this number: a unicast address.
fn mac(n: u64) -> MacAddr {
    MacAddr::from_u64(0x0200_0000_0000 | n)
}

fn at(seconds: u64) -> Time {
    Time(seconds * 1_000_000_000)
}

fn fdb() -> Fdb {
    Fdb::new(512, AGEING, 42)
}

#[test]
fn a_station_is_found_where_it_was_learned() {
    let fdb = fdb();
    assert_eq!(fdb.lookup(mac(1), 0, at(0)), None);
    assert_eq!(fdb.learn(mac(1), 0, port(63), at(0)), Learn::New);
    assert_eq!(fdb.learn(mac(1), 0, port(63), at(0)), Learn::Known);
    assert_eq!(fdb.lookup(mac(1), 0, at(0)), Some(port(63)));
    assert_eq!(fdb.len(), 1);
}

#[test]
fn a_vlan_is_part_of_the_address() {
    let fdb = fdb();
    fdb.learn(mac(1), 10, port(1), at(0));
    fdb.learn(mac(1), 4_095, port(2), at(0));
    assert_eq!(fdb.lookup(mac(1), 10, at(0)), Some(port(1)));
    assert_eq!(fdb.lookup(mac(1), 4_095, at(0)), Some(port(2)));
    assert_eq!(fdb.lookup(mac(1), 11, at(0)), None);
}

#[test]
fn a_mac_moves_at_once() {
    let fdb = fdb();
    fdb.learn(mac(1), 0, port(1), at(0));
    assert_eq!(fdb.learn(mac(1), 0, port(2), at(0)), Learn::Moved);
    assert_eq!(fdb.lookup(mac(1), 0, at(0)), Some(port(2)));
    assert_eq!(fdb.len(), 1);
}

#[test]
fn a_station_ages_after_300_s_without_a_frame() {
    let fdb = fdb();
    fdb.learn(mac(1), 0, port(1), at(5));
    fdb.learn(mac(1), 0, port(1), at(100));
    assert_eq!(fdb.lookup(mac(1), 0, at(400)), Some(port(1)));
    assert_eq!(fdb.lookup(mac(1), 0, at(401)), None);
    assert_eq!(fdb.learn(mac(1), 0, port(1), at(401)), Learn::New);
    assert_eq!(fdb.lookup(mac(1), 0, at(401)), Some(port(1)));
}

#[test]
fn sweeping_frees_expired_entries_a_few_slots_at_a_time() {
    let fdb = fdb();
    for n in 0..100 {
        fdb.learn(mac(n), 0, port(1), at(if n < 60 { 0 } else { 200 }));
    }
    assert_eq!(fdb.sweep(at(300), 512), 0);
    let mut swept = 0;
    for _ in 0..512 / 64 {
        swept += fdb.sweep(at(301), 64);
    }
    assert_eq!((swept, fdb.len()), (60, 40));
    assert_eq!(fdb.iter(at(301)).count(), 40);
}

#[test]
fn group_addresses_are_never_learned() {
    let fdb = fdb();
    for group in [MacAddr::BROADCAST, MacAddr::MAC_CONTROL] {
        assert_eq!(fdb.learn(group, 0, port(1), at(0)), Learn::Refused);
        assert_eq!(fdb.add_static(group, 0, port(1), at(0)), Err(FdbError::Group { mac: group }));
    }
    assert!(fdb.is_empty());
}

#[test]
fn a_static_entry_neither_ages_nor_moves() {
    let fdb = fdb();
    fdb.learn(mac(1), 0, port(1), at(0));
    assert_eq!(fdb.add_static(mac(1), 0, port(2), at(0)), Ok(()));
    assert_eq!(fdb.len(), 1);
    assert_eq!(fdb.learn(mac(1), 0, port(1), at(1)), Learn::Refused);
    assert_eq!(fdb.learn(mac(1), 0, port(2), at(1)), Learn::Known);
    assert_eq!(fdb.sweep(at(1_000_000), 512), 0);
    assert_eq!(fdb.lookup(mac(1), 0, at(1_000_000)), Some(port(2)));
    assert_eq!(fdb.add_static(mac(1), 0, port(3), at(0)), Ok(()));
    assert_eq!(fdb.lookup(mac(1), 0, at(0)), Some(port(3)));
    assert!(fdb.remove(mac(1), 0));
    assert!(!fdb.remove(mac(1), 0));
    assert_eq!(fdb.lookup(mac(1), 0, at(0)), None);
}

#[test]
fn a_port_that_goes_down_loses_what_was_learned_behind_it_and_nothing_else() {
    let fdb = fdb();
    for n in 0..40 {
        fdb.learn(mac(n), 0, port((n % 4) as u8), at(0));
    }
    fdb.add_static(mac(100), 0, port(1), at(0)).unwrap();
    assert_eq!(fdb.flush_port(port(1)), 10);
    assert_eq!(fdb.len(), 31);
    for n in 0..40 {
        let known = fdb.lookup(mac(n), 0, at(0));
        assert_eq!(known, (n % 4 != 1).then(|| port((n % 4) as u8)));
    }
    assert_eq!(fdb.lookup(mac(100), 0, at(0)), Some(port(1)));
}

#[test]
fn a_flood_of_new_macs_evicts_nobody() {
    let fdb = fdb();
    for n in 0..64 {
        assert_eq!(fdb.learn(mac(n), 0, port(1), at(0)), Learn::New);
    }
    let mut full = 0;
    for n in 1_000..6_000 {
        match fdb.learn(mac(n), 0, port(2), at(0)) {
            Learn::New => {}
            Learn::Full => full += 1,
            other => panic!("{other:?}"),
        }
        assert!(fdb.len() <= fdb.capacity());
    }
    assert_eq!(fdb.len() + full, 64 + 5_000);
    assert!(fdb.len() >= fdb.capacity() * 9 / 10, "{:?}", fdb);
    assert!((0..64).all(|n| fdb.lookup(mac(n), 0, at(0)) == Some(port(1))));
    let error = fdb.add_static(mac(9_999_999), 0, port(1), at(0));
    assert!(error.is_ok() || matches!(error, Err(FdbError::Full { capacity: 512, .. })));
}

#[test]
fn expired_entries_give_way_to_new_ones_without_a_sweep() {
    let fdb = fdb();
    for n in 0..6_000 {
        fdb.learn(mac(n), 0, port(1), at(0));
    }
    let learned = (10_000..10_100)
        .filter(|n| fdb.learn(mac(*n), 0, port(2), at(301)) == Learn::New)
        .filter(|n| fdb.lookup(mac(*n), 0, at(301)) == Some(port(2)));
    assert_eq!(learned.count(), 100);
    assert!(fdb.len() <= fdb.capacity());
}

#[test]
fn capacity_is_a_power_of_two_within_bounds() {
    let capacity = |wanted| Fdb::new(wanted, AGEING, 0).capacity();
    assert_eq!([capacity(0), capacity(513), capacity(8_192)], [512, 1_024, 8_192]);
    assert_eq!(capacity(usize::MAX), 1 << 20);
}

#[test]
fn half_a_table_of_stations_fits_whatever_their_numbers() {
    for seed in 0..8 {
        for stride in [1, 0x100, 0x1_0000, 0x1_0000_0000] {
            let fdb = Fdb::new(8_192, AGEING, seed);
            let full = (0..4_096)
                .filter(|n| {
                    fdb.learn(mac(n % 256 * stride + n / 256), (n / 256) as u16, port(1), at(0))
                        == Learn::Full
                })
                .count();
            assert_eq!(full, 0, "seed {seed}, stride {stride:#x}");
        }
    }
}

#[test]
fn listing_shows_what_was_learned() {
    let fdb = Fdb::new(1_024, AGEING, 7);
    fdb.learn(mac(0xab_cdef), 7, port(9), at(10));
    fdb.add_static(mac(0xff_ffff_ffff), 4_094, port(0), at(10)).unwrap();
    let mut entries: Vec<_> = fdb.iter(at(14)).collect();
    entries.sort_by_key(|entry| entry.vlan);
    assert_eq!(entries.len(), 2);
    let [learned, fixed] = [entries[0], entries[1]];
    assert_eq!((learned.mac, learned.vlan, learned.port), (mac(0xab_cdef), 7, port(9)));
    assert_eq!((learned.is_static, learned.age), (false, Nanos(4_000_000_000)));
    assert_eq!((fixed.mac, fixed.vlan, fixed.port), (mac(0xff_ffff_ffff), 4_094, port(0)));
    assert_eq!((fixed.is_static, fixed.age), (true, Nanos(0)));
}

#[derive(Debug, Clone)]
enum Op {
    Learn(u64, u16, u8),
    AddStatic(u64, u16, u8),
    Remove(u64, u16),
    Flush(u8),
    Sweep(usize),
    Wait(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let station = || (0u64..40, 0u16..3);
    let op = prop_oneof![
        12 => (station(), 0u8..4).prop_map(|((n, vlan), port)| Op::Learn(n, vlan, port)),
        1 => (station(), 0u8..4).prop_map(|((n, vlan), port)| Op::AddStatic(n, vlan, port)),
        2 => station().prop_map(|(n, vlan)| Op::Remove(n, vlan)),
        1 => (0u8..4).prop_map(Op::Flush),
        2 => (0usize..600).prop_map(Op::Sweep),
        3 => (0u64..200).prop_map(Op::Wait),
    ];
    proptest::collection::vec(op, 1..300)
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Known {
    port: u8,
    seen: u64,
    is_static: bool,
}

impl Known {
    fn lives(&self, now: u64) -> bool {
        self.is_static || now - self.seen <= 300
    }
}

proptest! {
    #[test]
    fn one_writer_matches_a_map(seed: u64, ops in ops()) {
        let fdb = Fdb::new(512, AGEING, seed);
        let mut map: BTreeMap<(u64, u16), Known> = BTreeMap::new();
        let mut now = 0;
        for op in ops {
            match op {
                Op::Learn(n, vlan, to) => {
                    let old = map.get(&(n, vlan)).copied().filter(|known| known.lives(now));
                    let expected = match old {
                        None => Learn::New,
                        Some(known) if known.port == to => Learn::Known,
                        Some(known) if known.is_static => Learn::Refused,
                        Some(_) => Learn::Moved,
                    };
                    prop_assert_eq!(fdb.learn(mac(n), vlan, port(to), at(now)), expected);
                    if !old.is_some_and(|known| known.is_static) {
                        map.insert((n, vlan), Known { port: to, seen: now, is_static: false });
                    }
                }
                Op::AddStatic(n, vlan, to) => {
                    prop_assert_eq!(fdb.add_static(mac(n), vlan, port(to), at(now)), Ok(()));
                    map.insert((n, vlan), Known { port: to, seen: now, is_static: true });
                }
                Op::Remove(n, vlan) => {
                    let lived = map.remove(&(n, vlan)).is_some_and(|known| known.lives(now));
                    prop_assert!(fdb.remove(mac(n), vlan) || !lived);
                }
                Op::Flush(down) => {
                    fdb.flush_port(port(down));
                    map.retain(|_, known| known.is_static || known.port != down);
                }
                Op::Sweep(budget) => {
                    fdb.sweep(at(now), budget);
                }
                Op::Wait(seconds) => now += seconds,
            }
            for n in 0..40 {
                for vlan in 0..3 {
                    let known = map.get(&(n, vlan)).filter(|known| known.lives(now));
                    let found = fdb.lookup(mac(n), vlan, at(now));
                    prop_assert_eq!(found, known.map(|known| port(known.port)));
                }
            }
        }
        map.retain(|_, known| known.lives(now));
        let listed: BTreeSet<_> = fdb.iter(at(now)).map(|e| (e.mac, e.vlan, e.port)).collect();
        let expected: BTreeSet<_> =
            map.iter().map(|((n, vlan), known)| (mac(*n), *vlan, port(known.port))).collect();
        prop_assert_eq!(listed, expected);
        while fdb.sweep(at(now), 512) > 0 {}
        prop_assert_eq!(fdb.len(), map.len());
    }

    #[test]
    fn every_address_is_listed_as_it_was_learned(
        seed: u64, size in 9u32..=16, bits in 0u64..1 << 48, vlan in 0u16..4_096, to in 0u8..64,
    ) {
        let fdb = Fdb::new(1 << size, AGEING, seed);
        let mac = MacAddr::from_u64(bits & !(1 << 40));
        fdb.learn(mac, vlan, port(to), at(0));
        let listed: Vec<_> = fdb.iter(at(0)).map(|e| (e.mac, e.vlan, e.port)).collect();
        prop_assert_eq!(listed, [(mac, vlan, port(to))]);
    }
}
