//! Ranges and relations of `switch.toml`.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(doc: &SwitchDoc) -> Result<(), Finding> {
    name("name", &doc.name)?;
    paths(doc)?;
    let socket = doc.socket_path();
    let length = socket.as_os_str().len();
    if length > MAX_SOCKET_PATH {
        let finding = Finding::new(
            "socket",
            "the path is too long for a unix socket",
            "choose a shorter one",
        );
        return Err(finding.numbers(length, MAX_SOCKET_PATH));
    }
    if let Workers::Count(count) = doc.workers {
        within("workers", u64::from(count), 1, MAX_WORKERS as u64)?;
    }
    rings(&doc.rings)?;
    fdb_size(doc.fdb.size)?;
    ageing(doc.fdb.ageing)?;
    within("fdb.flood_limit", u64::from(doc.fdb.flood_limit), 0, 1 << 20)?;
    within("trace.events", u64::from(doc.trace.events), 64, 1 << 22)?;
    within("port", doc.ports.len() as u64, 1, MAX_PORTS as u64)?;
    let most_spare = MAX_PORTS as u64 - doc.ports.len() as u64;
    within("spare_ports", u64::from(doc.spare_ports), 0, most_spare)?;
    identities(doc)?;
    for port in &doc.ports {
        check_port(doc, port)?;
    }
    let mut statics = doc.fdb.statics.iter().enumerate();
    statics.try_for_each(|(n, entry)| check_static(doc, n, entry))?;
    unique_statics(&doc.fdb.statics)
}

/// Sizes that a table can have: others would be rounded up, and the file would say another number.
fn fdb_size(size: u32) -> Result<(), Finding> {
    within("fdb.size", u64::from(size), 512, 1 << 20)?;
    if size.is_power_of_two() {
        return Ok(());
    }
    let fix = format!("use {}", size.next_power_of_two());
    Err(Finding::new("fdb.size", format!("{size} is no power of two"), fix))
}

fn ageing(span: Span) -> Result<(), Finding> {
    const SHORTEST: Span = Span(Nanos(1_000_000_000));
    const LONGEST: Span = Span(Nanos(1_000_000 * 1_000_000_000));
    if (SHORTEST.0..=LONGEST.0).contains(&span.0) {
        return Ok(());
    }
    let fix = "use \"300s\", as most switches do";
    let finding = Finding::new("fdb.ageing", "out of range", fix);
    Err(finding.numbers(span, format!("{SHORTEST}..{LONGEST}")))
}

fn unique_statics(entries: &[StaticDoc]) -> Result<(), Finding> {
    let mut known = BTreeMap::new();
    for (number, entry) in entries.iter().enumerate() {
        let station = (parse_mac(&entry.mac), entry.vlan);
        let Some(port) = known.insert(station, &entry.port) else { continue };
        let key = format!("fdb.static.{number}.mac");
        let vlan = entry.vlan.map(|vlan| format!(" of VLAN {vlan}")).unwrap_or_default();
        let mac = &entry.mac;
        let message = format!("{mac}{vlan} lies behind port {port:?} by an earlier entry");
        return Err(Finding::new(key, message, "remove one of the two entries"));
    }
    Ok(())
}

fn paths(doc: &SwitchDoc) -> Result<(), Finding> {
    let named = [("socket", doc.socket.as_deref()), ("state", doc.state.as_deref())];
    for (key, path) in named.into_iter().chain([("profile", Some(doc.profile.as_path()))]) {
        let Some(path) = path else { continue };
        // `..` has no file name either.
        if path.file_name().is_none() || path.as_os_str().as_encoded_bytes().contains(&0) {
            let message = format!("{path:?} can't be a path of a file or folder");
            let fix =
                if key == "profile" { "name the profile" } else { "name one, or remove the key" };
            return Err(Finding::new(key, message, fix));
        }
    }
    Ok(())
}

fn within(key: &str, value: u64, least: u64, most: u64) -> Result<(), Finding> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let limit = format!("{least}..{most}");
    let fix = format!("use a value in {limit}");
    Err(Finding::new(key, "out of range", fix).numbers(value, limit))
}

fn name(key: &str, name: &str) -> Result<(), Finding> {
    if is_name(name) {
        return Ok(());
    }
    let fix = format!("use 1 to {MAX_NAME} letters, digits, - and _");
    Err(Finding::new(key, format!("{name:?} can't be a name"), fix))
}

fn rings(rings: &RingsDoc) -> Result<(), Finding> {
    for (key, entries) in [("rings.rx", rings.rx), ("rings.tx", rings.tx)] {
        within(key, u64::from(entries), 128, 32_768)?;
        if !entries.is_power_of_two() {
            let fix = format!("use {}", entries.next_power_of_two());
            return Err(Finding::new(key, format!("{entries} is no power of two"), fix));
        }
    }
    Ok(())
}

fn identities(doc: &SwitchDoc) -> Result<(), Finding> {
    let mut names = BTreeSet::new();
    let mut devices = BTreeSet::new();
    for (number, port) in doc.ports.iter().enumerate() {
        name(&format!("port.{}.name", port.name), &port.name)?;
        if !names.insert(&port.name) {
            let message = format!("port {number} has the name {:?} of an earlier one", port.name);
            let key = format!("port.{}.name", port.name);
            return Err(Finding::new(key, message, "give each port its own name"));
        }
        if !devices.insert((&port.netns, &port.ifname)) {
            let key = format!("port.{}.ifname", port.name);
            let message = format!("{:?} of this netns is an earlier port already", port.ifname);
            return Err(Finding::new(key, message, "remove one of the two ports"));
        }
    }
    Ok(())
}

fn check_port(doc: &SwitchDoc, port: &PortDoc) -> Result<(), Finding> {
    let key = |key: &str| format!("port.{}.{key}", port.name);
    // IFNAMSIZ is 16 with its terminator.
    let long = port.ifname.len() > 15;
    // What the kernel refuses (dev_valid_name), and what a shell can't show.
    let odd = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    let dots = matches!(port.ifname.as_str(), "." | "..");
    if port.ifname.is_empty() || long || dots || port.ifname.contains(odd) {
        let message = format!("{:?} can't be a netdev's name", port.ifname);
        return Err(Finding::new(key("ifname"), message, "use what `ip link` shows"));
    }
    if port.netns.as_deref() == Some("") {
        let fix = "remove the key for our own, or name one of `ip netns`";
        return Err(Finding::new(key("netns"), "an empty name", fix));
    }
    if let Some(netns) = port.netns.as_deref() {
        if matches!(netns, "." | "..") || netns.contains(char::is_control) || netns.ends_with('/') {
            let message = format!("{netns:?} can't be a network namespace");
            let fix = "name one of `ip netns`, or a path such as /proc/1234/ns/net";
            return Err(Finding::new(key("netns"), message, fix));
        }
    }
    let speed = port.speed.0.bits_per_second();
    if speed > FASTEST_WITHOUT_LEAVE && !port.allow_slow_refresh {
        let message = "above 25G half of the longest pause is shorter than a CPU switch may \
                       take to refresh it";
        let fix = "declare a lower speed, or set allow_slow_refresh = true and mind the risk";
        let finding = Finding::new(key("speed"), message, fix);
        return Err(finding.numbers(rate_text(speed), rate_text(FASTEST_WITHOUT_LEAVE)));
    }
    within(&key("speed"), speed, 1_000_000, 1_600_000_000_000)?;
    if let Some(mtu) = port.mtu {
        within(&key("mtu"), u64::from(mtu), 68, u64::from(MAX_FRAME_LEN - FRAME_OVERHEAD))?;
    }
    if let Some(queues) = port.queues {
        within(&key("queues"), u64::from(queues), 1, 64)?;
    }
    if let Some(worker) = port.worker {
        let workers = match doc.workers {
            Workers::Count(count) => u64::from(count),
            Workers::Auto => MAX_WORKERS as u64,
        };
        within(&key("worker"), u64::from(worker), 0, workers - 1)?;
    }
    check_vlans(doc, port)?;
    check_wire(doc, port)
}

fn check_vlans(doc: &SwitchDoc, port: &PortDoc) -> Result<(), Finding> {
    let key = |key: &str| format!("port.{}.{key}", port.name);
    for vlan in &port.vlans {
        within(&key("vlans"), u64::from(*vlan), 1, 4094)?;
    }
    if let Some(pvid) = port.pvid {
        within(&key("pvid"), u64::from(pvid), 0, 4094)?;
    }
    let named = if port.pvid.is_some() { "pvid" } else { "vlans" };
    if !doc.fdb.vlan_aware && (!port.vlans.is_empty() || port.pvid.is_some()) {
        let message = "VLANs of a port mean nothing to a transparent switch";
        let fix = "set fdb.vlan_aware = true, or remove the key";
        return Err(Finding::new(key(named), message, fix));
    }
    Ok(())
}

fn check_wire(doc: &SwitchDoc, port: &PortDoc) -> Result<(), Finding> {
    let Some(peer) = &port.wire else { return Ok(()) };
    let key = format!("port.{}.wire", port.name);
    if *peer == port.name {
        return Err(Finding::new(key, "a port can't be patched to itself", "name another port"));
    }
    let Some(other) = doc.ports.iter().find(|other| other.name == *peer) else {
        let fix = format!("use one of {}", doc.port_names().join(", "));
        return Err(Finding::new(key, format!("there is no port {peer:?}"), fix));
    };
    if other.wire.as_deref() != Some(&port.name) {
        let message = format!("{peer:?} isn't patched back to {:?}", port.name);
        return Err(Finding::new(key, message, format!("set its wire = {:?}", port.name)));
    }
    Ok(())
}

fn check_static(doc: &SwitchDoc, number: usize, entry: &StaticDoc) -> Result<(), Finding> {
    let key = |key: &str| format!("fdb.static.{number}.{key}");
    let Some(mac) = parse_mac(&entry.mac) else {
        let message = format!("{:?} is no MAC address", entry.mac);
        return Err(Finding::new(key("mac"), message, "write 02:00:00:00:00:01"));
    };
    if mac[0] & 1 != 0 {
        let message = format!("{} is a group address", entry.mac);
        return Err(Finding::new(key("mac"), message, "static entries are for single stations"));
    }
    if !doc.ports.iter().any(|port| port.name == entry.port) {
        let fix = format!("use one of {}", doc.port_names().join(", "));
        return Err(Finding::new(key("port"), format!("there is no port {:?}", entry.port), fix));
    }
    match (doc.fdb.vlan_aware, entry.vlan) {
        (true, Some(vlan)) => within(&key("vlan"), u64::from(vlan), 1, 4094),
        (false, None) => Ok(()),
        (true, None) => Err(Finding::new(
            key("vlan"),
            "a VLAN-aware switch needs the entry's VLAN",
            "add vlan = 1..4094",
        )),
        (false, Some(_)) => Err(Finding::new(
            key("vlan"),
            "VLANs mean nothing to a transparent switch",
            "set fdb.vlan_aware = true, or remove the key",
        )),
    }
}
