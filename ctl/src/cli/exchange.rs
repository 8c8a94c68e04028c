//! Arguments of `import` and `export`.

use clap::{Args, ValueEnum};
use holdfast_api::amount::Rate;
use holdfast_plan::import::Format;
use serde::de::value::Error;
use serde::de::IntoDeserializer;
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatName {
    /// SONiC's CONFIG_DB as JSON.
    Sonic,
    /// SONiC's pg_profile_lookup.ini.
    PgLookup,
    /// pfc and mmu lines of the AC5P family's command line.
    Ac5pCli,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Sonic => Self::Sonic,
            FormatName::PgLookup => Self::PgLookup,
            FormatName::Ac5pCli => Self::Ac5pCli,
        }
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    let text: serde::de::value::StrDeserializer<'_, Error> = text.into_deserializer();
    Rate::deserialize(text).map_err(|error| error.to_string())
}

/// `h1=10G` or `h1=10G/9000`.
#[derive(Clone, Debug)]
pub(crate) struct PortArgument {
    pub name: String,
    pub speed: Rate,
    pub mtu: u16,
}

fn port(text: &str) -> Result<PortArgument, String> {
    let (name, link) = text.split_once('=').ok_or("write NAME=SPEED or NAME=SPEED/MTU")?;
    let (speed, mtu) = match link.split_once('/') {
        Some((speed, mtu)) => (speed, mtu.parse().map_err(|_| format!("{mtu:?} is no MTU"))?),
        None => (link, 1_500),
    };
    Ok(PortArgument { name: name.to_owned(), speed: rate(speed)?, mtu })
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// The file to read, at most 4 MiB.
    pub file: PathBuf,
    /// What it is written in; by default what its content shows.
    #[arg(long)]
    pub from: Option<FormatName>,
    /// The profile's name; by default that of the file.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// All cells of the memory; by default what the pools and ports need.
    #[arg(long, value_name = "N")]
    pub cells: Option<u32>,
    /// Bytes of a cell, 64..4096.
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub cell_bytes: u32,
    /// sonic: a pg_profile_lookup.ini for the PGs that no row of BUFFER_PG makes lossless.
    #[arg(long, value_name = "FILE")]
    pub pg_lookup: Option<PathBuf>,
    /// sonic: Headroom of lossless PGs for which the file has none, cells.
    #[arg(long, value_name = "CELLS", requires = "xon", conflicts_with = "pg_lookup")]
    pub headroom: Option<u32>,
    /// sonic: how far below the limit those PGs resume, cells.
    #[arg(long, value_name = "CELLS", requires = "headroom")]
    pub xon: Option<u32>,
    /// pg-lookup: speed of the ports, as 100G.
    #[arg(long, value_parser = rate, value_name = "RATE")]
    pub speed: Option<Rate>,
    /// pg-lookup: cable of the ports, as 40m.
    #[arg(long, value_name = "LENGTH")]
    pub cable: Option<String>,
    /// pg-lookup, ac5p-cli: how many ports share the memory.
    #[arg(long, value_name = "N")]
    pub ports: Option<u32>,
    /// Write the profile here instead of to the standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// The profile: a file, or the name of one in /etc/holdfast/profiles.
    pub profile: String,
    /// What to write.
    #[arg(long, value_name = "FORMAT")]
    pub to: FormatName,
    /// The switch file whose ports it is for.
    #[arg(long, value_name = "FILE", required_unless_present = "port")]
    pub switch: Option<PathBuf>,
    /// A port it is for: NAME=SPEED or NAME=SPEED/MTU, MTU 1500 by default. May be repeated.
    #[arg(long, value_parser = port, value_name = "PORT", conflicts_with = "switch")]
    pub port: Vec<PortArgument>,
    /// pg-lookup: cable of the ports, as 40m.
    #[arg(long, value_name = "LENGTH")]
    pub cable: Option<String>,
    /// Write it here instead of to the standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
