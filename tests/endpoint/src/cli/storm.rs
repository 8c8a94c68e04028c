//! The arguments of `storm`.

use clap::Args;
use holdfast_host::{BitRate, Bursts, Nanos, StormPlan, StormTarget};

use super::{priorities, span, LinkArgs};

pub(super) const EXAMPLE: &str = "\
Examples: priorities 3 and 4 of a 10G link for two seconds, then a resume; three bursts of PAUSE:
  holdfast-endpoint storm --interface eth0 --priorities 3,4 --speed 10G --seconds 2 --xon
  holdfast-endpoint storm --interface eth0 --pause --bursts 3 --on 100ms --off 100ms";

/// Arguments of `storm`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("target").required(true))]
pub(crate) struct StormArgs {
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    /// Pause these priorities by PFC: "all", or a list such as 3,4
    #[arg(long, value_name = "LIST", group = "target", value_parser = some_priorities)]
    pub(crate) priorities: Option<u8>,
    /// Pause the whole link by 802.3x PAUSE
    #[arg(long, group = "target")]
    pub(crate) pause: bool,
    /// How long each frame pauses, in quanta of 512 bit times
    #[arg(long, value_name = "N", default_value_t = u16::MAX,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) quanta: u16,
    /// Link speed: turns quanta into time. The next frame is sent after half of it
    #[arg(long, value_name = "RATE", default_value = "1G")]
    pub(crate) speed: BitRate,
    /// End after so many pauses
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Send so many storms, quiet in between
    #[arg(long, value_name = "N", requires_all = ["on", "off"], conflicts_with = "count",
          value_parser = clap::value_parser!(u64).range(1..))]
    bursts: Option<u64>,
    /// How long each burst lasts, such as 100ms
    #[arg(long, value_name = "TIME", requires = "bursts", value_parser = some_span)]
    on: Option<Nanos>,
    /// How long it is quiet between two bursts, such as 100ms
    #[arg(long, value_name = "TIME", requires = "bursts", value_parser = span)]
    off: Option<Nanos>,
    /// End the storm, and each of its bursts, by a resume (quanta 0) instead of letting the last
    /// pause run out
    #[arg(long)]
    xon: bool,
    /// Exit with 1 if a pause may have run out before the next one was sent
    #[arg(long)]
    pub(crate) gap_must_hold: bool,
}

impl StormArgs {
    /// What is paused.
    pub(crate) fn target(&self) -> StormTarget {
        self.priorities.map_or(StormTarget::Link, StormTarget::Priorities)
    }

    /// When which frame is sent.
    pub(crate) fn plan(&self) -> StormPlan {
        let bursts = match (self.bursts, self.on, self.off) {
            (Some(count), Some(on), Some(off)) => Some(Bursts { count, on, off }),
            _ => None,
        };
        StormPlan {
            pause: self.speed.quanta(self.quanta),
            length: self.link.seconds,
            count: self.count,
            bursts,
            xon: self.xon,
        }
    }
}

fn some_span(text: &str) -> Result<Nanos, String> {
    match span(text)? {
        Nanos(0) => Err("a burst of no length sends nothing".to_owned()),
        length => Ok(length),
    }
}

fn some_priorities(text: &str) -> Result<u8, String> {
    match priorities(text)? {
        0 => Err("a PFC frame for no priority pauses nothing".to_owned()),
        mask => Ok(mask),
    }
}
