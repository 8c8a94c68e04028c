//! The command line.

mod storm;

pub(crate) use storm::StormArgs;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use holdfast_host::{BitRate, Impairments, Nanos};
use holdfast_wire::MacAddr;

use crate::flow_arg::FlowArg;

/// A RoCEv2 host on one interface: sends and checks real frames, obeys PFC, reports JSON.
#[derive(Debug, Parser)]
#[command(name = "holdfast-endpoint", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How late a pause may be obeyed at most.
const MOST_DELAY: Nanos = Nanos(1_000_000_000);

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send RoCEv2 flows, obeying PFC
    #[command(after_help = SEND_EXAMPLE)]
    Send(SendArgs),
    /// Receive RoCEv2 flows and check sequence, iCRC, CE and latency
    #[command(after_help = RECEIVE_EXAMPLE)]
    Receive(ReceiveArgs),
    /// Do both at once, as a host does
    #[command(after_help = RUN_EXAMPLE)]
    Run(RunArgs),
    /// Send frames from a file, byte by byte as they are there
    #[command(after_help = REPLAY_EXAMPLE)]
    Replay(ReplayArgs),
    /// Write down every frame that arrives
    #[command(after_help = CAPTURE_EXAMPLE)]
    Capture(CaptureArgs),
    /// Send PFC or PAUSE frames without a gap between the pauses
    #[command(after_help = storm::EXAMPLE)]
    Storm(StormArgs),
}

const SEND_EXAMPLE: &str = "\
Example: 100000 frames of a lossless class, each pause obeyed 200 us late:
  holdfast-endpoint send --interface eth0 --to-mac 02:00:00:00:00:02 --from-ip 10.0.0.1 \\
      --to-ip 10.0.0.2 --flow dscp=26,qp=0x11,size=1024,count=100000 --delay-pause 200us";
const RECEIVE_EXAMPLE: &str = "\
Example: until half a second has passed without a frame:
  holdfast-endpoint receive --interface eth0 --until-idle 500";
const RUN_EXAMPLE: &str = "\
Example: send one flow, and expect as many frames:
  holdfast-endpoint run --interface eth0 --to-mac 02:00:00:00:00:02 --from-ip 10.0.0.1 \\
      --to-ip 10.0.0.2 --flow dscp=26,size=1024,count=5000 --expect 5000";
const REPLAY_EXAMPLE: &str = "\
Example: the frames of a capture, ten times, 50 us apart:
  holdfast-endpoint replay --interface eth0 --pcap frames.pcap --repeat 10 --gap 50";
const CAPTURE_EXAMPLE: &str = "\
Example: the MAC control frames of two seconds:
  holdfast-endpoint capture --interface eth0 --ethertype 0x8808 --hex pauses.hex --seconds 2";

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
    #[command(flatten)]
    pub(crate) impair: ImpairArgs,
}

/// What is wrong with the host, on purpose.
#[derive(Debug, Args)]
pub(crate) struct ImpairArgs {
    /// Obey no pause at all; the report counts those that should have been obeyed
    #[arg(long, conflicts_with_all = ["delay_pause", "lose_xon"])]
    ignore_pause: bool,
    /// Begin and end each pause so much later, as a slow NIC does, such as 200us; at most 1s
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = short_span)]
    delay_pause: Nanos,
    /// Don't hear this share of the resumes, 0 to 1: their pauses run out
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    lose_xon: f64,
    /// Which resumes are lost: the same for the same number
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl ImpairArgs {
    /// As the protocol code takes them.
    pub(crate) fn impairments(&self) -> Impairments {
        let Self { ignore_pause: ignore, delay_pause: delay, lose_xon, seed } = *self;
        Impairments { ignore, delay, lose_xon, seed }
    }
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

/// A time with its unit.
pub(crate) fn span(text: &str) -> Result<Nanos, String> {
    let span = text.parse::<jiff::SignedDuration>();
    let span = span.map_err(|_| format!("\"{text}\" is not a time such as 200us, 50ms or 2s"))?;
    let nanos = u64::try_from(span.as_nanos());
    nanos.map(Nanos).map_err(|_| format!("{text} is not 0 to 584 years"))
}

/// As [`span`], short enough that what arrives meanwhile can be kept.
fn short_span(text: &str) -> Result<Nanos, String> {
    let span = span(text)?;
    if span > MOST_DELAY {
        return Err(format!("{text} is more than 1s"));
    }
    Ok(span)
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().map_err(|_| format!("\"{text}\" is not a number"))?;
    if !(0.0..=1.0).contains(&share) {
        return Err(format!("{text} is not a share, 0 to 1"));
    }
    Ok(share)
}

/// A mask of priorities.
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
