//! Netdevs become ports: looked at first, opened when the memory is there. Whatever fails is said
//! with the line of the switch file.

use crate::config::Config;
use holdfast_api::doc::Finding;
use holdfast_api::switch_doc::{PortDoc, XdpDoc};
use holdfast_core::frame::MAX_FRAME_LEN;
use holdfast_core::profile::FRAME_OVERHEAD;
use holdfast_xsk::{
    look, open_port, CopyPreference, LosslessMap, Memory, Netns, PortConfig, PortGuard, UndoLog,
    XdpPreference, XskError, XskPort,
};
use std::error::Error;

type Failure = Box<dyn Error>;

/// The longest MTU whose frames a descriptor can describe.
pub const LONGEST_MTU: u16 = MAX_FRAME_LEN - FRAME_OVERHEAD;

/// What a port's netdev is before anything is done to it.
pub struct Seen {
    /// Its MTU, or the one that the switch file asks for.
    pub mtu: u16,
    /// RX queues that will be bound.
    pub queues: u32,
}

/// A port between being opened and being given to its worker.
pub struct Opened {
    /// The worker's end: closed before the guard puts the link back.
    pub io: XskPort,
    /// What puts it back.
    pub guard: PortGuard,
}

/// Looks at all netdevs before the first one is touched and before memory is reserved.
///
/// # Errors
/// In words for the operator: a netns or netdev that isn't there, an MTU that is too long, more
/// queues than there can be.
pub fn look_at_all(config: &Config) -> Result<Vec<Seen>, Failure> {
    config.switch.ports.iter().map(|port| look_at(config, port)).collect()
}

fn look_at(config: &Config, doc: &PortDoc) -> Result<Seen, Failure> {
    let seen = look(&Netns::parse(doc.netns.as_deref()), &doc.ifname)
        .map_err(|error| failed(config, doc, &error))?;
    let queues = doc.queues.unwrap_or(seen.queues);
    if queues > seen.most_queues {
        let message = format!("the netdev {:?} has fewer RX queues", doc.ifname);
        let fix = "lower it, or remove the key to bind those that there are";
        let finding = Finding::new(format!("port.{}.queues", doc.name), message, fix);
        return Err(config.locate(finding.numbers(queues, seen.most_queues)).into());
    }
    let mtu = match doc.mtu {
        Some(mtu) => mtu,
        None => mtu(config, doc, seen.mtu)?,
    };
    Ok(Seen { mtu, queues })
}

/// A netdev's MTU as the core has it.
///
/// # Errors
/// In words for the operator, if its frames are too long for a descriptor.
pub fn mtu(config: &Config, doc: &PortDoc, mtu: u32) -> Result<u16, Failure> {
    let fits = u16::try_from(mtu).ok().filter(|mtu| *mtu <= LONGEST_MTU);
    fits.ok_or_else(|| {
        let message = format!("the MTU of the netdev {:?} is too long for a switch", doc.ifname);
        let fix = "set mtu in this section, or lower it by ip link set mtu";
        let finding = Finding::new(format!("port.{}.mtu", doc.name), message, fix);
        config.locate(finding.numbers(mtu, LONGEST_MTU)).into()
    })
}

/// An error of a port, at the key of the switch file that it is about.
fn failed(config: &Config, doc: &PortDoc, error: &XskError) -> Failure {
    let (key, fix) = match error {
        XskError::Netns { .. } => ("netns", "make it by ip netns add, or correct the key"),
        XskError::NoDevice { .. } => ("ifname", "use a netdev that ip link shows there"),
        XskError::Queues { .. } => ("queues", "lower it, or remove the key"),
        XskError::Mtu { .. } => ("mtu", "lower it"),
        XskError::Attach { .. } => ("xdp", "see README: what a netdev must be able to do"),
        _ => ("ifname", "mend what the kernel says, or use another netdev"),
    };
    let text = error.to_string();
    let (message, fix) = text.split_once("; ").unwrap_or((&text, fix));
    config.locate(Finding::new(format!("port.{}.{key}", doc.name), message, fix)).into()
}

/// Opens a port; what it changes is in the log of what to put back before.
///
/// # Errors
/// In words for the operator; nothing stays changed then.
pub fn open(
    memory: &Memory,
    config: &Config,
    doc: &PortDoc,
    undo: &UndoLog,
) -> Result<Opened, Failure> {
    let port = PortConfig {
        netns: Netns::parse(doc.netns.as_deref()),
        ifname: doc.ifname.clone(),
        queues: doc.queues,
        rings: config.rings(),
        mtu: doc.mtu.map(u32::from),
        xdp: match doc.xdp {
            XdpDoc::Auto => XdpPreference::Auto,
            XdpDoc::Native => XdpPreference::Native,
            XdpDoc::Generic => XdpPreference::Generic,
        },
        copy: if doc.zero_copy { CopyPreference::Auto } else { CopyPreference::Copy },
        lossless: LosslessMap::default(),
        undo: undo.clone(),
    };
    let (io, guard) = open_port(memory, &port).map_err(|error| failed(config, doc, &error))?;
    let status = guard.status();
    log::info!(
        "port {}: {} {:?}, {} queues, MTU {}, {}",
        doc.name,
        status.driver,
        status.xdp,
        status.queues,
        status.mtu,
        status.mac
    );
    for change in &status.changes {
        let (device, what, from, to) = (&change.device, &change.what, &change.from, &change.to);
        log::info!("port {}: {device}: {what} {from} -> {to}", doc.name);
    }
    status.notes.iter().for_each(|note| log::warn!("port {}: {note}", doc.name));
    Ok(Opened { io, guard })
}
