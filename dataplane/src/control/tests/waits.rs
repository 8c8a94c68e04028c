//! `show_waits` over the control socket: PGs in XOFF, the queues that hold their frames, and who
//! pauses those.

use super::*;
use crate::report::lab::pg;
use holdfast_core::units::BitRate;
use holdfast_wire::mac_control::encode_pfc;

fn waits(client: &mut Client, port: Option<&str>) -> WaitsReply {
    client.call(Call::ShowWaits(PortFilter { port: port.map(str::to_owned) })).unwrap()
}

/// Port p1 hears a pause of priority 3 for so many quanta from the station behind it.
fn pause(desk: &Desk, quanta: u16) {
    let mut bytes = [0; 60];
    encode_pfc(&mut bytes, station(1), 1 << 3, &[0, 0, 0, quanta, 0, 0, 0, 0]);
    desk.rig.act(move |lab| lab.arrive(1, &bytes));
}

/// Asks until the answer is as wanted.
fn until(client: &mut Client, wanted: impl Fn(&WaitsReply) -> bool) -> WaitsReply {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let reply = waits(client, None);
        if wanted(&reply) {
            return reply;
        }
        assert!(Instant::now() < end, "{reply:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_pg_in_xoff_is_shown_with_what_it_waits_for_and_who_pauses_that() {
    for workers in [1, 2] {
        let desk = Desk::new(workers, 3);
        let client = &mut desk.client();
        let quiet = waits(client, None);
        assert_eq!((quiet.switch.as_str(), quiet.pid), ("lab", std::process::id()));
        assert_eq!((quiet.pgs, quiet.queues), (vec![], vec![]));
        let macs: Vec<_> = quiet.ports.into_iter().map(|port| (port.port, port.mac)).collect();
        assert_eq!(macs[2], ("p2".to_owned(), "02:ff:00:00:00:02".to_owned()));
        // One pause lasts 3.4 s.
        desk.rig.act(|lab| {
            lab.apply(|spec| spec.ports[1].speed = BitRate::new(10_000_000).unwrap());
        });
        pause(&desk, u16::MAX);
        // 4 cells each: XOFF at 1000, of which 10 frames lie elsewhere.
        let _: Done = client.call(Call::PortHold(port_name("p2"))).unwrap();
        desk.rig.act(|lab| (0..10).for_each(|_| lab.arrive(0, &ipv4(0, 2, 26, 0, 1_000))));
        desk.rig.act(|lab| (0..270).for_each(|_| lab.arrive(0, &ipv4(0, 1, 26, 0, 1_000))));
        // Queues are read a moment before the accounts.
        let all_there = |pg: &WaitsPg| {
            pg.cells == 1_120 && pg.waits_for.iter().map(|held| held.cells).sum::<u32>() == 1_120
        };
        let reply = until(client, |reply| reply.pgs.iter().any(all_there));
        let of = &reply.pgs[0];
        assert_eq!((reply.pgs.len(), of.port.as_str(), of.pg), (1, "p0", LOSSLESS));
        assert_eq!((of.priorities.as_slice(), of.suspected_at_ns), (&[3][..], None));
        let held = |port: &str, frames| WaitsHold {
            port: port.to_owned(),
            queue: 3,
            cells: 4 * frames,
            frames,
        };
        assert_eq!(of.waits_for, [held("p1", 270), held("p2", 10)]);
        assert!(until(client, |reply| reply.pgs[0].paused_ns > 0).pgs[0].paused_ns > 0);
        let [first, second] = reply.queues.as_slice() else { panic!("{reply:?}") };
        let station = station(1).to_string();
        assert_eq!((first.port.as_str(), first.queue, first.paused), ("p1", 3, true));
        assert_eq!((first.paused_by.as_ref(), first.detection_ns), (Some(&station), 200_000_000));
        assert_eq!(first.priorities, [3]);
        assert_eq!((second.port.as_str(), second.paused, second.stands_ns), ("p2", false, 0));
        assert_eq!((&second.paused_by, second.priorities.len()), (&None, 0));
        // Only what the named port has to do with.
        assert_eq!(waits(client, Some("p0")).queues.len(), 2);
        let other = waits(client, Some("p1"));
        assert_eq!((other.pgs, other.queues, other.ports.len()), (vec![], vec![], 3));
        // What lay at p2 has left: nothing of the PG can move any more.
        let _: Done = client.call(Call::PortRelease(port_name("p2"))).unwrap();
        pause(&desk, u16::MAX);
        let stuck =
            until(client, |reply| reply.pgs.first().is_some_and(|pg| pg.suspected_at_ns.is_some()));
        assert!(stuck.queues[0].stands_ns >= stuck.queues[0].detection_ns, "{stuck:?}");
        assert_eq!(stuck.pgs[0].waits_for, [held("p1", 270)]);
        assert!(stuck.pgs[0].suspected_at_ns < Some(stuck.now_ns));
        desk.rig.act(|lab| assert_eq!(lab.port(0).suspicion(pg(3)).suspected(), 1));
        pause(&desk, 0);
        until(client, |reply| reply.pgs.is_empty());
    }
}
