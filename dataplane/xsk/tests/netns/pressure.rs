//! What the XDP program does when the worker is late (SPEC 4.3).

use crate::lab::{Lab, Patch, PATIENCE};
use holdfast_core::io::{FramePool, PortIo, Received};
use holdfast_xsk::{LosslessMap, Trust};
use std::time::Instant;

const RING: u32 = 64;

/// Ethernet, tags, and an IP header with this DSCP.
fn ip(tags: &[[u8; 4]], version: u8, dscp: u8) -> Vec<u8> {
    let mut bytes = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1];
    bytes.extend(tags.concat());
    if version == 4 {
        bytes.extend([0x08, 0x00, 0x45, dscp << 2 | 1]);
    } else {
        bytes.extend([0x86, 0xdd, 0x60 | dscp >> 2, dscp << 6 | 0x1f]);
    }
    bytes.resize(90, 0);
    bytes
}

fn tag(pcp: u8) -> [u8; 4] {
    [0x81, 0, pcp << 5, 5]
}

fn of_type(tags: &[[u8; 4]], ethertype: [u8; 2]) -> Vec<u8> {
    let mut bytes = vec![0x01, 0x80, 0xc2, 0, 0, 1, 0x02, 0, 0, 0, 0, 1];
    bytes.extend(tags.concat());
    bytes.extend(ethertype);
    bytes.resize(60, 0);
    bytes
}

/// Brings port 0 under pressure: its RX ring is filled above 3/4 before it is looked at.
fn press(patch: &mut Patch, lab: &Lab) {
    let host = lab.host(0);
    (0..60).for_each(|_| host.send(&ip(&[], 4, 26)));
    let start = Instant::now();
    while patch.ports[0].rx_backlog() < 60 {
        assert!(start.elapsed() < PATIENCE);
    }
    let mut burst = Vec::with_capacity(64);
    patch.ports[0].receive(&mut patch.pool, &mut burst);
    assert_eq!(burst.len(), 60);
    burst.into_iter().for_each(|frame| patch.pool.free(frame.handle));
    patch.ports[0].refill(&mut patch.pool, 0);
    assert!(patch.ports[0].under_rx_pressure());
}

/// Sends frames while port 0 is under pressure; returns those that came through.
fn through(patch: &mut Patch, lab: &Lab, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    press(patch, lab);
    let before = patch.ports[0].xdp_counters().unwrap();
    let host = lab.host(0);
    frames.iter().for_each(|frame| host.send(frame));
    let start = Instant::now();
    let counted = loop {
        let now = patch.ports[0].xdp_counters().unwrap();
        let seen = now.redirected + now.rx_pressure_lossy;
        if seen - before.redirected - before.rx_pressure_lossy == frames.len() as u64 {
            break now;
        }
        assert!(start.elapsed() < PATIENCE);
    };
    let mut burst = Vec::with_capacity(64);
    let want = (counted.redirected - before.redirected) as usize;
    while burst.len() < want {
        patch.ports[0].receive(&mut patch.pool, &mut burst);
        assert!(start.elapsed() < PATIENCE);
    }
    assert!(!patch.ports[0].under_rx_pressure());
    let take = |Received { handle, .. }| {
        let bytes = patch.pool.read(&handle, <[u8]>::to_vec);
        patch.pool.free(handle);
        bytes
    };
    let came = burst.into_iter().map(take).collect();
    patch.ports[0].refill(&mut patch.pool, 0);
    came
}

#[test]
fn under_pressure_only_lossy_frames_are_dropped() {
    let lab = Lab::new(1, "");
    let mut patch = Patch::new(&[lab.config(0, RING)], 512);
    let lossless = LosslessMap { trust: Trust::Dscp, dscp: 1 << 26 | 1, pcp: 1 << 3, rest: false };
    patch.guards[0].lossless().set(lossless).unwrap();
    let kept = [
        ip(&[], 4, 26),
        ip(&[], 6, 26),
        ip(&[tag(0)], 4, 26),
        ip(&[tag(0), tag(0), tag(0)], 6, 26),
        ip(&[], 4, 0),
        of_type(&[tag(3)], [0x88, 0xb5]),
        of_type(&[], [0x88, 0x08]),
        of_type(&[tag(0)], [0x88, 0x08]),
    ];
    let shed = [
        ip(&[], 4, 27),
        ip(&[], 6, 10),
        ip(&[tag(3)], 4, 27),
        ip(&[tag(3), tag(3), tag(3)], 6, 58),
        of_type(&[tag(4)], [0x88, 0xb5]),
        of_type(&[], [0x88, 0xb5]),
    ];
    let all: Vec<_> = kept.iter().chain(&shed).cloned().collect();
    assert_eq!(through(&mut patch, &lab, &all), kept);
    assert_eq!(patch.ports[0].xdp_counters().unwrap().rx_pressure_lossy, shed.len() as u64);
    let by_pcp = LosslessMap { trust: Trust::Pcp, rest: true, ..lossless };
    patch.guards[0].lossless().set(by_pcp).unwrap();
    let kept = [ip(&[tag(3)], 4, 27), ip(&[], 4, 27)];
    let all = [kept[0].clone(), ip(&[tag(4)], 4, 26), kept[1].clone()];
    assert_eq!(through(&mut patch, &lab, &all), kept);
    let by_port = LosslessMap { trust: Trust::Port, rest: false, ..lossless };
    patch.guards[0].lossless().set(by_port).unwrap();
    let all = [ip(&[tag(3)], 4, 26), of_type(&[], [0x88, 0x08])];
    assert_eq!(through(&mut patch, &lab, &all), [of_type(&[], [0x88, 0x08])]);
    patch.census();
}

#[test]
fn frames_beyond_the_ring_are_counted_as_overrun() {
    let lab = Lab::new(1, "");
    let patch = Patch::new(&[lab.config(0, RING)], 512);
    let host = lab.host(0);
    (0..100).for_each(|_| host.send(&ip(&[], 4, 26)));
    let start = Instant::now();
    while patch.ports[0].stats().unwrap().receive_overruns() != 100 - u64::from(RING) {
        assert!(start.elapsed() < PATIENCE, "{:?}", patch.ports[0].stats());
    }
}
