//! Arguments of `holdfast port add`: the keys of a `[[port]]` section.

use clap::{Args, ValueEnum};
use holdfast_api::amount::Rate;
use holdfast_api::message::PortAdd;
use holdfast_api::switch_doc::TrustDoc;

/// What a port believes of a frame.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Trust {
    /// DSCP; PCP for what isn't IP, then the default.
    Dscp,
    /// PCP if tagged, then the default.
    Pcp,
    /// Nothing: the default CoS.
    Port,
}

#[derive(Debug, Args)]
pub(crate) struct PortAddArguments {
    /// The port's name: letters, digits, - and _.
    port: String,
    /// Its netdev.
    #[arg(long)]
    ifname: String,
    /// The network namespace of the netdev: a name, or a path such as /proc/1234/ns/net; without
    /// it the switch's own.
    #[arg(long)]
    netns: Option<String>,
    /// Declared speed: 1G, 2.5G, 100M.
    #[arg(long)]
    speed: Rate,
    /// MTU to set, bytes; without it the netdev's stays.
    #[arg(long)]
    mtu: Option<u16>,
    /// RX queues to bind; without it all that the netdev has.
    #[arg(long)]
    queues: Option<u32>,
    /// What the port believes; without it what the profile says.
    #[arg(long)]
    trust: Option<Trust>,
    /// VLANs whose tagged frames belong here, in a VLAN-aware switch.
    #[arg(long, value_delimiter = ',')]
    vlans: Vec<u16>,
    /// The VLAN of untagged frames, in a VLAN-aware switch.
    #[arg(long)]
    pvid: Option<u16>,
    /// Take a speed above 25G though refreshes of pauses may come late.
    #[arg(long)]
    allow_slow_refresh: bool,
    /// Obey 802.3x PAUSE for the whole port; excludes PFC on it.
    #[arg(long)]
    link_pause: bool,
}

impl From<PortAddArguments> for PortAdd {
    fn from(arguments: PortAddArguments) -> Self {
        Self {
            port: arguments.port,
            netns: arguments.netns,
            ifname: arguments.ifname,
            speed: arguments.speed,
            mtu: arguments.mtu,
            queues: arguments.queues,
            trust: arguments.trust.map(|trust| match trust {
                Trust::Dscp => TrustDoc::Dscp,
                Trust::Pcp => TrustDoc::Pcp,
                Trust::Port => TrustDoc::Port,
            }),
            vlans: arguments.vlans,
            pvid: arguments.pvid,
            allow_slow_refresh: arguments.allow_slow_refresh,
            link_pause: arguments.link_pause,
        }
    }
}
