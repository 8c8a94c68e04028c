//! Ports that the keeper of ports has opened again: the profile follows them, or they are refused.

use super::apply::{call, profile};
use super::*;
use crate::report::PortFacts;
use holdfast_api::doc::Source;
use holdfast_api::switch_doc::SwitchDoc;
use holdfast_core::units::Time;

/// The file of a switch in memory.
pub(super) fn switch(ports: usize) -> SwitchDoc {
    let port = |n| format!("[[port]]\nname = \"p{n}\"\nifname = \"eth{n}\"\nspeed = \"10G\"\n");
    let ports: String = (0..ports).map(port).collect();
    let text = format!("name = \"lab\"\nprofile = \"p.toml\"\nspare_ports = 0\n{ports}");
    SwitchDoc::load(&Source::new("switch.toml", text)).unwrap()
}

impl Desk {
    /// Port `number` was opened again with this MTU and so many RX queues.
    fn opened(&self, number: usize, mtu: u16, queues: u32) -> Result<(), String> {
        let (answer, answered) = bounded(1);
        let facts = PortFacts {
            name: format!("p{number}"),
            netns: None,
            ifname: format!("eth{number}"),
            xdp_mode: XdpMode::Generic,
            zero_copy: false,
            queues,
            rx_ring: 2048,
            notes: Vec::new(),
            since: Time::default(),
        };
        let call = PortCall::Opened { number, mtu, facts: Box::new(facts), lossless: None, answer };
        self.keeper.send(call).unwrap();
        self.control.as_ref().unwrap().waker().wake().unwrap();
        answered.recv_timeout(Duration::from_secs(20)).unwrap().map(drop)
    }
}

fn port(client: &mut Client, number: usize) -> PortStatus {
    let filter = PortFilter { port: Some(format!("p{number}")) };
    client.call::<PortsReply>(Call::ShowPorts(filter)).unwrap().ports.remove(0)
}

/// What was set since the profile was applied stays.
#[test]
fn the_profile_follows_the_mtu_of_a_port_that_was_opened_again() {
    let desk = Desk::new(2, 3);
    let client = &mut desk.client();
    let _: ApplyReply = client.call(call(&profile(2000), false)).unwrap();
    let set = SetPg {
        port: Some("p1".to_owned()),
        pg: LOSSLESS,
        xoff: Some(XoffAmount::At(CellAmount::Cells(1700))),
        ..SetPg::default()
    };
    let before: SetReply = client.call(Call::SetPg(set)).unwrap();
    assert_eq!(desk.opened(1, 4000, 3), Ok(()));
    let now: ProfileReply = client.call(Call::ShowProfile(ShowProfile {})).unwrap();
    assert_eq!(now.generation, before.generation + 1);
    let ports: Vec<_> = now.ports.iter().map(|port| (port.mtu, port.tx_inflight)).collect();
    assert_eq!(ports[1], (4000, 12_500));
    assert_eq!(ports[0].0, 1500);
    let xoff = now.ports[1].pgs.iter().find(|pg| pg.pg == LOSSLESS).map(|pg| pg.xoff);
    assert_eq!(xoff, Some(Some(1700)));
    assert_eq!((port(client, 1).queues, port(client, 0).queues), (3, 1));
    // The same again changes nothing.
    assert_eq!(desk.opened(1, 4000, 3), Ok(()));
    let again: ProfileReply = client.call(Call::ShowProfile(ShowProfile {})).unwrap();
    assert_eq!(again.generation, now.generation);
    // The next profile is planned with it.
    let _: ApplyReply = client.call(call(&profile(2100), false)).unwrap();
    let applied: ProfileReply = client.call(Call::ShowProfile(ShowProfile {})).unwrap();
    assert_eq!(applied.ports[1].mtu, 4000);
}

#[test]
fn a_port_that_does_not_fit_the_profile_is_refused_and_nothing_changes() {
    let desk = Desk::new(1, 2);
    let client = &mut desk.client();
    let tight = format!("{}[scheduler]\ntx_inflight = \"4000B\"\n", profile(2000));
    let _: ApplyReply = client.call(call(&tight, false)).unwrap();
    let before: ProfileReply = client.call(Call::ShowProfile(ShowProfile {})).unwrap();
    let refused = desk.opened(1, 9000, 1).unwrap_err();
    assert!(refused.contains("MTU 9000") && refused.contains("tx_inflight"), "{refused}");
    assert!(desk.opened(7, 1500, 1).is_err(), "there is no such port");
    let after: ProfileReply = client.call(Call::ShowProfile(ShowProfile {})).unwrap();
    assert_eq!(after, before);
}

fn add(name: &str, ifname: &str) -> Call {
    Call::PortAdd(PortAdd {
        port: name.to_owned(),
        netns: None,
        ifname: ifname.to_owned(),
        speed: "1G".parse().unwrap(),
        mtu: None,
        queues: None,
        trust: None,
        vlans: Vec::new(),
        pvid: None,
        allow_slow_refresh: false,
        link_pause: false,
    })
}

/// What is refused never gets as far as the keeper.
#[test]
fn a_port_that_can_not_be_added_is_refused_with_numbers_and_what_to_do() {
    let desk = Desk::new(1, 2);
    let client = &mut desk.client();
    let full = refused(client.call::<Done>(add("p9", "eth9")));
    assert_eq!((full.code, full.place.as_deref()), (ErrorCode::Refused, Some("spare_ports")));
    assert_eq!(
        (full.value.as_deref(), full.limit.as_deref()),
        (Some("3"), Some("2 ports, 0 spare"))
    );
    assert!(full.fix.unwrap_or_default().contains("raise spare_ports"));
    for (name, ifname, wanted) in
        [("p1", "eth9", "p1"), ("p9", "eth1", "eth1"), ("a b", "x", "a b")]
    {
        let error = refused(client.call::<Done>(add(name, ifname)));
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let unknown = refused(client.call::<Done>(Call::PortRemove(port_name("p9"))));
    assert_eq!(unknown.code, ErrorCode::UnknownPort);
    assert!(desk.ordered.is_empty());
}
