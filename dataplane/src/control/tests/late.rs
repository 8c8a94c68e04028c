//! Frames that wait for room are shown as what they are: backlog (SPEC 4.3).

use super::*;

#[test]
fn waiting_frames_are_shown_as_backlog() {
    let desk = Desk::new(1, 2);
    let client = &mut desk.client();
    let backlog = |client: &mut Client| {
        let ports: PortsReply = client.call(Call::ShowPorts(only("p0"))).unwrap();
        ports.ports[0].rx_backlog
    };
    let _: Done = client.call(Call::PortHold(port_name("p1"))).unwrap();
    // 36 cells each: the PG takes about 125 of them.
    desk.rig.act(|lab| (0..400).for_each(|_| lab.arrive(0, &ipv4(0, 1, 26, 0, 9_000))));
    let until = Instant::now() + Duration::from_secs(20);
    let ring = || desk.rig.act(|lab| lab.port(0).counters().received.frames);
    // What has room has been counted; the rest is not in the ring any more.
    while ring() < 100 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(50));
    let waiting = backlog(client);
    assert!((250..300).contains(&waiting), "{waiting}");
    let _: Done = client.call(Call::PortRelease(port_name("p1"))).unwrap();
    while backlog(client) > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(backlog(client), 0);
}
