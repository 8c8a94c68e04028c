use super::*;
use holdfast_api::doc::Source;
use holdfast_api::switch_doc::SwitchDoc;

/// A port of a switch file with these further keys.
fn doc(more: &str) -> PortDoc {
    let text = format!(
        "name = \"lab\"\nprofile = \"p\"\n[[port]]\nname = \"h1\"\nifname = \"eth0\"\n\
         speed = \"10G\"\n{more}\n"
    );
    SwitchDoc::load(&Source::new("switch.toml", text)).unwrap().ports.remove(0)
}

/// A NIC that is as it should be.
fn nic() -> Survey {
    Survey {
        driver: "mlx5_core".to_owned(),
        mtu: 1500,
        admin_up: true,
        up: true,
        megabits: Some(10_000),
        will_switch_off: Vec::new(),
        stays_on: Vec::new(),
        link_pause: false,
        peer: None,
    }
}

fn state(found: &Condition) -> (Health, &str) {
    assert_eq!(found.state != Health::Ok, found.fix.is_some(), "{found:?}");
    (found.state, &found.what)
}

#[test]
fn speed_and_carrier_are_held_against_the_declared_speed() {
    let at = |seen: Survey| link(String::new(), &doc(""), &seen);
    assert_eq!(at(nic()).state, Health::Ok);
    let found = at(Survey { megabits: Some(25_000), ..nic() });
    assert_eq!(
        state(&found),
        (Health::Degraded, "the link has 25000 Mbit/s, declared 10000 Mbit/s")
    );
    assert_eq!(at(Survey { megabits: None, ..nic() }).state, Health::Ok);
    assert_eq!(at(Survey { up: false, ..nic() }).state, Health::Degraded);
    assert_eq!(at(Survey { up: false, admin_up: false, ..nic() }).state, Health::Ok);
    let peer = Some(SurveyedPeer::WillSwitchOff(Vec::new()));
    let veth = Survey { megabits: Some(1), peer, ..nic() };
    assert_eq!(at(veth).state, Health::Ok, "a veth tells a speed that it doesn't have");
}

#[test]
fn an_mtu_fits_a_page_a_kernel_with_fragments_and_a_descriptor() {
    let at = |seen: u32, more: &str, release: &str| {
        let seen = Survey { mtu: seen, ..nic() };
        let found = mtu(String::new(), &doc(more), &seen, Kernel::parse(release));
        state(&found);
        found.state
    };
    assert_eq!(at(ONE_PAGE_MTU, "", "6.5"), Health::Ok);
    assert_eq!(at(ONE_PAGE_MTU + 1, "", "6.5"), Health::Missing);
    assert_eq!(at(ONE_PAGE_MTU + 1, "", "6.6"), Health::Ok);
    assert_eq!(at(9000, "mtu = 1500", "6.5"), Health::Ok, "it will be lowered");
    assert_eq!(at(u32::from(LONGEST_MTU), "", "6.6"), Health::Ok);
    assert_eq!(at(u32::from(LONGEST_MTU) + 1, "", "6.6"), Health::Missing);
}

#[test]
fn queues_offloads_drivers_and_peers() {
    let queues = |more: &str, have| channels(String::new(), &doc(more), have);
    assert_eq!(state(&queues("", (4, 8))), (Health::Ok, "4 queues, all bound"));
    assert_eq!(state(&queues("queues = 8", (4, 8))), (Health::Ok, "4 queues will be made 8"));
    assert_eq!(queues("queues = 9", (4, 8)).state, Health::Missing);
    let gro = || vec!["rx-gro".to_owned()];
    let found =
        offloads(String::new(), &Survey { will_switch_off: gro(), link_pause: true, ..nic() });
    assert_eq!(state(&found), (Health::Ok, "will be switched off: rx-gro, 802.3x pause"));
    let found = offloads(String::new(), &Survey { stays_on: gro(), ..nic() });
    assert_eq!(state(&found), (Health::Degraded, "can't be switched off: rx-gro"));
    let of = |name: &str| Survey { driver: name.to_owned(), ..nic() };
    assert_eq!(driver(String::new(), &of("veth")).state, Health::Ok);
    assert_eq!(driver(String::new(), &of("")).state, Health::Degraded);
    assert!(pfc(String::new(), &nic()).is_none());
    assert_eq!(pfc(String::new(), &of("ice")).unwrap().state, Health::Degraded);
    assert!(peer(String::new(), &nic()).is_none());
    let behind = |end| peer(String::new(), &Survey { peer: Some(end), ..nic() }).unwrap();
    assert_eq!(behind(SurveyedPeer::OutOfReach).state, Health::Degraded);
    assert_eq!(behind(SurveyedPeer::WillSwitchOff(gro())).state, Health::Ok);
}
