//! Arguments of the command line, each with an example in its help.

pub(crate) mod assert;
pub(crate) mod deadlock;
pub(crate) mod events;
pub(crate) mod exchange;
pub(crate) mod lint;
mod port;
pub(crate) mod preflight;
mod set;

use crate::plan::PlanArguments;
use assert::AssertArguments;
use clap::{Args, Parser, Subcommand};
use deadlock::DeadlockArguments;
pub(crate) use events::EventsArguments;
use exchange::{ExportArguments, ImportArguments};
use lint::LintArguments;
use port::PortAddArguments;
use preflight::PreflightArguments;
pub(crate) use set::{Set, SetPgArguments, SetWredArguments};
use std::path::PathBuf;

/// Where help lists what every command takes.
const GLOBAL: &str = "Global options";

/// Runs, shows and changes a holdfast switch.
///
/// Exit codes: 0 done, 1 refused or found, 2 wrong usage, 3 switch unreachable.
///
/// Example: holdfast --name lab show pg h1
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub target: Target,
    #[command(subcommand)]
    pub command: Command,
}

/// Which switch, and how to answer.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The switch's control socket.
    #[arg(long, global = true, env = "HOLDFAST_SOCKET", value_name = "PATH", help_heading = GLOBAL)]
    pub socket: Option<PathBuf>,
    /// The switch's name: its socket is /run/holdfast/NAME.sock. Default: the only one there.
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "socket",
          help_heading = GLOBAL)]
    pub name: Option<String>,
    /// Print the answer as the switch gave it, one JSON object.
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a switch in the foreground: holdfast-dataplane with its config.
    ///
    /// Example: holdfast run lab        (reads /etc/holdfast/lab.toml)
    /// Example: holdfast run ./switch.toml
    #[command(verbatim_doc_comment)]
    Run {
        /// The switch file, or the name of one in /etc/holdfast.
        config: String,
    },
    /// Show what the switch does and holds.
    #[command(subcommand)]
    Show(Show),
    /// Show or clear high watermarks.
    #[command(subcommand)]
    Watermark(Watermark),
    /// Stop a port's egress and let it go on.
    #[command(subcommand)]
    Port(Port),
    /// Put a profile into force: all of it, or nothing if anything is wrong with it.
    ///
    /// Example: holdfast apply ac5p.toml --dry-run
    #[command(verbatim_doc_comment)]
    Apply {
        /// The profile, TOML.
        file: PathBuf,
        /// Only check it and say what it would change.
        #[arg(long)]
        dry_run: bool,
    },
    /// Change thresholds of the running profile, until the next apply or restart.
    #[command(subcommand)]
    Set(Set),
    /// Add and remove forwarding entries.
    #[command(subcommand)]
    Fdb(Fdb),
    /// Turn the counters of a running switch into a verdict, for CI.
    ///
    /// Every check is a line of the answer: what was wanted, what was found. Counters are those
    /// since the start of the switch; watermarks those since `holdfast watermark clear`.
    ///
    /// Exit codes: 0 all checks hold, 1 one doesn't, 2 wrong usage, 3 switch unreachable.
    ///
    /// Example: holdfast assert --violations 0 --lossless h1:3 --junit lossless.xml
    /// Example: holdfast assert --lossless all --headroom-max 80 --drops wred=100 --idle
    #[command(verbatim_doc_comment)]
    Assert(AssertArguments),
    /// Find deadlocks over several switches: cycles of pauses in which nothing can move any more.
    ///
    /// Each switch says which PGs are in XOFF, which paused queues hold their frames, and whose
    /// address those pauses came from. From that follows who waits for whom. A cycle is named if
    /// none of its frames has moved for the detection time; one that still moves is no deadlock. A
    /// chain without a cycle is shown with its end: a host that pauses, or a switch that is
    /// missing here.
    ///
    /// Exit codes: 0 none, 1 a deadlock was found, 2 wrong usage, 3 none was found, but a switch
    /// didn't answer.
    ///
    /// Example: holdfast deadlock leaf1 leaf2 /run/holdfast/spine.sock
    #[command(verbatim_doc_comment)]
    Deadlock(DeadlockArguments),
    /// See what works on this machine, what is degraded and what is missing; asks no switch.
    ///
    /// Looks at kernel, rights, limits, memory and cores; with --switch at its netdevs too. Nothing
    /// is changed.
    ///
    /// Exit codes: 0 a switch can run, 1 something that it needs is missing.
    ///
    /// Example: holdfast doctor --switch lab
    #[command(verbatim_doc_comment)]
    Doctor {
        /// The switch file, or the name of one in /etc/holdfast.
        #[arg(long, value_name = "FILE")]
        switch: Option<String>,
        /// Say why it matters also of what is well.
        #[arg(long)]
        all: bool,
    },
    /// See whether PFC frames get through a port's NIC both ways: many NICs keep them.
    ///
    /// With --peer, two ports of one switch that are joined by a cable: three frames of each of
    /// four kinds go each way, and none of them pauses anybody. Refused while the ports carry
    /// traffic. Without --peer nothing is sent: whether the peer obeyed, and whether PFC came.
    ///
    ///   link            no MAC control        arrives: the two are joined
    ///   unknown_opcode  type 0x8808           arrives: the type passes
    ///   empty_vector    PFC, no priority      arrives: PFC passes
    ///   resume          PFC, time 0, a priority without PFC
    ///                                         arrives: PFC passes that a NIC could act upon
    ///
    /// What of this is lost is swallowed on TX at the one end or filtered on RX at the other. Which
    /// of the two is told where something else shows it: PFC that came from elsewhere, a peer that
    /// obeyed, or a driver that is known for it (deploy/NICS.md).
    ///
    /// Exit codes: 0 works both ways, 1 it doesn't, or nothing shows that it does, 2 wrong usage,
    /// 3 switch unreachable.
    ///
    /// Example: holdfast preflight p1 --peer p2
    /// Example: holdfast preflight p1 --wait 10
    #[command(verbatim_doc_comment)]
    Preflight(PreflightArguments),
    /// Show the switch's journal: who changed what, links that went, frames that were lost.
    ///
    /// With --json one entry a line. The journal keeps the last 1024 entries since the start.
    ///
    /// Example: holdfast events --follow --severity warn
    #[command(verbatim_doc_comment)]
    Events(EventsArguments),
    /// Show events: XOFF and XON edges with the account of that moment, and more on request.
    ///
    /// Example: holdfast trace --edges --follow
    #[command(verbatim_doc_comment)]
    Trace(TraceArguments),
    /// Compute Headroom, XOFF, XON and the marking line for a link; asks no switch.
    ///
    /// Every number comes with its terms and its rule. Headroom by formula:
    ///   ac5p   rate x loop + two frames and a PFC frame: the family's rule of thumb
    ///   exact  frame by frame, from the smallest lossless frame
    ///   cpu    a switch on a CPU: what waits in its RX ring counts too
    ///   ieee   bit times of 802.1Qbb annex O
    ///   sonic  as SONiC computes it for a port of a Mellanox ASIC
    ///   mlx5   as the NIC's driver computes it for its receive buffer
    ///
    /// Example: holdfast plan --speed 400G --loop 3us --q-limit 12000
    /// Example: holdfast plan --speed 100G --loop 3us --toml leaf.toml
    /// Example: holdfast plan --speed 400G --loop 3us --cable 40m --compare
    #[command(verbatim_doc_comment)]
    Plan(Box<PlanArguments>),
    /// Check profiles: what is wrong, doubtful or without effect in them, with numbers and fix.
    ///
    /// Without --switch the ports are assumed: those that the profile names, and p1, p2, ...
    ///
    /// With --live the profile that a switch has in force is checked, with all changes by `set`,
    /// and what only a running switch shows: offloads, channels, cores and link speeds as they are
    /// now, the reaction times and stalls that it has measured.
    ///
    /// Exit codes: 0 no errors, 1 errors found, 2 wrong usage, 3 switch unreachable.
    ///
    /// Example: holdfast lint profile.toml --switch switch.toml
    /// Example: holdfast lint leaf.toml --speed 100G --ports 16 --mtu 9000
    /// Example: holdfast lint leaf.toml --peer spine.toml --link h1=p4
    /// Example: holdfast lint --live --name lab
    #[command(verbatim_doc_comment)]
    Lint(LintArguments),
    /// Make a profile of another system's file: SONiC's CONFIG_DB, its pg_profile_lookup.ini, or
    /// pfc and mmu lines of the AC5P family.
    ///
    /// What changes its meaning on the way is said on the standard error; what can't be expressed
    /// is refused by its place. Where a port's PG can't be lossless the profile is written with
    /// that PG lossy, the port is named, and the exit code is 1.
    ///
    /// Example: holdfast import config_db.json --pg-lookup pg_profile_lookup.ini -o leaf.toml
    /// Example: holdfast import pg.ini --speed 100G --cable 40m --cells 65536 --ports 8
    /// Example: holdfast import tor.cli --from ac5p-cli --cells 65536 --ports 8
    #[command(verbatim_doc_comment)]
    Import(ImportArguments),
    /// Write a profile as another system reads it.
    ///
    /// Example: holdfast export leaf.toml --to sonic --switch lab.toml -o config_db.json
    /// Example: holdfast export leaf --to ac5p-cli --port h1=100G/9100
    #[command(verbatim_doc_comment)]
    Export(ExportArguments),
    /// Write the manual pages: one a command into a folder, or the main one to the output.
    ///
    /// Example: holdfast man --out /usr/local/share/man/man1
    #[command(verbatim_doc_comment)]
    Man {
        /// The folder; it is made if it isn't there.
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
    /// Print a completion script for a shell.
    ///
    /// Example: holdfast completion bash > /etc/bash_completion.d/holdfast
    #[command(verbatim_doc_comment)]
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// A port, or all.
#[derive(Debug, Args)]
pub(crate) struct OnPort {
    /// Only this port.
    pub port: Option<String>,
}

/// A port and a queue, or all.
#[derive(Debug, Args)]
pub(crate) struct OnQueue {
    /// Only this port.
    pub port: Option<String>,
    /// Only this queue, 0..7.
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=7))]
    pub queue: Option<u8>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Show {
    /// Ports: link, traffic, drops, workers.
    ///
    /// Example: holdfast show ports
    #[command(verbatim_doc_comment)]
    Ports {
        #[command(flatten)]
        on: OnPort,
        /// Also what bring-up changed at each netdev.
        #[arg(long)]
        notes: bool,
    },
    /// What really arrived, by DSCP and PCP, and the class it got.
    ///
    /// Example: holdfast show classify h1
    #[command(verbatim_doc_comment)]
    Classify(OnPort),
    /// Ingress priority groups: account, thresholds, edges, drops.
    ///
    /// Example: holdfast show pg h1 --pg 3
    #[command(verbatim_doc_comment)]
    Pg {
        /// Only this port.
        port: Option<String>,
        /// Only this PG, 0..7.
        #[arg(long, value_parser = clap::value_parser!(u8).range(0..=7))]
        pg: Option<u8>,
    },
    /// Egress queues: depth, traffic, drops.
    ///
    /// Example: holdfast show queue h2 --queue 3
    #[command(verbatim_doc_comment)]
    Queue(OnQueue),
    /// PFC frames sent and received, pause times, reaction time.
    ///
    /// Example: holdfast show pfc h1
    #[command(verbatim_doc_comment)]
    Pfc(OnPort),
    /// Watchdogs: storms of queues that a peer pauses without end, and what is done about them.
    ///
    /// Example: holdfast show watchdog h2
    #[command(verbatim_doc_comment)]
    Watchdog(OnQueue),
    /// ECN marking: the lines and what they did.
    ///
    /// Example: holdfast show ecn h2
    #[command(verbatim_doc_comment)]
    Ecn(OnQueue),
    /// The shared buffer: pools, and beside them each PG's use and limit.
    ///
    /// Example: holdfast show buffer
    #[command(verbatim_doc_comment)]
    Buffer,
    /// The forwarding database.
    ///
    /// Example: holdfast show fdb h1
    #[command(verbatim_doc_comment)]
    Fdb {
        /// Only this port.
        port: Option<String>,
        /// Only this VLAN.
        #[arg(long)]
        vlan: Option<u16>,
    },
    /// What the machine gives the switch now: drivers, offloads, channels, link speeds, and how its
    /// workers are scheduled. Waits for no worker.
    ///
    /// Example: holdfast show host h1
    #[command(verbatim_doc_comment)]
    Host(OnPort),
    /// The profile in force, in cells.
    ///
    /// Example: holdfast show profile h1
    /// Example: holdfast show profile --json
    #[command(verbatim_doc_comment)]
    Profile(OnPort),
}

/// Which watermarks; without any all of them.
#[derive(Debug, Args)]
pub(crate) struct WatermarkScope {
    /// Only PGs and queues of this port.
    #[arg(long)]
    pub port: Option<String>,
    /// Only this PG, 0..7.
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=7))]
    pub pg: Option<u8>,
    /// Only this queue, 0..7.
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=7))]
    pub queue: Option<u8>,
    /// Only this pool.
    #[arg(long)]
    pub pool: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Watermark {
    /// Show the highest occupancy since it was cleared, and since the start.
    ///
    /// Example: holdfast watermark show --port h1 --pg 3
    #[command(verbatim_doc_comment)]
    Show(WatermarkScope),
    /// Set the first of the two back to the present occupancy.
    ///
    /// Example: holdfast watermark clear --pool lossless
    #[command(verbatim_doc_comment)]
    Clear(WatermarkScope),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Port {
    /// Stop a port's egress at once and completely; PFC is still sent.
    ///
    /// Example: holdfast port hold h2
    #[command(verbatim_doc_comment)]
    Hold {
        /// The port.
        port: String,
    },
    /// Let a held port go on.
    ///
    /// Example: holdfast port release h2
    #[command(verbatim_doc_comment)]
    Release {
        /// The port.
        port: String,
    },
    /// Add a port to the running switch: `spare_ports` in the switch file says how many there can
    /// be. After a restart the switch file counts, so write it there, too.
    ///
    /// Example: holdfast port add h9 --ifname veth9 --netns sw --speed 1G
    #[command(verbatim_doc_comment)]
    Add(PortAddArguments),
    /// End a port of the running switch: its peer is let go, its frames are dropped, its link is as
    /// it was. Its name and its place can be used again. The switch file isn't changed.
    ///
    /// Example: holdfast port remove h9
    #[command(verbatim_doc_comment)]
    Remove {
        /// The port.
        port: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Fdb {
    /// Add a static entry.
    ///
    /// Example: holdfast fdb add 02:00:00:00:00:09 h2
    #[command(verbatim_doc_comment)]
    Add {
        /// The station's address.
        mac: String,
        /// The port it lies behind.
        port: String,
        /// Its VLAN, on a VLAN-aware switch.
        #[arg(long)]
        vlan: Option<u16>,
    },
    /// Remove an entry, static or learned.
    ///
    /// Example: holdfast fdb del 02:00:00:00:00:09
    #[command(verbatim_doc_comment)]
    Del {
        /// The station's address.
        mac: String,
        /// Its VLAN, on a VLAN-aware switch.
        #[arg(long)]
        vlan: Option<u16>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// XOFF and XON edges: what is shown if no kind is named.
    #[arg(long)]
    pub edges: bool,
    /// Also PFC frames sent and received; recorded from now on.
    #[arg(long)]
    pub pfc: bool,
    /// Also WRED's decisions to mark; recorded from now on.
    #[arg(long)]
    pub marks: bool,
    /// Also drops; recorded from now on.
    #[arg(long)]
    pub drops: bool,
    /// Only events of this port.
    #[arg(long)]
    pub port: Option<String>,
    /// Go on until interrupted.
    #[arg(long)]
    pub follow: bool,
}
