//! The forwarding database under several writers: bounded runs, states checked while they race.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use holdfast_core::fdb::{Fdb, Learn};
use holdfast_core::ids::PortId;
use holdfast_core::units::*;
use holdfast_wire::MacAddr;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::thread;

const AGEING: Nanos = Nanos(300_000_000_000);

fn port(n: u64) -> PortId {
    PortId::new(n as u8).unwrap()
}

fn mac(n: u64) -> MacAddr {
    MacAddr::from_u64(0x0200_0000_0000 | n)
}

/// Stations that live behind one of two ports each, by their number, under constant learning,
/// removal, expiry and flushing by two writers: a reader never gets a third port.
#[test]
fn a_reader_never_gets_the_port_of_another_mac() {
    const STATIONS: u64 = 1_500;
    let fdb = Fdb::new(512, AGEING, 1);
    let of = |n: u64, side: u64| port((n % 31) * 2 + side);
    let (start, stop) = (Barrier::new(3), AtomicBool::new(false));
    thread::scope(|scope| {
        let writers = [0, 1].map(|side| {
            let (fdb, start) = (&fdb, &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..150_000u64 {
                    // Strides that meet often and never stay in step.
                    let n = round * (7 + 6 * side) % STATIONS;
                    // Each round is a third of a second: entries expire all the time.
                    let now = Time(round * 333_333_333);
                    fdb.learn(mac(n), 0, of(n, side), now);
                    if round % 5 == 0 {
                        fdb.remove(mac((n + 3) % STATIONS), 0);
                    }
                    if round % 1_000 == 0 {
                        fdb.flush_port(of(n, side));
                        fdb.sweep(now, 64);
                    }
                }
            })
        });
        let reader = scope.spawn(|| {
            start.wait();
            let mut hits = 0u64;
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                n = (n + 11) % STATIONS;
                if let Some(found) = fdb.lookup(mac(n), 0, Time(0)) {
                    hits += 1;
                    assert!(found == of(n, 0) || found == of(n, 1), "station {n} behind {found}");
                }
                for entry in fdb.iter(Time(0)).take(3) {
                    let n = entry.mac.to_u64() & 0xffff;
                    assert!(entry.port == of(n, 0) || entry.port == of(n, 1), "{entry:?}");
                }
            }
            hits
        });
        for writer in writers {
            writer.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0, "the reader saw nothing");
    });
    consistent(&fdb);
}

/// What must hold at rest: each station once, and the count right.
fn consistent(fdb: &Fdb) {
    let entries: Vec<_> = fdb.iter(Time(0)).map(|entry| (entry.mac, entry.vlan)).collect();
    let distinct: BTreeSet<_> = entries.iter().collect();
    assert_eq!(distinct.len(), entries.len(), "a station stands in two slots");
    assert_eq!(fdb.len(), entries.len());
}

/// Two writers learn and remove the same few stations in a nearly full reach: the case in which
/// one station may come to stand in two slots.
#[test]
fn a_station_that_two_writers_learn_at_once_stands_in_one_slot() {
    let fdb = Fdb::new(512, AGEING, 2);
    for n in 1_000..1_450 {
        fdb.learn(mac(n), 0, port(9), Time(0));
    }
    for round in 0..200u64 {
        let start = Barrier::new(2);
        thread::scope(|scope| {
            for side in 0..2u64 {
                let (fdb, start) = (&fdb, &start);
                scope.spawn(move || {
                    start.wait();
                    for step in 0..60 {
                        let n = (round + step) % 4;
                        fdb.learn(mac(n), 0, port(side), Time(0));
                        fdb.remove(mac((n + 1 + side) % 4), 0);
                        // Frees slots in front of the ones just taken.
                        fdb.remove(mac(1_000 + (round * 60 + step) % 450), 0);
                        fdb.learn(mac(1_000 + (round * 60 + step) % 450), 0, port(9), Time(0));
                    }
                });
            }
        });
        consistent(&fdb);
    }
}

#[test]
fn two_writers_fill_a_table_to_the_brim_and_no_further() {
    let fdb = Fdb::new(512, AGEING, 3);
    let start = Barrier::new(2);
    let new: usize = thread::scope(|scope| {
        let writers = [0u64, 1].map(|side| {
            let (fdb, start) = (&fdb, &start);
            scope.spawn(move || {
                start.wait();
                let mine = (0..5_000).map(|n| n * 2 + side);
                mine.filter(|n| fdb.learn(mac(*n), 0, port(side), Time(0)) == Learn::New).count()
            })
        });
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert_eq!(new, fdb.len());
    assert!(new <= fdb.capacity() && new >= fdb.capacity() * 9 / 10, "{new}");
    consistent(&fdb);
}
