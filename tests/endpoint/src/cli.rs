//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use holdfast_host::{BitRate, Nanos};
use holdfast_wire::MacAddr;

use crate::flow_arg::FlowArg;

/// A RoCEv2 host on one interface: sends and checks real frames, obeys PFC, reports JSON.
#[derive(Debug, Parser)]
#[command(name = "holdfast-endpoint", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send RoCEv2 flows, obeying PFC
    Send(SendArgs),
    /// Receive RoCEv2 flows and check sequence, iCRC, CE and latency
    Receive(ReceiveArgs),
    /// Do both at once, as a host does
    Run(RunArgs),
    /// Send frames from a file, byte by byte as they are there
    Replay(ReplayArgs),
    /// Write down every frame that arrives
    Capture(CaptureArgs),
}

/// Arguments of every command.
#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// Interface to work on
    #[arg(long, value_name = "IF")]
    pub(crate) interface: String,
    /// End after this long
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) seconds: Option<Nanos>,
    /// Write the report to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// The link as the host sees it.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// Link speed: paces all flows together, and turns pause quanta into time
    #[arg(long, value_name = "RATE", default_value = "1G")]
    pub(crate) speed: BitRate,
    /// Priorities that obey PFC: "all", "none", or a list such as 3,4
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = priorities)]
    pub(crate) pfc: u8,
    /// Obey 802.3x PAUSE on all priorities
    #[arg(long)]
    pub(crate) link_pause: bool,
    /// With `receive`: send nothing at all. Otherwise a RARP request for the own address goes out
    /// at the start and every 60 s, so that switches learn where this host is
    #[arg(long)]
    pub(crate) silent: bool,
}

/// What is sent.
#[derive(Debug, Args)]
pub(crate) struct TrafficArgs {
    /// Destination MAC address
    #[arg(long, value_name = "MAC")]
    pub(crate) to_mac: Option<MacAddr>,
    /// Destination IP address
    #[arg(long, value_name = "IP")]
    pub(crate) to_ip: Option<IpAddr>,
    /// Source MAC address [default: the interface's]
    #[arg(long, value_name = "MAC")]
    pub(crate) from_mac: Option<MacAddr>,
    /// Source IP address
    #[arg(long, value_name = "IP")]
    pub(crate) from_ip: Option<IpAddr>,
    /// A flow, may be repeated: dscp=26,qp=0x11,rate=800M|max,size=64/1024,count=N,
    /// ecn=ect0|ect1|ce|none,priority=3,vlan=VID[.PCP][+VID[.PCP]],op=send|write|ud,
    /// sport=49152,psn=0,to-mac=MAC,to-ip=IP
    #[arg(long = "flow", value_name = "KEY=VALUE,...", required = true, verbatim_doc_comment)]
    pub(crate) flows: Vec<FlowArg>,
    /// Wait so many milliseconds between the ready line and the first frame
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) delay: u64,
    /// How much a sender that was late may catch up, in microseconds
    #[arg(long, value_name = "US", default_value_t = 200)]
    pub(crate) catch_up: u64,
}

/// What is expected, and when receiving ends.
#[derive(Debug, Args)]
pub(crate) struct ArrivalArgs {
    /// End once this many data frames have arrived
    #[arg(long, value_name = "N")]
    pub(crate) expect: Option<u64>,
    /// End once nothing has arrived for so many milliseconds, counted from the first data frame
    #[arg(long, value_name = "MS")]
    pub(crate) until_idle: Option<u64>,
    /// PSN that every flow is taken to start with; "any" trusts the first frame of each
    #[arg(long, value_name = "PSN", default_value = "0", value_parser = first_psn)]
    pub(crate) first_psn: FirstPsn,
    /// Socket buffer in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(1..=1023))]
    pub(crate) buffer: u32,
}

/// Where flows start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstPsn(pub(crate) Option<u32>);

/// Arguments of `send`.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    #[command(flatten)]
    pub(crate) traffic: TrafficArgs,
}

/// Arguments of `receive`.
#[derive(Debug, Args)]
pub(crate) struct ReceiveArgs {
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    #[command(flatten)]
    pub(crate) arrival: ArrivalArgs,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    #[command(flatten)]
    pub(crate) traffic: TrafficArgs,
    #[command(flatten)]
    pub(crate) arrival: ArrivalArgs,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("source").required(true))]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    /// Frames as lines "name : hex"; lines that start with # are left out
    #[arg(long, value_name = "FILE", group = "source")]
    pub(crate) hex: Option<PathBuf>,
    /// Frames of a classic pcap file of Ethernet
    #[arg(long, value_name = "FILE", group = "source")]
    pub(crate) pcap: Option<PathBuf>,
    /// Only frames whose name contains this
    #[arg(long, value_name = "TEXT", requires = "hex")]
    pub(crate) only: Option<String>,
    /// How many times to send them all; 0 for no end
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) repeat: u64,
    /// Time from one frame to the next in microseconds; 0 for none
    #[arg(long, value_name = "US", default_value_t = 0)]
    pub(crate) gap: u64,
}

/// Arguments of `capture`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("form").required(true))]
pub(crate) struct CaptureArgs {
    /// Interface to work on
    #[arg(long, value_name = "IF")]
    pub(crate) interface: String,
    /// Write one JSON object per frame: {"t_ns":..,"len":..,"hex":".."}
    #[arg(long, value_name = "FILE", group = "form")]
    pub(crate) json: Option<PathBuf>,
    /// Write one line per frame: "t_ns : hex"
    #[arg(long, value_name = "FILE", group = "form")]
    pub(crate) hex: Option<PathBuf>,
    /// End after this long
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) seconds: Option<Nanos>,
    /// End after so many frames
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// Only frames of this EtherType (behind tags that the kernel knows), such as 0x8808
    #[arg(long, value_name = "TYPE", value_parser = number::<u16>)]
    pub(crate) ethertype: Option<u16>,
    /// Keep only so many bytes of each frame
    #[arg(long, value_name = "BYTES")]
    pub(crate) snap: Option<usize>,
}

/// Reads decimal, or hexadecimal behind 0x.
pub(crate) fn number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let value = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    let value = value.map_err(|error| format!("\"{text}\" is not a number: {error}"))?;
    T::try_from(value).map_err(|_| format!("{value} is out of range"))
}

fn seconds(text: &str) -> Result<Nanos, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    let span = std::time::Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())?;
    u64::try_from(span.as_nanos()).map(Nanos).map_err(|_| format!("{text} is too long"))
}

fn priorities(text: &str) -> Result<u8, String> {
    match text {
        "all" => Ok(u8::MAX),
        "none" => Ok(0),
        list => list.split(',').try_fold(0, |mask, item| match number::<u8>(item)? {
            priority @ 0..=7 => Ok(mask | 1 << priority),
            other => Err(format!("{other} is not a priority, 0 to 7")),
        }),
    }
}

fn first_psn(text: &str) -> Result<FirstPsn, String> {
    match text {
        "any" => Ok(FirstPsn(None)),
        text => match number::<u32>(text)? {
            psn @ 0..=0x00ff_ffff => Ok(FirstPsn(Some(psn))),
            other => Err(format!("{other} has more than 24 bits")),
        },
    }
}
