//! Arguments of `holdfast preflight`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct PreflightArguments {
    /// The port to look at.
    pub port: String,
    /// Another port of the same switch, joined to this one by a cable: frames are sent both ways.
    #[arg(long, value_name = "PORT")]
    pub peer: Option<String>,
    /// Send also while the ports carry traffic.
    #[arg(long, requires = "peer")]
    pub force: bool,
    /// Without --peer: how long to wait for a MAC control frame of whoever is there.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, conflicts_with = "peer",
          value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub wait: u64,
}
