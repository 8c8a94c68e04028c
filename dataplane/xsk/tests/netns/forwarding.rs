//! Frames go through whole, in order, and every chunk comes back.

use crate::lab::{frame, sh, Host, Lab, Patch};
use holdfast_core::io::{FramePool, PortIo};
use holdfast_xsk::{XdpMode, CONTROL_SLOTS};
use std::time::{Duration, Instant};

const RING: u32 = 1024;
const SLOTS: usize = (RING - CONTROL_SLOTS) as usize;

fn patch(lab: &Lab) -> Patch {
    Patch::new(&[lab.config(0, RING), lab.config(1, RING)], 8 * RING)
}

/// Sends frames from one host and asserts that the other gets the same.
fn carry(patch: &mut Patch, from: &Host, to: &Host, frames: &[Vec<u8>]) {
    frames.iter().for_each(|frame| from.send(frame));
    let mut got = Vec::new();
    patch.until(|_| {
        got.extend(to.drain());
        got.len() >= frames.len()
    });
    for (n, (got, sent)) in got.iter().zip(frames).enumerate() {
        assert!(got == sent, "frame {n}: {} bytes sent, {} came", sent.len(), got.len());
    }
    patch.settle(false);
}

#[test]
fn frames_of_every_size_go_through_unchanged() {
    let lab = Lab::new(2, "");
    let mut patch = patch(&lab);
    let status = patch.guards[0].status();
    assert_eq!((status.xdp, status.zero_copy, status.mtu), (XdpMode::Native, false, 1500));
    let (h0, h1) = (lab.host(0), lab.host(1));
    let frames: Vec<_> = (60..=1514).map(|len| frame(len, len as u32)).collect();
    for burst in frames.chunks(200) {
        carry(&mut patch, &h0, &h1, burst);
        carry(&mut patch, &h1, &h0, burst);
    }
    patch.idle(SLOTS);
    let counted = patch.ports[0].xdp_counters().unwrap();
    assert_eq!((counted.redirected, counted.passed), (frames.len() as u64, 0));
    assert_eq!(patch.ports[0].stats().unwrap().receive_overruns(), 0);
}

#[test]
fn jumbo_frames_go_through_in_fragments() {
    let lab = Lab::new(2, "");
    for n in 0..2 {
        sh(&format!("ip -n {} link set h{n} mtu 9000", lab.hosts[n]));
    }
    let mut configs = [lab.config(0, RING), lab.config(1, RING)];
    configs.iter_mut().for_each(|config| config.mtu = Some(9000));
    let mut patch = Patch::new(&configs, 8 * RING);
    let status = patch.guards[0].status();
    assert!(status.jumbo && status.mtu == 9000);
    assert!(status.changes.iter().any(|c| c.what == "mtu" && c.from == "1500"));
    let (h0, h1) = (lab.host(0), lab.host(1));
    let sizes = [3839, 3840, 3841, 4096, 4154, 4170, 7680, 7681, 9000, 9014, 60, 1514];
    for round in 0..40 {
        let frames: Vec<_> = sizes.iter().map(|len| frame(*len, round)).collect();
        carry(&mut patch, &h0, &h1, &frames);
    }
    patch.idle(SLOTS);
}

#[test]
fn tags_stay_in_the_frame() {
    let lab = Lab::new(2, "");
    let mut patch = patch(&lab);
    let (h0, h1) = (lab.host(0), lab.host(1));
    let stacks: [&[u16]; 5] = [
        &[0x8100, 0x6005],
        &[0x88a8, 0x2064],
        &[0x88a8, 0x0064, 0x8100, 0x6005],
        &[0x8100, 0x6000],
        &[0x9100, 0x0001, 0x88a8, 0x0064, 0x8100, 0x6005],
    ];
    let frames: Vec<_> = stacks
        .iter()
        .map(|stack| {
            let mut tagged = frame(200, 1);
            let tags = stack.iter().flat_map(|word| word.to_be_bytes());
            tagged.splice(12..12, tags);
            tagged
        })
        .collect();
    carry(&mut patch, &h0, &h1, &frames);
    patch.idle(SLOTS);
}

/// A tag that the sending host leaves to its netdev must be in the frame as well: bring-up has
/// switched the netdev's insertion off, which would leave it beside the frame.
#[test]
fn a_host_that_tags_by_its_netdev_sends_tags() {
    let lab = Lab::new(2, "");
    let mut patch = patch(&lab);
    let changes = &patch.guards[0].status().changes;
    let off_at_peer = |what| changes.iter().any(|c| c.device.ends_with("/h0") && c.what == what);
    assert!(off_at_peer("tx-vlan-hw-insert") && off_at_peer("tx-checksum-ip-generic"));
    assert!(off_at_peer("tx-vlan-stag-hw-insert"), "{changes:?}");
    let (h0, h1) = (lab.host(0), lab.host(1));
    lab.tag_at_egress(0);
    let mut pass = |sent: &[u8]| {
        h0.send(sent);
        let mut got = Vec::new();
        patch.until(|_| {
            got.extend(h1.drain());
            !got.is_empty()
        });
        got.remove(0)
    };
    let (plain, mut tagged) = (frame(100, 9), frame(100, 9));
    tagged.splice(12..12, [0x81, 0x00, 0xc0, 0x05]);
    assert_eq!(pass(&plain), tagged);
    h0.mark(1);
    tagged.splice(12..14, [0x88, 0xa8]);
    assert_eq!(pass(&plain), tagged);
    // What it would be like otherwise: the tag is lost, and nobody could know.
    sh(&format!("ip netns exec {} ethtool -K h0 tx-vlan-stag-hw-insert on", lab.hosts[0]));
    assert_eq!(pass(&plain), plain);
}

/// Bursts that don't divide by the batch, with the egress closed every other time: no slot and no
/// chunk is lost, and the last pass is as quick as the first.
fn bursts(batch: usize) {
    const BURST: u32 = 179;
    const PASSES: u32 = 200;
    let lab = Lab::new(2, "");
    let mut patch = patch(&lab);
    patch.batch = batch;
    let (h0, h1) = (lab.host(0), lab.host(1));
    let mut came = 0;
    let mut times = Vec::new();
    for pass in 0..PASSES {
        let start = Instant::now();
        (0..BURST).for_each(|n| h0.send(&frame(64, n)));
        let sent = ((pass + 1) * BURST) as usize;
        // Frames of a veth arrive by a softirq that may lag behind `send`.
        patch.work_until(pass % 2 == 0, |patch| patch.received >= sent);
        patch.census();
        if pass % 2 == 1 {
            patch.until(|_| {
                came += h1.drain().len();
                came >= sent
            });
            patch.settle(false);
            patch.idle(SLOTS);
        }
        times.push(start.elapsed());
    }
    assert_eq!(came as u32, BURST * PASSES);
    let quarter = |from: usize| times[from..from + 50].iter().sum::<Duration>();
    let (first, last) = (quarter(0), quarter(150));
    assert!(last < first * 10, "first 50 passes {first:?}, last 50 {last:?}");
}

#[test]
fn no_slot_leaks_with_batch_1() {
    bursts(1);
}

#[test]
fn no_slot_leaks_with_batch_8() {
    bursts(8);
}

#[test]
fn no_slot_leaks_with_batch_64() {
    bursts(64);
}

#[test]
fn no_slot_leaks_with_batch_256() {
    bursts(256);
}

/// Dropped frames give their memory back, and rings of the least size wrap many times.
#[test]
fn dropped_frames_come_home_while_small_rings_wrap() {
    let lab = Lab::new(2, "");
    let mut patch = Patch::new(&[lab.config(0, 64), lab.config(1, 64)], 512);
    patch.drop_each = 3;
    let (h0, h1) = (lab.host(0), lab.host(1));
    let mut came = 0;
    for round in 0..200 {
        (0..40).for_each(|n| h0.send(&frame(300, round * 40 + n)));
        let want = (round as usize + 1) * 40;
        patch.until(|patch| {
            came += h1.drain().len();
            patch.received >= want && came + patch.dropped >= want
        });
        patch.settle(false);
        patch.idle(64 - CONTROL_SLOTS as usize);
    }
    assert_eq!(patch.dropped, 200 * 40 / 3);
}

/// Control frames have slots of their own, and go out before data that was staged earlier.
#[test]
fn control_frames_need_no_room_among_data() {
    let lab = Lab::new(2, "");
    let mut patch = Patch::new(&[lab.config(0, 64), lab.config(1, 64)], 512);
    let (h0, h1) = (lab.host(0), lab.host(1));
    (0..48).for_each(|n| h0.send(&frame(100, n)));
    let mut burst = Vec::with_capacity(64);
    let start = Instant::now();
    let Patch { pool, ports, .. } = &mut patch;
    while burst.len() < 48 {
        let mut more = Vec::with_capacity(64);
        ports[0].receive(pool, &mut more);
        burst.append(&mut more);
        assert!(start.elapsed() < crate::lab::PATIENCE);
    }
    for (n, frame) in burst.iter().enumerate() {
        assert!(ports[1].transmit(pool, frame.handle.chunk(), frame.len, n as u64));
    }
    assert_eq!(ports[1].tx_room(), 0);
    assert!(!ports[1].transmit(pool, burst[0].handle.chunk(), burst[0].len, 99));
    for n in 0..CONTROL_SLOTS {
        assert!(ports[1].transmit_control(&[n as u8; 60]));
    }
    assert!(!ports[1].transmit_control(&[0xff; 60]));
    ports[1].kick();
    let mut tokens = Vec::with_capacity(64);
    while tokens.len() < 48 {
        ports[1].completions(&mut tokens);
        assert!(start.elapsed() < crate::lab::PATIENCE);
    }
    assert_eq!(tokens, (0..48).collect::<Vec<_>>());
    let out = h1.drain();
    assert_eq!(out.len(), 64);
    for (n, frame) in out.iter().take(16).enumerate() {
        assert_eq!(*frame, [n as u8; 60]);
    }
    assert_eq!(out[16], frame(100, 0));
    burst.into_iter().for_each(|frame| pool.free(frame.handle));
    patch.settle(false);
    patch.idle(48);
}

#[test]
fn several_queues_are_polled_in_turn() {
    let lab = Lab::new(2, "numrxqueues 2 numtxqueues 2");
    let mut configs = [lab.config(0, RING), lab.config(1, RING)];
    configs.iter_mut().for_each(|config| config.queues = Some(2));
    let mut patch = Patch::new(&configs, 16 * RING);
    assert_eq!(patch.guards[0].status().queues, 2);
    assert_eq!(patch.ports[0].fds().count(), 2);
    let (h0, h1) = (lab.host(0), lab.host(1));
    (0..500).for_each(|n| h0.send(&frame(100, n)));
    let mut got = Vec::new();
    patch.until(|_| {
        got.extend(h1.drain());
        got.len() >= 500
    });
    got.sort();
    let mut want: Vec<_> = (0..500).map(|n| frame(100, n)).collect();
    want.sort();
    assert!(got == want);
    patch.settle(false);
    patch.idle(SLOTS);
}
