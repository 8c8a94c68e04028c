//! The part of a port's reading that depends on what kind of port it is: here AF_XDP.

use crate::switch::PortInfo;
use holdfast_api::message::XdpMode;
use holdfast_core::io::PortIo;
use holdfast_core::units::Time;
use holdfast_xsk::XskPort;

/// What only the rings of a port know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RingReading {
    /// Frames waiting in the RX rings.
    pub(crate) backlog: u32,
    /// Chunks that are lent to its receiving side.
    pub(crate) chunks: u32,
    /// Why the link isn't usable, where it isn't.
    pub(crate) down_reason: Option<String>,
}

/// What is known of a port from its opening on.
#[derive(Clone, Debug)]
pub(crate) struct PortFacts {
    /// Its name in CLI, API and metrics.
    pub(crate) name: String,
    /// The network namespace as configured; `None` for the switch's own.
    pub(crate) netns: Option<String>,
    /// Its netdev.
    pub(crate) ifname: String,
    /// How its XDP program is attached.
    pub(crate) xdp_mode: XdpMode,
    /// Whether the driver shares its memory with us.
    pub(crate) zero_copy: bool,
    /// RX queues that are bound.
    pub(crate) queues: u32,
    /// Entries of the RX ring of each queue.
    pub(crate) rx_ring: u32,
    /// What bring-up changed, and what it couldn't reach.
    pub(crate) notes: Vec<String>,
    /// Since when the port has been there; the beginning of time for one that came with the switch.
    pub(crate) since: Time,
}

/// Reads the rings of an AF_XDP port; the kernel counts for it.
pub(crate) fn live_rings(port: &mut XskPort) -> RingReading {
    let link = port.link();
    let down_reason = if link.is_gone() {
        Some("its netdev is gone".to_owned())
    } else if link.is_up() {
        None
    } else {
        Some("its link is down".to_owned())
    };
    RingReading { backlog: port.rx_backlog(), chunks: port.held().rx, down_reason }
}

impl From<PortInfo> for PortFacts {
    fn from(info: PortInfo) -> Self {
        let PortInfo { name, netns, ifname, status } = info;
        let changes = status.changes.iter().map(|change| {
            format!("{}: {} {} -> {}", change.device, change.what, change.from, change.to)
        });
        Self {
            name,
            netns,
            ifname,
            xdp_mode: match status.xdp {
                holdfast_xsk::XdpMode::Native => XdpMode::Native,
                holdfast_xsk::XdpMode::Generic => XdpMode::Generic,
            },
            zero_copy: status.zero_copy,
            queues: status.queues,
            rx_ring: status.rings.rx,
            notes: changes.chain(status.notes.iter().cloned()).collect(),
            since: Time::default(),
        }
    }
}
