//! The whole core by frames in memory: an input is a program of arrivals, pauses and times.
//!
//! After every step the invariants of SPEC 3.7 hold, nothing leaves that didn't come (but for CE),
//! and PFC frames name the lossless priority only. At the end everything drains: every cell is
//! free, and every frame and chunk is accounted for.

mod lab;

use holdfast_core::drop::DropReason;
use holdfast_core::ids::{PgId, QueueId};
use holdfast_core::port::Port;
use holdfast_core::units::{Cells, Nanos};
use holdfast_wire::mac_control::encode_pfc;
use holdfast_wire::{is_mac_control, parse, parse_mac_control, L3Kind, MacAddr, MacControl};
use lab::{port, station, Lab, LOSSLESS, PORTS};
use std::collections::HashSet;

/// Longest time between two steps that an input may ask for: 2^35 ns, about 34 s.
const LONGEST_BIT: u8 = 35;
/// Steps that an idle switch has to drain in, a second apart.
const DRAIN_STEPS: usize = 48;

/// The bytes of an input, as operations.
struct Program<'a>(&'a [u8]);

impl<'a> Program<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Runs the program: the first byte says how many workers there are.
pub fn target(data: &[u8]) {
    let mut program = Program(data);
    let workers = 1 + usize::from(program.byte() & 1);
    let mut run = Run { lab: Lab::new(workers), came: HashSet::new() };
    run.step(Nanos(0));
    while !program.0.is_empty() {
        run.act(&mut program);
    }
    run.drain();
}

struct Run {
    lab: Lab,
    /// What has arrived, without its ECN.
    came: HashSet<Vec<u8>>,
}

impl Run {
    fn act(&mut self, program: &mut Program<'_>) {
        let op = program.byte();
        let (kind, argument) = (op & 7, op >> 3);
        let at = usize::from(argument) % PORTS;
        match kind {
            0 => {
                let count = usize::from(program.byte());
                let bytes = program.bytes(count).to_vec();
                self.arrive(at, &bytes);
            }
            1 | 2 => {
                let (ways, class, length) = (program.byte(), program.byte(), program.byte());
                let bytes = frame(ways, class, length);
                for _ in 0..=argument / 8 {
                    self.arrive(at, &bytes);
                }
            }
            3 => {
                let (enable, time) = (program.byte(), u16::from(program.byte()) << 8);
                let mut bytes = [0; 60];
                encode_pfc(&mut bytes, MacAddr::default(), enable, &[time; 8]);
                self.arrive(at, &bytes);
            }
            4 => self.step(Nanos(1 << (program.byte() % LONGEST_BIT))),
            5 => self.lab.hold(at, argument & 16 != 0),
            6 if argument & 8 == 0 => {
                self.lab.wires[at].borrow_mut().set_up(argument & 16 != 0);
            }
            6 => self.lab.stall(at, argument & 16 != 0),
            _ => {
                self.lab.adopt(argument & 3);
                self.check_accounts();
            }
        }
    }

    fn arrive(&mut self, at: usize, bytes: &[u8]) {
        self.came.insert(without_ecn(bytes));
        self.lab.arrive(at, bytes);
    }

    fn step(&mut self, apart: Nanos) {
        self.lab.step(apart);
        self.check_wires();
        self.check_accounts();
    }

    /// What left had come, and pauses are of the lossless priority.
    fn check_wires(&mut self) {
        for wire in &self.lab.wires {
            let mut wire = wire.borrow_mut();
            for bytes in wire.sent.drain(..) {
                assert!(!is_mac_control(&bytes), "MAC control was forwarded");
                assert!(self.came.contains(&without_ecn(&bytes)), "sent what never came");
            }
            for bytes in wire.control.drain(..) {
                let MacControl::Pfc { enable, .. } = parse_mac_control(&bytes) else {
                    panic!("sent MAC control that is no PFC");
                };
                assert_eq!(enable, 1 << LOSSLESS, "a priority that isn't lossless");
            }
        }
    }

    fn ports(&self) -> impl Iterator<Item = &Port<holdfast_core::memory::MemoryPort>> {
        self.lab.workers.iter().flat_map(|worker| worker.ports())
    }

    /// SPEC 3.7, and cells by double entry: what is charged at ingress is charged at egress too.
    fn check_accounts(&self) {
        let worker = &self.lab.workers[0];
        let (mmu, profile) = (&worker.shared().mmu, worker.profile());
        let held = |port, pg| {
            let account = mmu.pg(profile, port, pg);
            Cells(account.guaranteed.0 + account.service.0 + account.headroom.0)
        };
        mmu.check(profile, held).unwrap();
        let ingress: u32 =
            (0..PORTS).flat_map(|n| PgId::all().map(move |pg| held(port(n), pg).0)).sum();
        let queues =
            self.ports().flat_map(|port| QueueId::all().map(move |id| port.queue(id).account()));
        let egress: u32 = queues.map(|account| account.occupancy().0).sum();
        let copies = worker.shared().copies.under_way();
        // With two workers frames may be under way between them.
        if self.lab.workers.len() == 1 {
            assert!(ingress <= egress, "{ingress} cells in, {egress} at the ways out");
            assert!(copies > 0 || ingress == egress, "{ingress} in, {egress} out, no copies");
        }
        for port in self.ports() {
            let counters = port.counters();
            let dropped = counters.dropped.get(DropReason::HeadroomOverflow);
            assert_eq!(counters.lossless_violations, dropped + counters.receive_overrun);
        }
    }

    /// Everything is let go and leaves; then nothing is left, and nothing is missing.
    fn drain(&mut self) {
        for n in 0..PORTS {
            self.lab.hold(n, false);
            self.lab.wires[n].borrow_mut().set_up(true);
            self.lab.stall(n, false);
        }
        for _ in 0..DRAIN_STEPS {
            self.lab.step(Nanos::millis(1_000));
            self.check_wires();
            if self.is_empty() {
                break;
            }
        }
        assert!(self.is_empty(), "the switch doesn't drain: {}", self.left());
        // Chunks go home by the next step of their worker.
        self.step(Nanos::millis(1));
        let worker = &self.lab.workers[0];
        assert!(worker.shared().mmu.idle(), "cells are left");
        for n in 0..PORTS {
            for pg in PgId::all() {
                assert!(!worker.shared().mmu.in_xoff(port(n), pg), "port {n} pg {pg} in XOFF");
            }
        }
        assert_eq!(worker.shared().copies.under_way(), 0);
        assert!(worker.shared().probe.is_free(), "a frame is being timed that is gone");
        let lent: usize = self.lab.wires.iter().map(|wire| wire.borrow().chunks_held()).sum();
        let free: usize = self
            .lab
            .workers
            .iter()
            .map(|worker| holdfast_core::io::FramePool::free_chunks(worker.pool()))
            .sum();
        assert_eq!(lent + free, self.lab.chunks, "chunks are lost or doubled");
        self.check_census();
    }

    fn is_empty(&self) -> bool {
        let queued = self.lab.workers.iter().any(|worker| worker.has_queued());
        !queued
            && self.lab.workers[0].shared().mmu.idle()
            && self.ports().all(|p| p.late_frames() == 0)
    }

    /// What is where, for a message.
    fn left(&self) -> String {
        let mut text = String::new();
        for port in self.ports() {
            let (late, ring) = (port.late_frames(), port.in_ring_bytes());
            text += &format!("port {}: {late} late, {ring} bytes in the ring;", port.id());
            for id in QueueId::all() {
                let queue = port.queue(id);
                let cells = queue.account().occupancy();
                if queue.frames() > 0 || cells > Cells::ZERO {
                    text += &format!(" queue {id}: {} frames, {cells};", queue.frames());
                }
            }
        }
        text
    }

    /// Each frame that came in left or was dropped, where none was copied.
    fn check_census(&self) {
        let sum = |of: fn(&holdfast_core::counters::PortCounters) -> u64| -> u64 {
            self.ports().map(|port| of(port.counters())).sum()
        };
        let received = sum(|counters| counters.received.frames);
        let sent = sum(|counters| counters.transmitted.frames);
        let dropped = sum(|counters| counters.dropped.iter().map(|(_, frames)| frames).sum());
        if sum(|counters| counters.flooded) == 0 {
            assert_eq!(received, sent + dropped, "frames received, sent {sent}, dropped {dropped}");
        } else {
            assert!(sent + dropped + (PORTS as u64) * received >= received);
        }
    }
}

/// A whole frame from few bytes: who to whom, class and ECN, tag, length.
fn frame(ways: u8, class: u8, length: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1600);
    let to = match ways & 7 {
        n @ 0..=2 => station(n),
        3 => MacAddr::BROADCAST,
        4 => MacAddr([0x01, 0x00, 0x5e, 0, 0, 1]),
        5 => MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x0e]),
        n => station(n),
    };
    bytes.extend_from_slice(&to.0);
    bytes.extend_from_slice(&station((ways >> 3) % 3).0);
    if ways & 0x40 != 0 {
        bytes.extend_from_slice(&[0x81, 0x00, class & 0xe0, 0]);
    }
    let (dscp, ecn) = (if class & 4 != 0 { 26 } else { class >> 3 }, class & 3);
    if ways & 0x80 == 0 {
        bytes.extend_from_slice(&[0x08, 0x00, 0x45, dscp << 2 | ecn]);
    } else {
        bytes.extend_from_slice(&[0x86, 0xdd, 0x60 | dscp >> 2, dscp << 6 | ecn << 4]);
    }
    bytes.resize(60 + 6 * usize::from(length), 0);
    bytes
}

/// The bytes with CE and without an IPv4 checksum: what marking may change is the same then.
fn without_ecn(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let Ok(headers) = parse(&bytes) else { return bytes };
    let Some(ip) = headers.l3.ip() else { return bytes };
    let at = usize::from(ip.offset);
    match headers.l3.kind() {
        L3Kind::V4 => {
            bytes[at + 1] |= 3;
            bytes[at + 10..at + 12].fill(0);
        }
        _ => bytes[at + 1] |= 0x30,
    }
    bytes
}
