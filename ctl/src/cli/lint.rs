//! Arguments of `holdfast lint`.

use clap::Args;
use holdfast_api::amount::Rate;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct LintArguments {
    /// The profiles; with --switch default the one it names.
    #[arg(required_unless_present_any = ["switch", "live"], value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Lint what a running switch has in force, and what the machine does to it.
    #[arg(long, conflicts_with_all = ["files", "switch", "speed", "ports", "mtu", "peer"])]
    pub live: bool,
    /// The switch file with the ports.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speed", "ports"])]
    pub switch: Option<PathBuf>,
    /// The assumed ports' speed.
    #[arg(long, default_value = "10G")]
    pub speed: Rate,
    /// How many ports are assumed, those that the profile names among them.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub ports: u8,
    /// The MTU of ports for which no file has one.
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u16).range(68..=16357))]
    pub mtu: u16,
    /// Queues that one PG may feed at once: what ECN marks on them adds up before it pauses.
    #[arg(long, default_value_t = 1, value_name = "K",
        value_parser = clap::value_parser!(u32).range(1..=8))]
    pub queues_at_once: u32,
    /// The profile at the other end of the links: both must sort and pause alike.
    #[arg(long, value_name = "FILE")]
    pub peer: Option<PathBuf>,
    /// The ports of a link, ours and the peer's. Default: every port with every other.
    #[arg(long, value_name = "PORT=PEERPORT", requires = "peer", value_parser = link)]
    pub link: Vec<(String, String)>,
    /// Show implied findings apart.
    #[arg(long)]
    pub all: bool,
}

fn link(text: &str) -> Result<(String, String), String> {
    let ends = text.split_once('=').filter(|(one, other)| !one.is_empty() && !other.is_empty());
    ends.map(|(one, other)| (one.to_owned(), other.to_owned()))
        .ok_or_else(|| "write a port, = and the peer's port, such as h1=p4".to_owned())
}
