//! Who owns which port and where frames may go: what a restart or a port change decides.

use crate::ids::{PerPort, PortId, WorkerId, MAX_PORTS};

/// VLAN ids there are; 0 stands for "no VLAN" in a transparent switch.
const VLANS: usize = 4096;

/// A set of ports, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSet(pub u64);

const _: () = assert!(MAX_PORTS <= 64, "a port set is one word");

impl PortSet {
    /// Only this port.
    pub const fn only(port: PortId) -> Self {
        Self(1 << port.index())
    }

    /// Whether `port` is in it.
    #[inline]
    pub const fn contains(self, port: PortId) -> bool {
        self.0 & (1 << port.index()) != 0
    }

    /// Those in either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Without `port`.
    #[must_use]
    pub const fn without(self, port: PortId) -> Self {
        Self(self.0 & !(1 << port.index()))
    }

    /// Whether no port is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its members in order.
    pub fn iter(self) -> impl Iterator<Item = PortId> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let port = PortId::from_bits(left.trailing_zeros() as u8);
            left &= left - 1;
            Some(port)
        })
    }
}

/// What happens to reserved group addresses other than 01-80-C2-00-00-0x (SPEC 7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReservedGroups {
    /// Only 01-80-C2-00-00-0x is dropped, the rest of the block is forwarded as multicast.
    #[default]
    Forward,
    /// The whole block 01-80-C2-00-00-xx is dropped.
    Drop,
}

/// The place of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPlace {
    /// The worker that owns it.
    pub owner: WorkerId,
    /// The other end, if the port is patched through (`wire`, SPEC 7).
    pub wire_peer: Option<PortId>,
    /// VLANs it takes part in; of use where the switch is VLAN-aware.
    pub vlans: Vec<u16>,
    /// The VLAN of its untagged frames.
    pub pvid: u16,
}

/// The places of all ports.
#[derive(Clone, Debug)]
pub struct Topology {
    places: PerPort<Option<PortPlace>>,
    vlan_aware: bool,
    reserved_groups: ReservedGroups,
    /// Ports of each VLAN that flood to each other; wire ports are in none.
    members: Vec<PortSet>,
}

impl Topology {
    /// A switch of these ports, numbered in order; more than [`MAX_PORTS`] are cut off.
    pub fn new(
        ports: impl IntoIterator<Item = PortPlace>,
        vlan_aware: bool,
        reserved_groups: ReservedGroups,
    ) -> Self {
        let mut ports = ports.into_iter();
        Self::of(PerPort::from_fn(|_| ports.next()), vlan_aware, reserved_groups)
    }

    /// The same but for one port, which is there or isn't.
    #[must_use]
    pub fn with(&self, port: PortId, place: Option<PortPlace>) -> Self {
        let mut places = self.places.clone();
        places[port] = place;
        Self::of(places, self.vlan_aware, self.reserved_groups)
    }

    fn of(
        places: PerPort<Option<PortPlace>>,
        vlan_aware: bool,
        reserved_groups: ReservedGroups,
    ) -> Self {
        let mut members = vec![PortSet::default(); if vlan_aware { VLANS } else { 1 }];
        for (port, place) in places.iter() {
            let Some(place) = place else { continue };
            if place.wire_peer.is_some() {
                continue;
            }
            let all = [0];
            let vlans = if vlan_aware { &place.vlans[..] } else { &all[..] };
            let own = vlan_aware.then_some(place.pvid);
            for vlan in vlans.iter().copied().chain(own) {
                if let Some(set) = members.get_mut(usize::from(vlan)) {
                    *set = set.or(PortSet::only(port));
                }
            }
        }
        Self { places, vlan_aware, reserved_groups, members }
    }

    /// The place of a port, `None` if there is no such port.
    #[inline]
    pub fn place(&self, port: PortId) -> Option<&PortPlace> {
        self.places[port].as_ref()
    }

    /// The owner of a port.
    #[inline]
    pub fn owner(&self, port: PortId) -> Option<WorkerId> {
        self.place(port).map(|place| place.owner)
    }

    /// All ports.
    pub fn ports(&self) -> impl Iterator<Item = (PortId, &PortPlace)> {
        self.places.iter().filter_map(|(port, place)| place.as_ref().map(|place| (port, place)))
    }

    /// What happens to reserved groups beyond 01-80-C2-00-00-0x.
    pub const fn reserved_groups(&self) -> ReservedGroups {
        self.reserved_groups
    }

    /// The VLAN a frame belongs to on `port`, given the VID of its outer tag (0 if priority-tagged
    /// or untagged): 0 in a transparent switch. `None` if the port isn't in that VLAN.
    #[inline]
    pub fn vlan(&self, port: PortId, vid: u16) -> Option<u16> {
        if !self.vlan_aware {
            return Some(0);
        }
        let vlan = if vid == 0 { self.place(port)?.pvid } else { vid };
        self.in_vlan(port, vlan).then_some(vlan)
    }

    /// Whether `port` is a member of `vlan`.
    #[inline]
    pub fn in_vlan(&self, port: PortId, vlan: u16) -> bool {
        self.members(vlan).contains(port)
    }

    /// The ports that flood to each other in `vlan`.
    #[inline]
    pub fn members(&self, vlan: u16) -> PortSet {
        self.members.get(usize::from(vlan)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(vlans: &[u16], pvid: u16, wire_peer: Option<PortId>) -> PortPlace {
        PortPlace { owner: WorkerId::default(), wire_peer, vlans: vlans.to_vec(), pvid }
    }

    #[test]
    fn vlan_membership_decides_who_floods() {
        let ports = [place(&[10], 1, None), place(&[10, 20], 20, None), place(&[], 1, None)];
        let topology = Topology::new(ports, true, ReservedGroups::Forward);
        let port = PortId::from_bits;
        assert_eq!(topology.vlan(port(0), 0), Some(1), "untagged frames take the PVID");
        assert_eq!(topology.vlan(port(0), 20), None);
        assert_eq!(topology.members(10).iter().collect::<Vec<_>>(), [port(0), port(1)]);
        assert_eq!(topology.members(1).iter().collect::<Vec<_>>(), [port(0), port(2)]);
    }

    #[test]
    fn a_port_that_is_taken_out_leaves_its_number_free() {
        let topology = Topology::new(
            [place(&[], 1, None), place(&[], 1, None), place(&[], 1, None)],
            false,
            ReservedGroups::Forward,
        );
        let middle = PortId::from_bits(1);
        let without = topology.with(middle, None);
        let members = |topology: &Topology| {
            topology.members(0).iter().map(PortId::number).collect::<Vec<_>>()
        };
        assert_eq!((members(&without), without.owner(middle)), (vec![0, 2], None));
        assert_eq!(members(&without.with(middle, Some(place(&[], 1, None)))), [0, 1, 2]);
    }

    #[test]
    fn transparent_switch_ignores_vids_and_leaves_wires_out() {
        let wire = |peer| place(&[], 1, Some(PortId::from_bits(peer)));
        let ports = [place(&[], 1, None), wire(2), wire(1), place(&[7], 1, None)];
        let topology = Topology::new(ports, false, ReservedGroups::Forward);
        assert_eq!(topology.vlan(PortId::from_bits(0), 77), Some(0));
        assert_eq!(topology.members(0).iter().map(PortId::number).collect::<Vec<_>>(), [0, 3]);
    }
}
