//! PORT and CABLE_LENGTH: which ports there are, and what their Headroom depends on.

use super::config_db::{port_list, ConfigDb, Row};
use super::Notes;
use holdfast_api::amount::rate_text;
use holdfast_api::doc::Finding;
use holdfast_api::switch_doc::is_name;
use holdfast_core::ids::MAX_PORTS;
use holdfast_core::units::BitRate;

/// SONiC's MTU where PORT has none.
const DEFAULT_MTU: u16 = 9_100;
/// Longer frames than any MAC takes.
const MAX_MTU: u16 = 9_216;

/// One port.
#[derive(Debug)]
pub(super) struct Port {
    pub name: String,
    /// `None` where PORT doesn't say.
    pub speed: Option<BitRate>,
    pub mtu: u16,
    /// Whether PORT turns it off: it holds no Headroom then.
    pub down: bool,
    /// Its cable as CABLE_LENGTH has it.
    pub cable: Option<String>,
}

/// The key of the row whose maps hold for all ports.
pub(super) const GLOBAL: &str = "global";

/// The ports of PORT, or, where there is no such table, all that other tables name.
pub(super) fn read(db: &ConfigDb, notes: &mut Notes) -> Result<Vec<Port>, Finding> {
    let mut ports = Vec::new();
    for (name, row) in db.table("PORT") {
        ports.push(port(name, row, notes)?);
    }
    if ports.is_empty() {
        ports = named_elsewhere(db);
    }
    for port in &ports {
        if !is_name(&port.name) {
            let message = format!("{:?} can't be a port's name", port.name);
            let fix = "use 1 to 32 letters, digits, - and _";
            return Err(Finding::new(format!("PORT|{}", port.name), message, fix));
        }
    }
    if ports.len() > MAX_PORTS {
        let fix = "import the ports that are used, or one part of the switch";
        return Err(Finding::new("PORT", "too many ports", fix).numbers(ports.len(), MAX_PORTS));
    }
    cables(db, &mut ports)?;
    Ok(ports)
}

fn port(name: &str, row: &Row, notes: &mut Notes) -> Result<Port, Finding> {
    let megabits = row.number("speed", 10u64, 1_600_000)?;
    let speed = megabits.and_then(|megabits| BitRate::new(megabits * 1_000_000));
    if let Some(speed) = speed {
        let became = format!(
            "a profile has no speeds: declare speed = \"{}\" in switch.toml",
            rate_text(speed.bits_per_second())
        );
        notes.say("PORT|…|speed", became);
    }
    if row.get("pfc_asym").is_some_and(|mode| mode != "off") {
        let message = "asymmetric PFC can't be expressed: what is paused is also obeyed";
        return Err(Finding::new(row.at("pfc_asym"), message, "turn it off"));
    }
    let mtu = row.number("mtu", 68, MAX_MTU)?.unwrap_or(DEFAULT_MTU);
    let down = row.get("admin_status") == Some("down");
    Ok(Port { name: name.to_owned(), speed, mtu, down, cable: None })
}

/// Templates bind buffers to ports without a PORT table.
fn named_elsewhere(db: &ConfigDb) -> Vec<Port> {
    let mut names: Vec<String> = Vec::new();
    for table in ["BUFFER_PG", "BUFFER_QUEUE", "QUEUE", "PORT_QOS_MAP"] {
        for key in db.table(table).keys() {
            let ports = key.split('|').next().unwrap_or_default();
            names.extend(port_list(ports).into_iter().filter(|name| name != GLOBAL));
        }
    }
    names.sort_unstable();
    names.dedup();
    let port = |name| Port { name, speed: None, mtu: DEFAULT_MTU, down: false, cable: None };
    names.into_iter().map(port).collect()
}

fn cables(db: &ConfigDb, ports: &mut [Port]) -> Result<(), Finding> {
    for row in db.table("CABLE_LENGTH").values() {
        for (name, length) in row.fields() {
            let Some(port) = ports.iter_mut().find(|port| port.name == name) else { continue };
            if let Some(other) = port.cable.replace(length.to_owned()) {
                let message = format!("{name} has two cables, {other} and {length}");
                return Err(Finding::new(row.at(name), message, "leave one of them"));
            }
        }
    }
    Ok(())
}

/// The places in `ports` that a key names.
pub(super) fn places(ports: &[Port], names: &[String], row: &Row) -> Result<Vec<usize>, Finding> {
    let mut places = Vec::with_capacity(names.len());
    for name in names {
        let Some(place) = ports.iter().position(|port| port.name == *name) else {
            let message = format!("there is no port {name:?} in PORT");
            return Err(Finding::new(&row.place, message, "add the port, or remove it here"));
        };
        places.push(place);
    }
    Ok(places)
}
