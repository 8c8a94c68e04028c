//! What is measured, and how each of them is started on the same two netdevs.

use holdfast_e2e::{binaries, LabError};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The switch's netdevs: frames come in at the first and leave at the second.
pub const PORTS: [&str; 2] = ["p1", "p3"];
/// The core that the contender runs on; the generator has the other one.
const CORE: &str = "1";

/// One that forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// The whole switch: lossless class, MMU, PFC, WRED, shaper, FDB, counters.
    Holdfast,
    /// The example `forwarder` of the crate `xsk`: no switch logic.
    Bare,
    /// DPDK's testpmd in io mode on af_xdp.
    Testpmd,
}

impl Contender {
    /// Its name in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holdfast => "holdfast",
            Self::Bare => "bare",
            Self::Testpmd => "testpmd",
        }
    }

    /// The command that starts it in the namespace `netns`, its files in `folder`.
    ///
    /// # Errors
    /// [`LabError`] if its binary isn't there or a file can't be written.
    pub fn command(self, netns: &str, folder: &Path) -> Result<Command, LabError> {
        let mut command = Command::new("taskset");
        match self {
            Self::Holdfast => {
                command.args(["-c", CORE]).arg(binaries::find(binaries::DATAPLANE)?);
                command.arg(switch_file(netns, folder)?);
            }
            Self::Bare => {
                command.args(["-c", CORE]).arg(binaries::find("examples/forwarder")?);
                for port in PORTS {
                    command.arg("--port").arg(format!("{netns}/{port}"));
                }
            }
            Self::Testpmd => {
                // Line by line, or its file stays empty until it ends.
                command.args(["-c", "0,1", "stdbuf", "-oL"]);
                command.args(["ip", "netns", "exec", netns, "dpdk-testpmd"]);
                command.args(["--lcores", "0@0,1@1", "--no-huge", "-m", "512", "--no-pci"]);
                for (number, port) in PORTS.iter().enumerate() {
                    command.arg("--vdev").arg(format!("net_af_xdp{number},iface={port}"));
                }
                command.args(["--", "--forward-mode=io", "--auto-start", "--nb-cores=1"]);
                command.args(["--total-num-mbufs=16384", "--no-mlockall", "--stats-period=600"]);
            }
        }
        Ok(command)
    }

    /// What its log says once it forwards; `None` where it says nothing that could be waited for.
    pub const fn ready(self) -> Option<&'static str> {
        match self {
            Self::Holdfast => Some("forwarding"),
            Self::Bare => Some("forwarding between"),
            Self::Testpmd => None,
        }
    }
}

/// A switch of two ports declared as 25G, so that the machine is the limit and not the shaper.
fn switch_file(netns: &str, folder: &Path) -> Result<std::path::PathBuf, LabError> {
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/profiles");
    let shipped = profiles.join("veth-lab-10g.toml");
    let profile = folder.join("profile.toml");
    let in_file = |path: &Path| {
        let path = path.to_path_buf();
        move |source| LabError::File { path, source }
    };
    let mut text = fs::read_to_string(&shipped).map_err(in_file(&shipped))?;
    for port in PORTS {
        // What is in flight at 25G is more than at 10G.
        text += &format!("\n[port.{port}.pg.3]\nheadroom = 4096\n");
    }
    fs::write(&profile, text).map_err(in_file(&profile))?;
    let socket = folder.join("bench.sock");
    let mut text = format!(
        "name = \"bench\"\nsocket = {socket:?}\nstate = {folder:?}\nprofile = {profile:?}\n\
         workers = 1\n[rings]\nrx = 4096\n"
    );
    for (number, port) in PORTS.iter().enumerate() {
        let mac = if number == 0 { "02:00:00:00:00:01" } else { "02:00:00:00:00:03" };
        text += &format!(
            "[[port]]\nname = \"{port}\"\nnetns = \"{netns}\"\nifname = \"{port}\"\n\
             speed = \"25G\"\n[[fdb.static]]\nmac = \"{mac}\"\nport = \"{port}\"\n"
        );
    }
    let path = folder.join("switch.toml");
    fs::write(&path, text).map_err(in_file(&path))?;
    Ok(path)
}
