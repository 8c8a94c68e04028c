//! Ranges and relations of `switch.toml`.

use super::*;
use std::collections::BTreeSet;

pub(super) fn check(doc: &SwitchDoc) -> Result<(), Finding> {
    name("name", &doc.name)?;
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
    within("fdb.size", u64::from(doc.fdb.size), 16, 1 << 20)?;
    within("fdb.ageing", doc.fdb.ageing.0 .0 / 1_000_000_000, 1, 1_000_000)?;
    within("fdb.flood_limit", u64::from(doc.fdb.flood_limit), 0, 1 << 20)?;
    within("trace.events", u64::from(doc.trace.events), 64, 1 << 22)?;
    within("port", doc.ports.len() as u64, 1, MAX_PORTS as u64)?;
    identities(doc)?;
    for port in &doc.ports {
        check_port(doc, port)?;
    }
    doc.fdb.statics.iter().enumerate().try_for_each(|(n, entry)| check_static(doc, n, entry))
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
    if port.ifname.is_empty() || long || port.ifname.contains(['/', ' ', '\n']) {
        let message = format!("{:?} can't be a netdev's name", port.ifname);
        return Err(Finding::new(key("ifname"), message, "use what `ip link` shows"));
    }
    if port.netns.as_deref() == Some("") {
        let fix = "remove the key for our own, or name one of `ip netns`";
        return Err(Finding::new(key("netns"), "an empty name", fix));
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
