//! Arguments of `holdfast deadlock`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct DeadlockArguments {
    /// The switches: control sockets, or names of those in /run/holdfast. Default: only the switch
    /// that --socket or --name says.
    #[arg(value_name = "SOCKET")]
    pub switches: Vec<String>,
}
