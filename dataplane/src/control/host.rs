//! `show_host`: the machine below the switch, read when it is asked for. No worker is asked, and no
//! netdev holds the control thread for longer than a worker might.

use super::dispatch::{reply, Answer};
use super::Console;
use crate::doctor::drivers::has_a_wire;
use crate::host::{scheduling, LastLossless, Looker, Netdev, Scheduling};
use crate::report::PortFacts;
use holdfast_api::message::{HostNetdev, HostPeer, HostPort, HostReply, HostWorker, PortFilter};
use holdfast_api::nics::may_keep_mac_control;
use holdfast_core::ids::{PortId, WorkerId};
use holdfast_core::io::PortIo;
use holdfast_core::units::Time;
use holdfast_xsk::{InspectedPeer, Inspection, Netns};
use std::sync::atomic::Ordering;

/// What is remembered for `show_host` between two calls.
pub(super) struct Below {
    looker: Looker,
    /// By port.
    lossless: Vec<LastLossless>,
}

impl Below {
    /// For a switch of so many ports that began at `start`.
    pub(super) fn new(looker: Looker, ports: usize, start: Time) -> Self {
        Self { looker, lossless: vec![LastLossless::since(start); ports] }
    }
}

impl<P: PortIo + 'static> Console<P> {
    /// Looks how many lossless frames the workers have left word of.
    pub(super) fn notice_lossless(&mut self) {
        let now = self.now();
        let threads = &self.board.threads;
        for (number, last) in self.below.lossless.iter_mut().enumerate() {
            let Some(id) = u8::try_from(number).ok().and_then(PortId::new) else { continue };
            let words = threads.iter().map(|(stats, _)| &stats.lossless_frames[id]);
            last.look(words.map(|word| word.load(Ordering::Relaxed)).sum(), now);
        }
    }

    pub(super) fn show_host(&mut self, filter: &PortFilter) -> Answer {
        let only = self.port_if(filter.port.as_ref())?.map(PortId::index);
        let chosen = |number: &usize| {
            self.board.facts(*number).is_some() && only.is_none_or(|only| only == *number)
        };
        let numbers: Vec<usize> = (0..self.board.ports.len()).filter(chosen).collect();
        let facts = || numbers.iter().filter_map(|number| self.board.facts(*number));
        let netdevs = facts().map(|facts| Netdev {
            netns: Netns::parse(facts.netns.as_deref()),
            ifname: facts.ifname.clone(),
        });
        let seen = self.below.looker.look(netdevs.collect());
        let ports = numbers.iter().zip(seen).filter_map(|(number, seen)| self.below(*number, seen));
        let workers = (0..self.board.threads.len()).filter_map(|number| self.worker_below(number));
        reply(&HostReply { ports: ports.collect(), workers: workers.collect() })
    }

    fn below(&self, number: usize, seen: Result<Inspection, String>) -> Option<HostPort> {
        let facts: &PortFacts = self.board.facts(number)?;
        let id = PortId::new(u8::try_from(number).ok()?)?;
        let (netdev, unread) = match seen {
            Ok(inspection) => (Some(netdev(inspection)), None),
            Err(why) => (None, Some(why)),
        };
        Some(HostPort {
            port: facts.name.clone(),
            netns: facts.netns.clone(),
            ifname: facts.ifname.clone(),
            xdp_mode: facts.xdp_mode,
            queues: facts.queues,
            worker: self.board.topology.owner(id).unwrap_or_default().index() as u8,
            lossless_idle_ns: self.below.lossless.get(number)?.idle(self.now()).0,
            netdev,
            unread,
        })
    }

    fn worker_below(&self, number: usize) -> Option<HostWorker> {
        let (stats, _) = self.board.threads.get(number)?;
        let id = WorkerId::new(u8::try_from(number).ok()?)?;
        let owned = self.board.topology.ports().filter(|(_, place)| place.owner == id);
        let thread = stats.thread.load(Ordering::Relaxed);
        let Scheduling { cpus, policy, priority } = scheduling(thread);
        Some(HostWorker {
            worker: id.index() as u8,
            thread: u32::try_from(thread).ok().filter(|thread| *thread > 0),
            ports: owned.map(|(port, _)| self.board.port_name(port)).collect(),
            cpus,
            policy: policy.to_owned(),
            priority,
        })
    }
}

fn netdev(inspection: Inspection) -> HostNetdev {
    let Inspection { driver, offloads, channels, megabits, peer } = inspection;
    let speed = megabits.filter(|_| has_a_wire(&driver));
    HostNetdev {
        may_keep_pfc: may_keep_mac_control(&driver),
        offloads,
        channels,
        link_bits_per_second: speed.map(|megabits| u64::from(megabits) * 1_000_000),
        peer: peer.map(|peer| match peer {
            InspectedPeer::OutOfReach => HostPeer { reached: false, offloads: Vec::new() },
            InspectedPeer::Offloads(offloads) => HostPeer { reached: true, offloads },
        }),
        driver,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A veth reports 10G, a NIC what its wire has (SPEC 1).
    #[test]
    fn only_a_wire_has_a_speed_and_only_some_nics_keep_pfc() {
        let of = |driver: &str| {
            let driver = driver.to_owned();
            netdev(Inspection { driver, megabits: Some(10_000), ..Inspection::default() })
        };
        let veth = of("veth");
        assert_eq!((veth.link_bits_per_second, veth.may_keep_pfc), (None, false));
        let ice = of("ice");
        assert_eq!((ice.link_bits_per_second, ice.may_keep_pfc), (Some(10_000_000_000), true));
        assert!(!of("mlx5_core").may_keep_pfc);
    }
}
