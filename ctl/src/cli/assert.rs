//! Arguments of `holdfast assert`.

use clap::{ArgGroup, Args};
use holdfast_core::drop::DropReason;
use std::path::PathBuf;
use std::str::FromStr;

/// Lossless PGs whose losslessness is to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lossless {
    /// Every lossless PG.
    All,
    /// One.
    Pg {
        /// The port's name.
        port: String,
        /// 0..7.
        pg: u8,
    },
}

impl FromStr for Lossless {
    type Err = String;

    /// `all`, or `PORT:PG`; what stands before the last colon is the port.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let parts = text.rsplit_once(':').filter(|(port, _)| !port.is_empty());
        let pg = |pg: &str| pg.parse().ok().filter(|pg: &u8| *pg < 8);
        parts
            .and_then(|(port, number)| Some(Self::Pg { port: port.to_owned(), pg: pg(number)? }))
            .ok_or_else(|| "write PORT:PG with a PG from 0 to 7, such as h1:3, or `all`".to_owned())
    }
}

/// The most frames that may have been dropped for a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drops {
    /// Why.
    pub reason: DropReason,
    /// At most so many.
    pub max: u64,
}

impl FromStr for Drops {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, max) =
            text.split_once('=').ok_or_else(|| "write REASON=MAX, such as wred=100".to_owned())?;
        let reason = DropReason::ALL.iter().find(|reason| reason.name() == name);
        let all = || DropReason::ALL.iter().map(|reason| reason.name()).collect::<Vec<_>>();
        let reason = reason.ok_or_else(|| {
            format!("there is no reason {name:?}; use one of {}", all().join(", "))
        })?;
        let max = max.parse().map_err(|_| format!("{max:?} is no number of frames"))?;
        Ok(Self { reason: *reason, max })
    }
}

#[derive(Debug, Default, Args)]
#[command(group(ArgGroup::new("checks").required(true).multiple(true).args([
    "violations", "lossless", "overrun", "drops", "xoff", "marked", "headroom_max", "idle",
    "profile",
])))]
pub(crate) struct AssertArguments {
    /// At most so many lossless frames lost.
    #[arg(long, value_name = "MAX")]
    pub violations: Option<u64>,
    /// Nothing lost at this PG, and the path was exercised: XOFF, XON and Headroom were in use.
    /// `all`: nothing lost at any lossless PG, and at least one of them was exercised.
    #[arg(long, value_name = "PORT:PG|all")]
    pub lossless: Vec<Lossless>,
    /// Don't ask whether the lossless path was exercised.
    #[arg(long, requires = "lossless")]
    pub no_evidence: bool,
    /// At most so many frames lost by the kernel because a worker was late.
    #[arg(long, value_name = "MAX")]
    pub overrun: Option<u64>,
    /// At most so many frames dropped for this reason; may be given several times.
    #[arg(long, value_name = "REASON=MAX")]
    pub drops: Vec<Drops>,
    /// At least so many XOFF edges.
    #[arg(long, value_name = "MIN")]
    pub xoff: Option<u64>,
    /// At least so many frames marked CE.
    #[arg(long, value_name = "MIN")]
    pub marked: Option<u64>,
    /// Headroom of no lossless PG was fuller than this share of its size.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub headroom_max: Option<u32>,
    /// Nothing is held or queued anywhere now.
    #[arg(long)]
    pub idle: bool,
    /// This profile is in force: its name, or at least 8 digits of its SHA-256.
    #[arg(long, value_name = "SHA_OR_NAME")]
    pub profile: Option<String>,
    /// Look at this port alone instead of the sum of all; may be given several times, each
    /// counted by itself. Lossless PGs name their own.
    #[arg(long, value_name = "PORT")]
    pub port: Vec<String>,
    /// Write the verdict as JUnit XML, also where the switch can't be reached.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pgs_and_reasons_are_read_or_refused_with_the_choice() {
        let pg = |text: &str| text.parse::<Lossless>();
        assert_eq!(pg("all"), Ok(Lossless::All));
        assert_eq!(pg("h1:3"), Ok(Lossless::Pg { port: "h1".to_owned(), pg: 3 }));
        assert_eq!(pg("a:b:7"), Ok(Lossless::Pg { port: "a:b".to_owned(), pg: 7 }));
        for wrong in ["", "h1", ":3", "h1:8", "h1:", "h1:-1", "h1:x"] {
            assert!(pg(wrong).is_err_and(|why| why.contains("PORT:PG")), "{wrong}");
        }
        let drops = |text: &str| text.parse::<Drops>();
        assert_eq!(drops("wred=7"), Ok(Drops { reason: DropReason::Wred, max: 7 }));
        for reason in DropReason::ALL {
            assert_eq!(
                drops(&format!("{}=0", reason.name())).map(|drops| drops.reason),
                Ok(*reason)
            );
        }
        assert!(drops("weird=7").is_err_and(|why| why.contains("overflow, lossy_ingress")));
        assert!(drops("wred=-1").is_err() && drops("wred").is_err());
    }
}
