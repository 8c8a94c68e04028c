//! `show_host`: what is read below the switch, and that no worker is asked.

use super::*;
use crate::host::Netdev;
use holdfast_core::ids::PortId;
use holdfast_xsk::{InspectedPeer, Inspection};
use std::sync::atomic::Ordering;

/// Netdevs as the tests want them: `eth1` isn't there.
pub(super) fn look(netdev: &Netdev) -> Result<Inspection, String> {
    if netdev.ifname == "eth1" {
        return Err("own/eth1: no such netdev".to_owned());
    }
    Ok(Inspection {
        driver: "veth".to_owned(),
        offloads: vec!["rx-vlan-hw-parse".to_owned()],
        channels: 4,
        megabits: Some(10_000),
        peer: Some(InspectedPeer::Offloads(vec!["tx-checksum-ip-generic".to_owned()])),
    })
}

fn show_host(client: &mut Client, port: Option<&str>) -> HostReply {
    client.call(Call::ShowHost(PortFilter { port: port.map(str::to_owned) })).unwrap()
}

#[test]
fn settings_are_told_by_port_also_while_a_worker_is_silent() {
    let desk = Desk::new(2, 3);
    desk.rig.deaf.store(true, Ordering::Relaxed);
    let client = &mut desk.client();
    let reply = show_host(client, None);
    let [first, second, third] = &reply.ports[..] else { panic!("{reply:?}") };
    let netdev = first.netdev.as_ref().unwrap();
    assert_eq!((netdev.channels, first.queues, netdev.link_bits_per_second), (4, 1, None));
    assert_eq!(netdev.offloads, ["rx-vlan-hw-parse"]);
    let peer = netdev.peer.as_ref().unwrap();
    assert_eq!((peer.reached, &peer.offloads[..]), (true, &["tx-checksum-ip-generic".into()][..]));
    assert_eq!(
        (&second.netdev, second.unread.as_deref()),
        (&None, Some("own/eth1: no such netdev"))
    );
    assert_eq!((first.worker, second.worker, third.worker), (0, 1, 0));
    let owned: Vec<&[String]> = reply.workers.iter().map(|worker| &worker.ports[..]).collect();
    assert_eq!(owned, [&["p0".to_owned(), "p2".to_owned()][..], &["p1".to_owned()][..]]);
    let names: Vec<String> =
        show_host(client, Some("p2")).ports.into_iter().map(|port| port.port).collect();
    assert_eq!(names, ["p2"]);
    let error = refused(
        client.call::<HostReply>(Call::ShowHost(PortFilter { port: Some("p9".to_owned()) })),
    );
    assert_eq!(error.code, ErrorCode::UnknownPort);
    desk.rig.deaf.store(false, Ordering::Relaxed);
}

#[test]
fn a_lossless_frame_ends_the_time_without() {
    let desk = Desk::new(1, 2);
    let client = &mut desk.client();
    std::thread::sleep(Duration::from_millis(20));
    let idle = |reply: HostReply| reply.ports.into_iter().map(|port| port.lossless_idle_ns);
    let before: Vec<u64> = idle(show_host(client, None)).collect();
    assert!(before.iter().all(|idle| *idle >= 20_000_000), "since the start: {before:?}");
    let count = &desk.stats[0].lossless_frames[PortId::new(0).unwrap()];
    count.store(1, Ordering::Relaxed);
    let after: Vec<u64> = idle(show_host(client, None)).collect();
    assert!(after[0] < before[0], "{before:?} {after:?}");
    assert!(after[1] >= before[1], "{before:?} {after:?}");
}
