//! Rings that are taken from a port and given anew, ports that are added and removed (SPEC 9): each
//! chunk and each cell is somewhere exactly once, and the other ports notice nothing.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod lab;

use holdfast_core::drop::DropReason;
use holdfast_core::io::{FramePool, Remains};
use holdfast_core::memory::{memory_port, MemoryPort};
use holdfast_core::port::Port;
use holdfast_core::units::{Cells, Nanos};
use holdfast_wire::MacAddr;
use lab::{ipv4, port, port_spec, queue, Lab, LOSSLESS};

/// All chunks that are free or in a port's rings, by what each worker and wire says.
fn chunks(lab: &mut Lab) -> usize {
    let free: usize = lab.workers.iter().map(|worker| worker.pool().free_chunks()).sum();
    let held: usize = lab.wires.iter().map(|wire| wire.borrow().chunks_held()).sum();
    free + held
}

fn detach(lab: &mut Lab, n: u8) -> Remains {
    let (owner, now) = (lab.owner(n), lab.now);
    let rings = lab.workers[owner].detach(port(n), MemoryPort::closed(), now).unwrap();
    rings.close()
}

fn give_back(lab: &mut Lab, n: u8, remains: Remains) {
    let (owner, now) = (lab.owner(n), lab.now);
    lab.workers[owner].give_back(port(n), remains, now);
}

/// New rings for port `n`.
fn attach(lab: &mut Lab, n: u8, mac: MacAddr) {
    let (io, wire) = memory_port(512, 512);
    let owner = lab.owner(n);
    assert!(lab.workers[owner].attach(port(n), io, mac).is_ok());
    lab.wires[usize::from(n)] = wire;
}

fn lossless(lab: &mut Lab, from: u8, to: u8, count: usize) {
    (0..count).for_each(|_| lab.arrive(from, &ipv4(from, to, 26, 0, 1000)));
}

fn exchange(workers: usize) {
    let mut lab = Lab::new(workers, 4, port_spec());
    lab.teach();
    let all = chunks(&mut lab);
    // Frames wait in queues of port 2, in its TX ring and in its RX ring.
    lab.wires[2].borrow_mut().stalled = true;
    lossless(&mut lab, 0, 2, 60);
    lossless(&mut lab, 1, 2, 60);
    lab.steps(20, Nanos(2_000));
    assert!(lab.port(2).queue(queue(LOSSLESS)).frames() > 0);
    assert!(lab.port(2).in_ring_bytes() > 0);
    lossless(&mut lab, 2, 3, 5);
    let remains = detach(&mut lab, 2);
    assert!(!remains.tokens.is_empty() && !remains.chunks.is_empty());
    // Others go on meanwhile; what is sent to the port is dropped there with its reason. Its
    // station was forgotten.
    lab.teach();
    lossless(&mut lab, 0, 3, 20);
    lossless(&mut lab, 1, 2, 3);
    lab.steps(40, Nanos(50_000));
    assert_eq!(lab.sent(3).len(), 20);
    assert!(!lab.port(2).is_up());
    assert!(lab.port(2).counters().dropped.get(DropReason::PortDown) > 3);
    give_back(&mut lab, 2, remains);
    lab.steps(4, Nanos(1_000));
    lab.assert_idle();
    lab.wires[2].borrow_mut().set_up(false);
    assert_eq!(chunks(&mut lab), all, "each chunk is in one place");
    // It comes back with another address, and forwards both ways.
    let mac = MacAddr([2, 0xee, 0, 0, 0, 9]);
    attach(&mut lab, 2, mac);
    lab.steps(2, Nanos(1_000));
    assert!(lab.port(2).is_up());
    assert_eq!(lab.port(2).mac(), mac);
    lab.teach();
    lossless(&mut lab, 0, 2, 10);
    lossless(&mut lab, 2, 1, 10);
    lab.steps(40, Nanos(50_000));
    assert_eq!((lab.sent(2).len(), lab.sent(1).len()), (10, 10));
    lab.assert_idle();
    assert_eq!(chunks(&mut lab), all);
    assert_eq!(lab.port(0).counters().lossless_violations, 0);
}

#[test]
fn rings_are_exchanged_and_each_chunk_and_cell_is_somewhere_once() {
    exchange(1);
    exchange(2);
}

/// A PG that was paused because of a port that goes away is let go when its frames are gone.
#[test]
fn a_port_that_goes_lets_the_senders_to_it_go_on() {
    let mut lab = Lab::new(2, 3, port_spec());
    lab.teach();
    lab.hold(2, true);
    for _ in 0..30 {
        lossless(&mut lab, 0, 2, 60);
        lab.steps(1, Nanos(1_000));
    }
    assert!(lab.pg(0, LOSSLESS).xoff);
    let remains = detach(&mut lab, 2);
    give_back(&mut lab, 2, remains);
    lab.steps(4, Nanos(1_000));
    assert!(!lab.pg(0, LOSSLESS).xoff);
    assert_eq!(lab.pg(0, LOSSLESS).service, Cells(0));
    let last = *lab.control(0).last().unwrap();
    assert_eq!(&last[18..34], &[0; 16], "the last frame to the sender is an XON: {last:?}");
}

/// Losses of the rings before are counted, and those of new ones begin at 0 again.
#[test]
fn losses_go_on_over_an_exchange() {
    let mut lab = Lab::new(1, 2, port_spec());
    let overrun = |n| holdfast_core::io::Losses { overrun: n, ..Default::default() };
    lab.workers[0].count_losses(port(1), overrun(5));
    let remains = Remains { losses: overrun(8), ..detach(&mut lab, 1) };
    give_back(&mut lab, 1, remains);
    attach(&mut lab, 1, MacAddr::default());
    lab.workers[0].count_losses(port(1), overrun(2));
    assert_eq!(lab.port(1).counters().receive_overrun, 10);
}

/// A port that is new at worker `n` modulo workers, with the number `n`.
fn insert(lab: &mut Lab, n: u8) {
    let (io, wire) = memory_port(512, 512);
    let owner = lab.owner(n);
    let profile = std::sync::Arc::clone(lab.workers[owner].profile());
    let frames = (profile.spec().total.0 + profile.spec().flood_limit) as usize;
    let spec = profile.port(port(n)).unwrap();
    lab.workers[owner].insert(Port::new(port(n), MacAddr::default(), io, spec, frames, 7));
    lab.wires[usize::from(n)] = wire;
}

/// Removes port `n` as the switch does: what it returns was let go by everybody.
fn remove(lab: &mut Lab, n: u8) {
    let (owner, now) = (lab.owner(n), lab.now);
    let mut removed = lab.workers[owner].remove(port(n), now).unwrap();
    let remains = removed.take_io(MemoryPort::closed()).close();
    drop(lab.workers[owner].take_back(removed, remains, now));
}

/// In the middle of a pause: the peer gets an XON, and frames of it that wait at others go on.
#[test]
fn a_removed_port_lets_its_peer_go_and_its_frames_arrive() {
    let mut lab = Lab::new(2, 3, port_spec());
    lab.teach();
    let all = chunks(&mut lab);
    lab.hold(2, true);
    for _ in 0..30 {
        lossless(&mut lab, 0, 2, 60);
        lab.steps(1, Nanos(1_000));
    }
    assert!(lab.pg(0, LOSSLESS).xoff);
    let waiting = lab.port(2).queue(queue(LOSSLESS)).frames();
    remove(&mut lab, 0);
    let last = *lab.control(0).last().unwrap();
    assert_eq!(&last[18..34], &[0; 16], "an XON: {last:?}");
    lab.hold(2, false);
    lab.steps(4_000, Nanos(2_000));
    let in_ring = lab.sent(2).len();
    assert!(in_ring >= waiting, "{in_ring} of {waiting}");
    insert(&mut lab, 0);
    lab.steps(2, Nanos(1_000));
    lab.assert_idle();
    assert_eq!(chunks(&mut lab), all);
    assert_eq!(lab.port(0).counters().received.frames, 0, "it begins anew");
}

/// A thousand times (fault 36 of the public reports), with frames everywhere each time.
#[test]
fn a_thousand_ports_of_one_number_leave_nothing_behind() {
    let mut lab = Lab::new(2, 3, port_spec());
    lab.teach();
    let all = chunks(&mut lab);
    let mut arrived = 0;
    for cycle in 0..1_000u32 {
        lab.wires[2].borrow_mut().stalled = cycle % 3 == 0;
        lossless(&mut lab, 2, 1, 3);
        lossless(&mut lab, 0, 2, 3);
        lab.steps(2, Nanos(500));
        lossless(&mut lab, 2, 0, 1);
        lossless(&mut lab, 0, 1, 2);
        remove(&mut lab, 2);
        lab.steps(2, Nanos(20_000));
        insert(&mut lab, 2);
        lab.teach();
        lab.steps(2, Nanos(20_000));
        arrived += lab.sent(1).len();
    }
    lab.steps(100, Nanos(20_000));
    arrived += lab.sent(1).len();
    lab.assert_idle();
    assert_eq!(chunks(&mut lab), all);
    assert!(arrived >= 5_000 - 10, "{arrived} of what port 2 and port 0 sent to port 1");
}
