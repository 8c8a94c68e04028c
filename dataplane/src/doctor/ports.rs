//! The netdevs of a switch file: what bring-up would find, do, and miss. All of a port is judged
//! from one [`Survey`]; the netdev is asked once.

use super::drivers::{support, Support};
use super::judge::{Kernel, FRAGMENTS};
use crate::config::Config;
use crate::opening::LONGEST_MTU;
use holdfast_api::doctor::{Condition, Health};
use holdfast_api::nics::known;
use holdfast_api::switch_doc::PortDoc;
use holdfast_xsk::{look, survey, Netns, Survey, SurveyedPeer, ONE_PAGE_MTU};

/// Looks at each port's netdev.
pub(super) fn ports(config: &Config, kernel: Kernel) -> Vec<Condition> {
    config.switch.ports.iter().flat_map(|port| one(port, kernel)).collect()
}

fn one(doc: &PortDoc, kernel: Kernel) -> Vec<Condition> {
    let netns = Netns::parse(doc.netns.as_deref());
    let id = |part: &str| format!("port {} {part}", doc.name);
    let why = "a port is a netdev in a network namespace";
    let found = survey(&netns, &doc.ifname).and_then(|s| look(&netns, &doc.ifname).map(|l| (s, l)));
    let (seen, queues) = match found {
        Ok((seen, looked)) => (seen, (looked.queues, looked.most_queues)),
        Err(error) => {
            let fix = "make the netdev, or correct netns and ifname in the switch file";
            let found = Condition::new(id("netdev"), Health::Missing, error.to_string(), why);
            return vec![found.fix(fix)];
        }
    };
    let what = format!("{netns}/{} is there, driver {}", doc.ifname, named(&seen.driver));
    let mut all = vec![
        Condition::new(id("netdev"), Health::Ok, what, why),
        driver(id("driver"), &seen),
        link(id("link"), doc, &seen),
        mtu(id("mtu"), doc, &seen, kernel),
        channels(id("queues"), doc, queues),
        offloads(id("offloads"), &seen),
    ];
    all.extend(pfc(id("pfc"), &seen));
    all.extend(peer(id("peer"), &seen));
    all
}

fn named(driver: &str) -> &str {
    if driver.is_empty() {
        "unknown"
    } else {
        driver
    }
}

fn driver(id: String, seen: &Survey) -> Condition {
    let why =
        "XDP in the driver is faster than the kernel's generic path, and no copy faster still";
    let name = named(&seen.driver);
    match support(&seen.driver) {
        Support::ZeroCopy => {
            let what = format!("{name}: native XDP, zero-copy where the queue offers it");
            Condition::new(id, Health::Ok, what, why)
        }
        Support::Native => {
            Condition::new(id, Health::Ok, format!("{name}: native XDP, frames are copied"), why)
        }
        Support::Unknown => {
            let what =
                format!("{name}: nothing is known of its XDP; the generic path always works");
            let fix = "see what `holdfast show ports` says the port got";
            Condition::new(id, Health::Degraded, what, why).fix(fix)
        }
    }
}

fn link(id: String, doc: &PortDoc, seen: &Survey) -> Condition {
    let why = "shaper and pause times count by the declared speed";
    let declared = doc.speed.0.bits_per_second();
    let speed = seen.megabits.map(|megabits| u64::from(megabits) * 1_000_000);
    let gigabits = |bits: u64| format!("{} Mbit/s", bits / 1_000_000);
    let veth = seen.peer.is_some();
    match speed {
        _ if !seen.admin_up => {
            Condition::new(id, Health::Ok, "the link is down; bring-up sets it up", why)
        }
        _ if !seen.up => Condition::new(id, Health::Degraded, "the link has no carrier", why)
            .fix("plug it in, or set the other end up"),
        Some(bits) if !veth && bits != declared => {
            let what = format!("the link has {}, declared {}", gigabits(bits), gigabits(declared));
            Condition::new(id, Health::Degraded, what, why).fix("declare the link's own speed")
        }
        _ => {
            let own = if veth { " (a veth has none of its own)" } else { "" };
            Condition::new(id, Health::Ok, format!("up, declared {}{own}", gigabits(declared)), why)
        }
    }
}

fn mtu(id: String, doc: &PortDoc, seen: &Survey, kernel: Kernel) -> Condition {
    let why = "frames up to the MTU are forwarded whole";
    let mtu = doc.mtu.map_or(seen.mtu, u32::from);
    let found = |state, what: String| Condition::new(id, state, what, why);
    if mtu > u32::from(LONGEST_MTU) {
        let what = format!("MTU {mtu}, at most {LONGEST_MTU}");
        return found(Health::Missing, what).fix("lower it, or set mtu in the switch file");
    }
    if mtu > ONE_PAGE_MTU && kernel < FRAGMENTS {
        let what = format!("MTU {mtu}: this kernel's AF_XDP takes at most {ONE_PAGE_MTU}");
        return found(Health::Missing, what).fix("lower it, or boot Linux 6.6 or later");
    }
    match doc.mtu {
        Some(wanted) if u32::from(wanted) != seen.mtu => {
            found(Health::Ok, format!("MTU {} will be set to {wanted}", seen.mtu))
        }
        _ => found(Health::Ok, format!("MTU {mtu}")),
    }
}

fn channels(id: String, doc: &PortDoc, (present, most): (u32, u32)) -> Condition {
    let why = "frames on a queue that no socket is bound to never reach the switch";
    let wanted = doc.queues.unwrap_or(present);
    let found = |state, what: String| Condition::new(id, state, what, why);
    if wanted > most {
        let what = format!("{wanted} queues wanted, at most {most} there");
        return found(Health::Missing, what)
            .fix("lower queues in the switch file, or leave it out");
    }
    if wanted == present {
        return found(Health::Ok, format!("{present} queues, all bound"));
    }
    found(Health::Ok, format!("{present} queues will be made {wanted}"))
}

fn offloads(id: String, seen: &Survey) -> Condition {
    let why = "frames must come as they were on the wire: with their tags, one by one";
    if !seen.stays_on.is_empty() {
        let what = format!("can't be switched off: {}", seen.stays_on.join(", "));
        let fix = "use another netdev, or expect frames without tags or glued together";
        return Condition::new(id, Health::Degraded, what, why).fix(fix);
    }
    let pause = seen.link_pause.then(|| "802.3x pause".to_owned());
    let names: Vec<String> = seen.will_switch_off.iter().cloned().chain(pause).collect();
    let what = match names.as_slice() {
        [] => "nothing to switch off".to_owned(),
        names => format!("will be switched off: {}", names.join(", ")),
    };
    Condition::new(id, Health::Ok, what, why)
}

fn pfc(id: String, seen: &Survey) -> Option<Condition> {
    let nic = known(&seen.driver).filter(|nic| nic.is_doubtful())?;
    let (sends, receives) = (nic.sends.name(), nic.receives.name());
    let name = named(&seen.driver);
    let what = format!("PFC frames on NICs of {name}: sent {sends}, received {receives}");
    let why = format!("without PFC frames both ways nothing is lossless here; {}", nic.note);
    let fix = "try it: holdfast preflight PORT --peer PORT2 (deploy/NICS.md)";
    Some(Condition::new(id, Health::Degraded, what, why).fix(fix))
}

fn peer(id: String, seen: &Survey) -> Option<Condition> {
    let why = "a host behind a veth must fill in checksums and tags: no hardware does it";
    Some(match seen.peer.as_ref()? {
        SurveyedPeer::OutOfReach => {
            Condition::new(id, Health::Degraded, "the veth's other end can't be reached", why)
                .fix("there: ethtool -K DEV tx off txvlan off")
        }
        SurveyedPeer::WillSwitchOff(names) if names.is_empty() => {
            Condition::new(id, Health::Ok, "nothing to switch off at the veth's other end", why)
        }
        SurveyedPeer::WillSwitchOff(names) => {
            let what =
                format!("at the veth's other end will be switched off: {}", names.join(", "));
            Condition::new(id, Health::Ok, what, why)
        }
    })
}

#[cfg(test)]
mod tests;
