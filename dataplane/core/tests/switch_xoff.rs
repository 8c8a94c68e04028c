//! XOFF and XON to the cell, on a whole switch in memory (SPEC 3.2 to 3.4).
#![cfg(not(loom))]
#![allow(clippy::expect_used)]

mod lab;

use holdfast_core::drop::DropReason;
use holdfast_core::mmu::EdgeKind;
use holdfast_core::profile::*;
use holdfast_core::units::*;
use lab::*;

const TINY: usize = 64;
const STEP: Nanos = Nanos(1_000);

/// One-cell frames from port 0 to port 1, so many, 64 at a time.
fn send(lab: &mut Lab, frames: usize, len: usize) {
    for sent in 0..frames {
        lab.arrive(0, &ipv4(0, 1, 26, 2, len));
        if sent % 64 == 63 {
            lab.steps(1, STEP);
        }
    }
    lab.steps(4, STEP);
}

fn drained(lab: &mut Lab) {
    lab.hold(1, false);
    lab.steps(20_000, Nanos(10_000));
    lab.assert_idle();
}

fn held(workers: usize, change: impl FnOnce(&mut PgSpec)) -> Lab {
    let mut spec = port_spec();
    change(&mut spec.pgs[pg(LOSSLESS)]);
    let mut lab = Lab::new(workers, 2, spec);
    lab.teach();
    lab.hold(1, true);
    lab
}

/// Occupancies at the first edge of a kind: Guaranteed, Service, Headroom.
fn at_edge(lab: &Lab, kind: EdgeKind) -> (u32, u32, u32) {
    let edges = lab.edges(0, LOSSLESS);
    let edge = edges.iter().find(|edge| edge.kind == kind).expect("no such edge");
    (edge.guaranteed.0, edge.service.0, edge.headroom.0)
}

#[test]
fn pfc_xoff_limit_and_xon_hysteresis_one_cell_frames() {
    for workers in [1, 2] {
        for (mode, xon) in [("offset", Xon::Offset(Cells(300))), ("abs", Xon::Absolute(Cells(700)))]
        {
            let mut lab = held(workers, |pg| pg.xon = xon);
            send(&mut lab, 1035, TINY);
            assert!(lab.edges(0, LOSSLESS).is_empty(), "{workers} {mode}: one cell too early");
            send(&mut lab, 1, TINY);
            assert_eq!(at_edge(&lab, EdgeKind::Xoff), (36, 1000, 0), "{workers} workers, {mode}");
            send(&mut lab, 100, TINY);
            assert_eq!(lab.pg(0, LOSSLESS).headroom, Cells(100));
            drained(&mut lab);
            assert_eq!(at_edge(&lab, EdgeKind::Xon), (36, 700, 0), "{workers} workers, {mode}");
            assert_eq!(lab.edges(0, LOSSLESS).len(), 2);
        }
    }
}

#[test]
fn pfc_xoff_limit_of_frames_of_six_cells() {
    for workers in [1, 2] {
        let mut lab = held(workers, |_| {});
        send(&mut lab, 200, 1500);
        // floor(36/6)*6 + ceil(1000/6)*6 (SPEC 3.3)
        assert_eq!(at_edge(&lab, EdgeKind::Xoff), (36, 1002, 0));
        drained(&mut lab);
        let (_, service, headroom) = at_edge(&lab, EdgeKind::Xon);
        assert_eq!(headroom, 0);
        assert!((695..=700).contains(&service), "resumed at {service}");
    }
}

#[test]
fn hdrm_size_kept_exactly_then_one_violation() {
    for workers in [1, 2] {
        let mut lab = held(workers, |pg| pg.limit = Limit::Static(Cells(1_400)));
        let kept = 36 + 1_400 + 512;
        send(&mut lab, kept, TINY);
        assert_eq!(lab.port(0).counters().lossless_violations, 0);
        let pg_now = lab.pg(0, LOSSLESS);
        let held = (pg_now.guaranteed.0, pg_now.service.0, pg_now.headroom.0);
        assert_eq!(held, (36, 1_400, 512));
        send(&mut lab, 1, TINY);
        let counters = lab.port(0).counters();
        assert_eq!(counters.lossless_violations, 1);
        assert_eq!(counters.dropped.get(DropReason::HeadroomOverflow), 1);
        assert_eq!(counters.pgs[pg(LOSSLESS)].dropped.get(DropReason::HeadroomOverflow), 1);
        let egress = lab.port(1).counters();
        assert!(egress.dropped.iter().all(|(_, n)| n == 0), "nothing is dropped at egress");
        drained(&mut lab);
        assert_eq!(lab.sent(1).len(), kept);
    }
}

#[test]
fn xon_comes_although_some_frames_wait_behind_a_held_queue() {
    for workers in [1, 2] {
        // Port 1 is held, port 2 is not; both hold frames of the same PG.
        let mut lab = Lab::new(workers, 3, port_spec());
        lab.teach();
        lab.hold(1, true);
        lab.hold(2, true);
        for n in 0..1_100 {
            lab.arrive(0, &ipv4(0, if n % 4 == 0 { 1 } else { 2 }, 26, 2, TINY));
            lab.steps(1, STEP);
        }
        assert!(lab.pg(0, LOSSLESS).xoff);
        lab.hold(2, false);
        lab.steps(5_000, Nanos(10_000));
        let pg_now = lab.pg(0, LOSSLESS);
        assert!(!pg_now.xoff, "275 cells behind port 1 are below the resume level");
        assert_eq!(pg_now.guaranteed.0 + pg_now.service.0, 275);
        assert_eq!(lab.edges(0, LOSSLESS).len(), 2, "one pause, one resume, no storm");
        drained(&mut lab);
    }
}

#[test]
fn pause_frames_name_only_priority_3_and_never_reach_another_port() {
    let mut lab = held(1, |_| {});
    send(&mut lab, 1_100, TINY);
    drained(&mut lab);
    let frames = lab.control(0);
    assert!(frames.len() >= 2);
    for frame in &frames {
        assert_eq!(frame[..6], [1, 0x80, 0xc2, 0, 0, 1]);
        assert_eq!(frame[6..12], [2, 0xff, 0, 0, 0, 0], "the port's own address");
        assert_eq!(frame[12..18], [0x88, 0x08, 1, 1, 0, 8]);
    }
    assert_eq!(frames[0][24..26], [0xff, 0xff]);
    assert_eq!(frames[frames.len() - 1][24..26], [0, 0], "the last one resumes");
    assert!(lab.control(1).is_empty());
}

#[test]
fn a_new_threshold_acts_at_once_in_both_directions() {
    for workers in [1, 2] {
        let mut lab = held(workers, |_| {});
        send(&mut lab, 500, TINY);
        assert!(!lab.pg(0, LOSSLESS).xoff);
        lab.apply(|spec| {
            let account = &mut spec.ports[0].pgs[pg(LOSSLESS)];
            (account.xoff, account.xon) = (Xoff::At(Cells(400)), Xon::Offset(Cells(100)));
        });
        assert!(lab.pg(0, LOSSLESS).xoff, "lowered below the occupancy: pauses now");
        lab.apply(|spec| spec.ports[0].pgs[pg(LOSSLESS)] = lossless_pg());
        lab.steps(1, STEP);
        assert!(!lab.pg(0, LOSSLESS).xoff, "raised: resumes as soon as the exit rule holds");
        lab.apply(|spec| {
            let account = &mut spec.ports[0].pgs[pg(LOSSLESS)];
            (account.xoff, account.xon) = (Xoff::At(Cells(400)), Xon::Offset(Cells(100)));
        });
        lab.apply(|spec| {
            let lossy = PgSpec { pool: lossless_pg().pool, ..lossy_pg() };
            spec.ports[0].pgs[pg(LOSSLESS)] = lossy;
        });
        lab.steps(1, STEP);
        assert!(!lab.pg(0, LOSSLESS).xoff, "made lossy: leaves at once");
        let last = lab.control(0).pop().expect("the peer was told");
        assert_eq!(last[24..26], [0, 0]);
        drained(&mut lab);
    }
}
