//! The daemon's command line.

use clap::Parser;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The control daemon of a holdfast switch: HTTP API, and the profile that shall be in force.
///
/// It needs no privilege but to reach the switch's control socket. Without it the switch forwards
/// as before. SIGHUP reads the profile again, SIGTERM ends it. Exit codes: 0 ended by a signal,
/// 1 can't serve, 2 wrong usage.
///
/// Example: holdfastd --name lab --profile /etc/holdfast/profiles/lab.toml
#[derive(Debug, Parser)]
#[command(name = "holdfastd", version)]
pub(crate) struct Arguments {
    /// The switch's control socket.
    ///
    /// Example: --socket /run/holdfast/lab.sock
    #[arg(long, env = "HOLDFAST_SOCKET", value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The switch's name: its socket is /run/holdfast/NAME.sock. Default: the only one there.
    ///
    /// Example: --name lab
    #[arg(long, value_name = "NAME", conflicts_with = "socket")]
    pub name: Option<String>,
    /// Where HTTP is served. Who reaches another address than a loopback one reads everything.
    ///
    /// Example: --listen [::1]:9468
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9468")]
    pub listen: SocketAddr,
    /// A name under which this machine is asked, beside its address and localhost. Repeatable.
    ///
    /// Example: --host switch1.example
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Allow calls that change the switch over HTTP, to everybody who reaches the port.
    #[arg(long)]
    pub allow_apply: bool,
    /// The profile that shall be in force: applied whenever the switch has another one.
    ///
    /// Example: --profile /etc/holdfast/profiles/lab.toml
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Write the number of the port that is served to this file, for --listen 127.0.0.1:0.
    #[arg(long, value_name = "FILE")]
    pub port_file: Option<PathBuf>,
}
