//! `holdfast-dataplane --doctor`: whether a switch can run here, and what would be degraded
//! (SPEC 11). Everything is read or tried and let go of; nothing on the machine changes.
//!
//! [`machine`] reads, [`judge`] says what that means, [`places`] looks at folders, [`ports`] at the
//! netdevs of a switch file, with what [`drivers`] knows of their drivers.

pub(crate) mod drivers;
mod judge;
mod machine;
mod places;
mod ports;

use crate::config::Config;
use crate::opening::{look_at_all, Seen};
use holdfast_api::doctor::{Condition, DoctorReport, Health};
use holdfast_xsk::{CHUNK_BYTES, CONTROL_CHUNKS};
use judge::Kernel;
use machine::Machine;
use std::path::Path;

/// What a switch file asks of the machine.
pub(crate) struct Needs {
    /// Bytes of frame memory.
    pub(crate) memory: u64,
    /// Worker threads.
    pub(crate) workers: usize,
}

/// Looks at the machine, and at what a switch file asks of it.
pub(crate) fn examine(file: Option<&Path>) -> DoctorReport {
    let machine = Machine::read();
    let kernel = Kernel::parse(&machine.kernel);
    let mut conditions = Vec::new();
    let config = file.and_then(|file| match Config::load(file) {
        Ok(config) => Some(config),
        Err(error) => {
            conditions.push(unreadable(&error.to_string()));
            None
        }
    });
    let needs = config.as_ref().and_then(|config| match needs(config) {
        Ok(needs) => Some(needs),
        Err(why) => {
            conditions.push(unreadable(&why));
            None
        }
    });
    let mut all = judge::judge(&machine, needs.as_ref());
    all.extend(places::places(config.as_ref(), machine.group));
    all.append(&mut conditions);
    if let Some(config) = &config {
        all.extend(ports::ports(config, kernel));
    }
    DoctorReport::new(env!("CARGO_PKG_VERSION"), all)
}

fn unreadable(why: &str) -> Condition {
    let text = "a switch boots from its file and the profile that it names, or not at all";
    Condition::new("switch-file", Health::Missing, why, text).fix("mend what it says")
}

/// Memory as the boot would lay it out: with the netdevs as they are where they can be looked at,
/// else as the file has them.
fn needs(config: &Config) -> Result<Needs, String> {
    let seen = look_at_all(config).unwrap_or_default();
    let plan = config.plan(|n| seen.get(n).map(|seen: &Seen| seen.mtu));
    let plan = plan.map_err(|error| error.to_string())?;
    let layout = config.layout(plan.spec(), |n| seen.get(n).map(|seen| seen.queues));
    let chunks = layout.map_err(|error| error.to_string())?.chunks();
    let memory = (u64::from(chunks) + u64::from(CONTROL_CHUNKS)) * CHUNK_BYTES as u64;
    Ok(Needs { memory, workers: config.worker_count() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever machine this is: each subject is there once, with a reason, and what isn't well has
    /// something to do.
    #[test]
    fn every_condition_has_its_reason_and_its_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("switch.toml");
        let switch = "name = \"lab\"\nprofile = \"p.toml\"\n[[port]]\nname = \"h1\"\n\
                      ifname = \"no-such\"\nspeed = \"1G\"\n";
        std::fs::write(&file, switch).unwrap();
        let profile = include_str!("../../../deploy/profiles/veth-lab-1g.toml");
        std::fs::write(folder.path().join("p.toml"), profile).unwrap();
        let report = examine(Some(&file));
        assert!(!report.can_run, "its netdev doesn't exist");
        let mut ids: Vec<_> = report.conditions.iter().map(|found| found.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), report.conditions.len(), "{ids:?}");
        for found in &report.conditions {
            assert!(!found.what.is_empty() && !found.why.is_empty(), "{found:?}");
            assert!(found.state == Health::Ok || found.fix.is_some(), "{found:?}");
        }
        let port = report.conditions.iter().find(|found| found.id == "port h1 netdev").unwrap();
        assert_eq!(port.state, Health::Missing);
        assert!(port.what.contains("no such netdev"), "{port:?}");
        std::fs::write(&file, "name = 3\n").unwrap();
        let report = examine(Some(&file));
        let wrong = report.conditions.iter().find(|found| found.id == "switch-file").unwrap();
        assert!(!report.can_run && wrong.what.contains("switch.toml:1"), "{wrong:?}");
    }
}
