//! All interleavings of two FDB writers and a reader, explored by loom.

use super::*;
use loom::sync::Arc;
use loom::thread;

const AGEING: Nanos = Nanos(300_000_000_000);
const NOW: Time = Time(1_000_000_000);

fn port(n: u8) -> PortId {
    PortId::from_bits(n)
}

/// The first `count` stations that belong to one bucket.
fn neighbours(fdb: &Fdb, count: usize) -> Vec<MacAddr> {
    let mac = |n: u64| MacAddr::from_u64(0x0200_0000_0000 | n);
    let home = fdb.scatter.key(mac(0), 0).home;
    (0..).map(mac).filter(|mac| fdb.scatter.key(*mac, 0).home == home).take(count).collect()
}

fn entries(fdb: &Fdb) -> Vec<(MacAddr, PortId)> {
    fdb.iter(NOW).map(|entry| (entry.mac, entry.port)).collect()
}

/// One writer takes the second slot while the other frees the first and takes that.
#[test]
fn a_station_learned_twice_at_once_stands_in_one_slot() {
    loom::model(|| {
        let fdb = Arc::new(Fdb::new(0, AGEING, 0));
        let [first, station] = neighbours(&fdb, 2)[..] else { unreachable!() };
        fdb.learn(first, 0, port(9), NOW);
        let other = {
            let fdb = Arc::clone(&fdb);
            thread::spawn(move || {
                fdb.remove(first, 0);
                fdb.learn(station, 0, port(2), NOW);
            })
        };
        fdb.learn(station, 0, port(1), NOW);
        other.join().unwrap();
        let entries = entries(&fdb);
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!(fdb.len(), 1);
        assert!(entries[0] == (station, port(1)) || entries[0] == (station, port(2)));
    });
}

/// A slot changes hands while it is read.
#[test]
fn a_reader_never_gets_the_port_of_another_mac() {
    loom::model(|| {
        let fdb = Arc::new(Fdb::new(0, AGEING, 0));
        let [old, new] = neighbours(&fdb, 2)[..] else { unreachable!() };
        fdb.learn(old, 0, port(1), NOW);
        let writer = {
            let fdb = Arc::clone(&fdb);
            thread::spawn(move || {
                fdb.remove(old, 0);
                fdb.learn(new, 0, port(2), NOW);
            })
        };
        assert_ne!(fdb.lookup(old, 0, NOW), Some(port(2)));
        assert_ne!(fdb.lookup(new, 0, NOW), Some(port(1)));
        writer.join().unwrap();
        assert_eq!(entries(&fdb), [(new, port(2))]);
    });
}

/// An operator nails a station down while it is seen elsewhere.
#[test]
fn a_static_entry_survives_learning_at_the_same_time() {
    loom::model(|| {
        let fdb = Arc::new(Fdb::new(0, AGEING, 0));
        let [first, station] = neighbours(&fdb, 2)[..] else { unreachable!() };
        fdb.learn(first, 0, port(9), NOW);
        let operator = {
            let fdb = Arc::clone(&fdb);
            thread::spawn(move || fdb.add_static(station, 0, port(1), NOW))
        };
        fdb.remove(first, 0);
        fdb.learn(station, 0, port(2), NOW);
        assert_eq!(operator.join().unwrap(), Ok(()));
        assert_eq!(entries(&fdb), [(station, port(1))]);
    });
}
