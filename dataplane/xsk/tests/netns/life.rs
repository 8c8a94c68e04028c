//! Ports come and go: attaching, refusing, restoring, and netdevs that vanish.

use crate::lab::{bench, frame, sh, Host, Lab, Patch, PATIENCE};
use holdfast_core::io::{FramePool, PortIo, Remains};
use holdfast_core::link_errors::LinkError;
use holdfast_xsk::{
    open_port, CopyPreference, Layout, LinkEvent, Memory, Netns, XdpPreference, XskError, XskPool,
};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{OpenObject, Xdp, XdpFlags};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::time::Instant;

#[allow(warnings, clippy::all, clippy::restriction, reason = "generated")]
mod ingress {
    include!(concat!(env!("OUT_DIR"), "/xdp_ingress.skel.rs"));
}

const RING: u32 = 256;

fn memory() -> Memory {
    Memory::new(&Layout::even(2048, 1).unwrap()).unwrap().0
}

fn has_program(lab: &Lab, n: usize) -> bool {
    sh(&format!("ip -n {} -d link show p{n}", lab.switch)).contains("prog/xdp")
}

/// Waits for the end of what goes with a descriptor: a program that another test is starting has
/// a copy of it until its exec.
fn eventually(holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE);
    }
}

fn settings(lab: &Lab) -> Vec<String> {
    let at = |netns: &str, dev: &str| {
        let features = sh(&format!("ip netns exec {netns} ethtool -k {dev}"));
        let link = sh(&format!("ip -n {netns} -d link show {dev}"));
        let mtu = link.split_whitespace().skip_while(|word| *word != "mtu").nth(1).unwrap();
        let promiscuous = link.contains("promiscuity 1");
        format!("{features} mtu {mtu} promiscuous {promiscuous}")
    };
    vec![at(&lab.switch, "p0"), at(&lab.hosts[0], "h0")]
}

fn ifindex(lab: &Lab, dev: &str) -> i32 {
    let path = format!("/sys/class/net/{dev}/ifindex");
    sh(&format!("ip netns exec {} cat {path}", lab.switch)).trim().parse().unwrap()
}

#[test]
fn everything_is_put_back_when_the_guard_goes() {
    let lab = Lab::new(1, "");
    let before = settings(&lab);
    let mut config = lab.config(0, RING);
    config.mtu = Some(3000);
    let (port, guard) = open_port(&memory(), &config).unwrap();
    assert!(has_program(&lab, 0));
    let during = settings(&lab);
    assert!(during[0].contains("mtu 3000") && during[0].contains("promiscuous true"));
    assert!(during[1].contains("tx-checksumming: off"), "{}", during[1]);
    assert_ne!(during, before);
    drop(port);
    drop(guard);
    eventually(|| !has_program(&lab, 0));
    eventually(|| settings(&lab) == before);
}

#[test]
fn a_netdev_that_was_down_is_taken_up_and_down_again() {
    let lab = Lab::new(1, "");
    sh(&format!("ip -n {} link set p0 down", lab.switch));
    let (_port, guard) = open_port(&memory(), &lab.config(0, RING)).unwrap();
    assert!(guard.link().is_up());
    drop(guard);
    assert!(sh(&format!("ip -n {} link show p0", lab.switch)).contains("state DOWN"));
}

#[test]
fn a_second_instance_is_refused_and_can_start_afterwards() {
    let lab = Lab::new(1, "");
    let first = open_port(&memory(), &lab.config(0, RING)).unwrap();
    let error = open_port(&memory(), &lab.config(0, RING)).err().unwrap();
    assert!(matches!(error, XskError::SecondInstance { .. }), "{error}");
    assert!(has_program(&lab, 0));
    drop(first);
    eventually(|| !has_program(&lab, 0));
    open_port(&memory(), &lab.config(0, RING)).unwrap();
}

#[test]
fn a_foreign_program_is_named_and_left_alone() {
    let lab = Lab::new(1, "");
    let mut storage = MaybeUninit::<OpenObject>::uninit();
    let open = bench::XdpBenchSkelBuilder::default().open(&mut storage).unwrap();
    let foreign = open.load().unwrap();
    let index = ifindex(&lab, "p0");
    let netns = Netns::Named(lab.switch.clone()).open().unwrap();
    let program = foreign.progs.bench_sink.as_fd();
    netns.run(|| Xdp::new(program).attach(index, XdpFlags::DRV_MODE).unwrap()).unwrap();
    let error = open_port(&memory(), &lab.config(0, RING)).err().unwrap();
    assert!(
        matches!(&error, XskError::ForeignProgram { program, .. } if program == "bench_sink"),
        "{error}"
    );
    assert!(has_program(&lab, 0));
}

#[test]
fn a_left_over_of_ours_is_replaced() {
    let lab = Lab::new(1, "");
    let mut storage = MaybeUninit::<OpenObject>::uninit();
    let open = ingress::XdpIngressSkelBuilder::default().open(&mut storage).unwrap();
    let ours = open.load().unwrap();
    let index = ifindex(&lab, "p0");
    let netns = Netns::Named(lab.switch.clone()).open().unwrap();
    let program = ours.progs.holdfast_rx.as_fd();
    netns.run(|| Xdp::new(program).attach(index, XdpFlags::DRV_MODE).unwrap()).unwrap();
    assert!(has_program(&lab, 0));
    open_port(&memory(), &lab.config(0, RING)).unwrap();
}

#[test]
fn what_is_wrong_with_a_port_is_said() {
    let lab = Lab::new(1, "");
    let mut config = lab.config(0, RING);
    config.ifname = "p9".into();
    let error = open_port(&memory(), &config).err().unwrap();
    assert!(matches!(error, XskError::NoDevice { .. }), "{error}");
    let mut config = lab.config(0, RING);
    config.queues = Some(64);
    let error = open_port(&memory(), &config).err().unwrap();
    assert!(matches!(error, XskError::Queues { asked: 64, present: 1, .. }), "{error}");
    let mut config = lab.config(0, RING);
    config.mtu = Some(1_000_000);
    let error = open_port(&memory(), &config).err().unwrap();
    assert!(matches!(error, XskError::Mtu { mtu: 1_000_000, .. }), "{error}");
    let mut config = lab.config(0, RING);
    config.copy = CopyPreference::ZeroCopy;
    let error = open_port(&memory(), &config).err().unwrap();
    assert!(matches!(error, XskError::ZeroCopy { .. }), "{error}");
    assert!(!has_program(&lab, 0));
}

/// Gives a closed port's chunks back; `tokens` are those of the frames that it was sending.
fn take_back(pool: &mut XskPool, remains: Remains, tokens: &[u64]) {
    assert_eq!(remains.tokens, tokens);
    remains.chunks.into_iter().for_each(|chunk| pool.take_back(chunk));
}

/// Waits for news of port 0.
fn news(patch: &mut Patch, wanted: LinkEvent) {
    patch.until(|patch| patch.guards[0].take_link_events().contains(&wanted));
}

#[test]
fn a_link_goes_down_and_comes_up() {
    let lab = Lab::new(2, "");
    let mut patch = Patch::new(&[lab.config(0, RING), lab.config(1, RING)], 2048);
    for _ in 0..2 {
        sh(&format!("ip -n {} link set h0 down", lab.hosts[0]));
        news(&mut patch, LinkEvent::Up(false));
        assert!(!patch.ports[0].is_up() && patch.ports[1].is_up());
        assert!(!patch.ports[0].transmit_control(&[0; 60]));
        sh(&format!("ip -n {} link set h0 up", lab.hosts[0]));
        news(&mut patch, LinkEvent::Up(true));
        assert!(patch.ports[0].is_up());
    }
    let (h0, h1) = (lab.host(0), lab.host(1));
    h0.send(&frame(100, 7));
    patch.until(|_| h1.drain().contains(&frame(100, 7)));
    sh(&format!("ip -n {} link set p0 mtu 1400", lab.switch));
    news(&mut patch, LinkEvent::Mtu(1400));
}

/// Errors are read in the port's namespace, which isn't the reader's, and count from the opening.
#[test]
fn errors_of_a_link_in_another_namespace_are_counted() {
    let lab = Lab::new(1, "");
    let (_port, mut veth) = open_port(&memory(), &lab.config(0, RING)).unwrap();
    assert_eq!(*veth.look().unwrap().0.counts(), [0; LinkError::COUNT]);
    // A tunnel without a route: each frame out of it is a carrier error.
    let ip = |command: &str| sh(&format!("ip -n {} {command}", lab.switch));
    ip("link add tunnel type vxlan id 5 remote 10.9.9.9 dstport 4789");
    ip("link set tunnel up");
    let speaker = Host::new(&lab.switch, "tunnel");
    (0..3).for_each(|n| speaker.send(&frame(100, n)));
    let mut config = lab.config(0, RING);
    config.ifname = "tunnel".to_owned();
    config.xdp = XdpPreference::Generic;
    let (_tunnel, mut guard) = open_port(&memory(), &config).unwrap();
    (0..5).for_each(|n| speaker.send(&frame(100, n)));
    let mut five = [0; LinkError::COUNT];
    five[LinkError::TxCarrier as usize] = 5;
    // The driver's total has them, too.
    assert_eq!(*guard.look().unwrap().0.counts(), five, "the three before don't count");
    assert_eq!(*veth.look().unwrap().0.counts(), [0; LinkError::COUNT]);
    ip("link del tunnel");
    assert!(guard.look().unwrap_err().to_string().contains("tunnel"));
}

#[test]
fn a_netns_deleted_under_its_port_takes_only_that_port_down() {
    let lab = Lab::new(3, "");
    let configs = [lab.config(0, RING), lab.config(1, RING), lab.config(2, RING)];
    let mut patch = Patch::new(&configs, 4096);
    let h0 = lab.host(0);
    // Frames lie in the RX ring and wait for their way out when it happens.
    (0..30).for_each(|n| h0.send(&frame(100, n)));
    patch.work_until(true, |patch| patch.received >= 10);
    drop(h0);
    sh(&format!("ip netns del {}", lab.hosts[0]));
    news(&mut patch, LinkEvent::Gone);
    patch.settle(false);
    assert!(patch.ports[0].link().is_gone() && !patch.ports[0].is_up());
    patch.census();
    // Port 2 sends to port 0, which is gone; port 1 still hears and speaks.
    let (h1, h2) = (lab.host(1), lab.host(2));
    h1.send(&frame(100, 1));
    patch.until(|_| h1.drain().contains(&frame(100, 1)));
    h2.send(&frame(100, 2));
    let before = patch.received;
    patch.until(|patch| patch.received > before);
    patch.census();
}

/// The memory's registration doesn't hang on the netdev that was bound first, and what that one's
/// rings held comes back.
#[test]
fn a_port_can_be_opened_after_the_first_one_vanished() {
    let lab = Lab::new(2, "");
    let (memory, mut pools) = Memory::new(&Layout::even(2048, 1).unwrap()).unwrap();
    let mut pool = pools.pop().unwrap();
    let (mut first, mut guard) = open_port(&memory, &lab.config(0, RING)).unwrap();
    first.refill(&mut pool, 0);
    assert_eq!(first.held().rx, RING);
    sh(&format!("ip -n {} link del p0", lab.switch));
    let start = Instant::now();
    while !guard.take_link_events().contains(&LinkEvent::Gone) {
        assert!(start.elapsed() < PATIENCE);
    }
    take_back(&mut pool, first.close(), &[]);
    drop(guard);
    assert_eq!(pool.free_chunks(), 2048);
    let (mut second, _guard) = open_port(&memory, &lab.config(1, RING)).unwrap();
    second.refill(&mut pool, 0);
    lab.host(1).send(&frame(100, 1));
    while second.rx_backlog() < 1 {
        assert!(start.elapsed() < PATIENCE);
    }
}

/// Chunks of a closed port, wherever they were, are in the pool again.
#[test]
fn a_closed_port_gives_everything_back_and_can_be_opened_anew() {
    let lab = Lab::new(1, "");
    let (memory, mut pools) = Memory::new(&Layout::even(2048, 1).unwrap()).unwrap();
    let mut pool = pools.pop().unwrap();
    let free = |pool: &XskPool| pool.free_chunks();
    for round in 0..4 {
        let (mut port, guard) = open_port(&memory, &lab.config(0, RING)).unwrap();
        port.refill(&mut pool, 0);
        let host = lab.host(0);
        (0..50).for_each(|n| host.send(&frame(200, n)));
        let start = Instant::now();
        while port.rx_backlog() < 50 {
            assert!(start.elapsed() < PATIENCE);
        }
        let mut burst = Vec::with_capacity(64);
        port.receive(&mut pool, &mut burst);
        assert_eq!((burst.len(), port.held().rx), (50, RING - 50));
        for (n, frame) in burst.iter().enumerate() {
            assert!(port.transmit(&pool, frame.handle.chunk(), frame.len, n as u64));
        }
        // Half of the rounds close with frames in the kernel's ring, half with staged ones.
        if round % 2 == 0 {
            port.kick();
        }
        assert_eq!(free(&pool), 2048 - RING as usize);
        take_back(&mut pool, port.close(), &(0..50).collect::<Vec<_>>());
        drop(guard);
        eventually(|| !has_program(&lab, 0));
        burst.into_iter().for_each(|f| pool.free(f.handle));
        assert_eq!(free(&pool), 2048);
    }
}
