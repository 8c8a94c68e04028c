//! What a lab looks like before it is made.

use crate::LabError;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A whole lab: switches, their ports, and hosts where ports say so.
#[derive(Clone, Debug)]
pub struct LabPlan {
    /// First part of the names of its network namespaces.
    pub prefix: String,
    /// MTU of every netdev.
    pub mtu: u16,
    /// The switches.
    pub switches: Vec<SwitchPlan>,
}

impl LabPlan {
    /// One switch `sw` with the hosts h1..hN at ports of the same names.
    pub fn star(hosts: u8) -> Self {
        Self::of(vec![SwitchPlan::star("sw", hosts)])
    }

    /// These switches, MTU 1500.
    pub fn of(switches: Vec<SwitchPlan>) -> Self {
        Self { prefix: "holdfast-e2e".to_owned(), mtu: 1500, switches }
    }

    /// With another MTU on every netdev.
    #[must_use]
    pub const fn mtu(mut self, mtu: u16) -> Self {
        self.mtu = mtu;
        self
    }

    /// With a change to every switch.
    #[must_use]
    pub fn each(mut self, change: impl Fn(SwitchPlan) -> SwitchPlan) -> Self {
        self.switches = self.switches.into_iter().map(change).collect();
        self
    }
}

/// Where a switch takes its profile from.
#[derive(Clone, Debug)]
pub struct ProfilePlan {
    name: String,
    /// The text, if it is none that is shipped.
    text: Option<String>,
    more: String,
    /// Whether Headroom is held to the profile's formula.
    held: bool,
}

impl ProfilePlan {
    /// `deploy/profiles/NAME.toml` as it is shipped.
    pub fn shipped(name: &str) -> Self {
        Self { name: name.to_owned(), text: None, more: String::new(), held: true }
    }

    /// Eight classes: DSCP 8n..8n+7 is CoS n, PG n, queue n and priority n. Those named are
    /// lossless, with the levels of `veth-lab-1g`.
    pub fn classes(lossless: &[u8]) -> Self {
        let each = |entry: fn(u8) -> String| (0..8).map(entry).collect::<Vec<_>>().join(", ");
        let mut text = format!(
            "name = \"classes\"\n\n[buffer]\ntotal = \"auto\"\n\n[[pool]]\nname = \"lossless\"\n\
             size = 16384\n\n[[pool]]\nname = \"lossy\"\nsize = 4096\n\n[maps]\n\
             base = \"ac5p\"\ndscp_to_cos = {{ {} }}\ncos_to_pg = {{ {same} }}\n\
             cos_to_queue = {{ {same} }}\n\n[pfc]\npause_quanta = 32768\n\
             rx_backlog_mark = 256\n\n",
            each(|n| format!("\"{}..{}\" = {n}", 8 * n, 8 * n + 7)),
            same = each(|n| format!("{n} = {n}")),
        );
        for n in 0..8 {
            text += &match lossless.contains(&n) {
                true => format!(
                    "[pg.{n}]\nlossless = true\nguaranteed = 36\nheadroom = 3072\nalpha = 0\n\
                     xoff = 4096\nxon = 1024\n\n"
                ),
                false => format!("[pg.{n}]\nlossless = false\nalpha = 0\n\n"),
            };
            text += &format!("[queue.{n}]\nweight = 15\n\n");
        }
        Self { name: "classes".to_owned(), text: Some(text), more: String::new(), held: true }
    }

    /// Without its formula: Headroom may be as small as a test wants it.
    #[must_use]
    pub fn without_formula(mut self) -> Self {
        self.held = false;
        self
    }

    /// With more lines of TOML at its end, such as what differs at one port.
    #[must_use]
    pub fn with(mut self, more: &str) -> Self {
        self.more.push('\n');
        self.more.push_str(more);
        self
    }

    /// Writes it into `folder`; returns the file's path.
    pub(crate) fn write(&self, switch: &str, folder: &Path) -> Result<PathBuf, LabError> {
        let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/profiles");
        let shipped = profiles.join(format!("{}.toml", self.name));
        let text = match &self.text {
            Some(text) => text.clone(),
            None => fs::read_to_string(&shipped)
                .map_err(|source| LabError::File { path: shipped.clone(), source })?,
        };
        let text = match text.split_once("[formula]") {
            Some((head, formula)) if !self.held => {
                // Its section ends at the next one.
                let rest = formula.split_once("\n[").map_or("", |(_, rest)| rest);
                format!("{head}[{rest}")
            }
            _ => text,
        };
        let path = folder.join(format!("{switch}.profile.toml"));
        fs::write(&path, text + &self.more)
            .map_err(|source| LabError::File { path: path.clone(), source })?;
        Ok(path)
    }
}

/// One switch.
#[derive(Clone, Debug)]
pub struct SwitchPlan {
    /// Its name.
    pub name: String,
    /// Its profile.
    pub profile: ProfilePlan,
    /// Worker threads.
    pub workers: u32,
    /// Its ports.
    pub ports: Vec<PortPlan>,
    /// Places for ports that are added while it runs.
    pub spare_ports: u32,
    /// Events that each worker's trace keeps.
    pub trace_events: u32,
    /// More lines of its `[fdb]` section.
    pub fdb: String,
    /// Hosts that aren't at a port of it: host and port.
    pub far_hosts: Vec<(String, String)>,
}

impl SwitchPlan {
    /// A switch without ports, `veth-lab-1g`, one worker.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            profile: ProfilePlan::shipped("veth-lab-1g"),
            workers: 1,
            spare_ports: 0,
            trace_events: 65_536,
            ports: Vec::new(),
            fdb: String::new(),
            far_hosts: Vec::new(),
        }
    }

    /// With the hosts h1..hN at ports of the same names.
    pub fn star(name: &str, hosts: u8) -> Self {
        (1..=hosts).fold(Self::new(name), |switch, n| switch.port(PortPlan::host(n)))
    }

    /// With one more port.
    #[must_use]
    pub fn port(mut self, port: PortPlan) -> Self {
        self.ports.push(port);
        self
    }

    /// With another profile.
    #[must_use]
    pub fn profile(mut self, profile: ProfilePlan) -> Self {
        self.profile = profile;
        self
    }

    /// With so many worker threads.
    #[must_use]
    pub const fn workers(mut self, workers: u32) -> Self {
        self.workers = workers;
        self
    }

    /// With places for so many ports that are added while it runs.
    #[must_use]
    pub const fn spare_ports(mut self, count: u32) -> Self {
        self.spare_ports = count;
        self
    }

    /// With a trace of so many events a worker.
    #[must_use]
    pub const fn trace_events(mut self, events: u32) -> Self {
        self.trace_events = events;
        self
    }

    /// With a static FDB entry for a host that lies behind `port`.
    #[must_use]
    pub fn far_host(mut self, host: &str, port: &str) -> Self {
        self.far_hosts.push((host.to_owned(), port.to_owned()));
        self
    }

    /// With more lines in its `[fdb]` section.
    #[must_use]
    pub fn fdb(mut self, lines: &str) -> Self {
        self.fdb.push_str(lines);
        self.fdb.push('\n');
        self
    }

    /// The text of its `switch.toml`. Hosts have static FDB entries: a flooded frame would be a
    /// lossy copy (SPEC 3.5).
    pub(crate) fn toml(&self, netns: &str, socket: &Path, profile: &Path) -> String {
        let mut text = format!(
            "name = {:?}\nsocket = {socket:?}\nstate = {state:?}\nprofile = {profile:?}\n\
             workers = {}\nspare_ports = {}\n\n[trace]\nevents = {}\n\n[fdb]\n{}",
            self.name,
            self.workers,
            self.spare_ports,
            self.trace_events,
            self.fdb,
            state = socket.with_extension("state"),
        );
        let near = self.ports.iter().filter_map(|port| match &port.peer {
            Peer::Host(n) => Some((host_name(*n), port.name.clone())),
            Peer::Port { .. } => None,
        });
        for (host, port) in near.chain(self.far_hosts.iter().cloned()) {
            let mac = host_number(&host).map(crate::frames::host_mac).unwrap_or_default();
            // Writing to a String can't fail.
            let _ = write!(text, "[[fdb.static]]\nmac = \"{mac}\"\nport = {port:?}\n\n");
        }
        for port in &self.ports {
            let apart = if port.apart { format!("-{}", port.name) } else { String::new() };
            let _ = write!(
                text,
                "[[port]]\nname = {name:?}\nnetns = \"{netns}{apart}\"\nifname = {name:?}\n\
                 speed = {speed:?}\n{more}\n",
                name = port.name,
                speed = port.speed,
                more = port.more,
            );
        }
        text
    }
}

/// What is at the other end of a port's veth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Host number n, counted from 1: `hN`.
    Host(u8),
    /// A port of a switch of the lab, also of the same one, which in turn names this one.
    Port {
        /// The switch.
        switch: String,
        /// Its port.
        port: String,
    },
}

/// One port.
#[derive(Clone, Debug)]
pub struct PortPlan {
    /// Its name, also of the netdev.
    pub name: String,
    /// Declared speed.
    pub speed: String,
    /// What it is connected to.
    pub peer: Peer,
    /// More lines of its `[[port]]` section.
    pub more: String,
    /// In a network namespace of its own, `SWITCH-PORT`, and not with the switch's other ports.
    pub apart: bool,
}

impl PortPlan {
    /// Port `hN` to host number n, 1G.
    pub fn host(n: u8) -> Self {
        Self::new(&host_name(n), Peer::Host(n))
    }

    /// A port to another port, 1G.
    pub fn link(name: &str, switch: &str, port: &str) -> Self {
        Self::new(name, Peer::Port { switch: switch.to_owned(), port: port.to_owned() })
    }

    fn new(name: &str, peer: Peer) -> Self {
        Self {
            name: name.to_owned(),
            speed: "1G".to_owned(),
            peer,
            more: String::new(),
            apart: false,
        }
    }

    /// With another speed.
    #[must_use]
    pub fn speed(mut self, speed: &str) -> Self {
        speed.clone_into(&mut self.speed);
        self
    }

    /// In a network namespace of its own.
    #[must_use]
    pub const fn apart(mut self) -> Self {
        self.apart = true;
        self
    }

    /// With more lines of TOML.
    #[must_use]
    pub fn with(mut self, more: &str) -> Self {
        self.more.push_str(more);
        self.more.push('\n');
        self
    }
}

/// The name of host number n.
pub fn host_name(n: u8) -> String {
    format!("h{n}")
}

/// The number of a host.
pub fn host_number(name: &str) -> Option<u8> {
    name.strip_prefix('h')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_api::doc::Source;
    use holdfast_api::switch_doc::SwitchDoc;

    #[test]
    fn the_switch_reads_what_is_written() {
        let plan = SwitchPlan::star("sw1", 2)
            .port(PortPlan::link("up", "sw2", "down").speed("200M").with("trust = \"pcp\""))
            .far_host("h3", "up")
            .fdb("ageing = \"30s\"")
            .workers(2);
        let text = plan.toml("ns", Path::new("/x/s.sock"), Path::new("/x/p.toml"));
        let doc = SwitchDoc::load(&Source::new("switch.toml", &text)).unwrap();
        assert_eq!(doc.port_names(), ["h1", "h2", "up"]);
        assert_eq!(doc.ports[2].netns.as_deref(), Some("ns"));
        let statics: Vec<_> =
            doc.fdb.statics.iter().map(|one| (one.mac.as_str(), one.port.as_str())).collect();
        assert_eq!(statics.len(), 3);
        assert_eq!(statics[2], ("02:00:00:00:00:03", "up"));
    }
}
