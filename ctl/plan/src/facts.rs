//! What a plan has to know of the machine.

use holdfast_api::switch_doc::{PortDoc, SwitchDoc};
use holdfast_core::profile::Trust;
use holdfast_core::units::BitRate;

/// What a plan has to know of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFacts {
    /// Its name.
    pub name: String,
    /// Its declared speed.
    pub speed: BitRate,
    /// Its MTU, bytes.
    pub mtu: u16,
    /// What it believes, where switch.toml says so.
    pub trust: Option<Trust>,
    /// Whether it obeys 802.3x PAUSE.
    pub link_pause: bool,
}

impl PortFacts {
    /// The place of a port that isn't there now. It has no name, and a plan gives it nothing.
    pub fn vacant() -> Self {
        let speed = BitRate::gigabits(1);
        Self { name: String::new(), speed, mtu: 1500, trust: None, link_pause: false }
    }

    /// Whether there is no port.
    pub fn is_vacant(&self) -> bool {
        self.name.is_empty()
    }
}

/// What a plan has to know of the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchFacts {
    /// The ports in the order of their ids.
    pub ports: Vec<PortFacts>,
    /// Copies of flooded frames that may be under way at once.
    pub flood_limit: u32,
    /// RX ring entries of each socket.
    pub rx_ring: u32,
    /// Ports that may be added while the switch runs: the memory has parts for them, too.
    pub spare_ports: u32,
}

impl SwitchFacts {
    /// The facts of a switch file; `mtu_of` gives the netdev's MTU where the file has none.
    pub fn new(doc: &SwitchDoc, mut mtu_of: impl FnMut(&PortDoc) -> u16) -> Self {
        let facts = |port: &PortDoc| PortFacts {
            name: port.name.clone(),
            speed: port.speed.0,
            mtu: port.mtu.unwrap_or_else(|| mtu_of(port)),
            trust: port.trust.map(Trust::from),
            link_pause: port.link_pause,
        };
        Self {
            ports: doc.ports.iter().map(facts).collect(),
            flood_limit: doc.fdb.flood_limit,
            rx_ring: doc.rings.rx,
            spare_ports: doc.spare_ports,
        }
    }

    /// The ports' names in order.
    pub fn names(&self) -> Vec<String> {
        self.ports.iter().map(|port| port.name.clone()).collect()
    }
}
