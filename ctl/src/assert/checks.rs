//! The judgement: what was wanted against what was seen. Pure.

use super::sight::Sight;
use crate::cli::assert::{AssertArguments, Drops};
use holdfast_api::message::{PgStatus, PortStatus};
use serde::Serialize;

mod evidence;
mod idle;

/// Digits of a SHA-256 that name a profile at least.
const SHA_DIGITS: usize = 8;

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    /// Its name, of its option: `violations`, `lossless h1:3`.
    pub(super) check: String,
    /// What was wanted.
    pub(super) wanted: String,
    /// What was found.
    pub(super) found: String,
    /// Whether that is enough.
    pub(super) passed: bool,
}

impl Check {
    fn new(check: String, wanted: impl Into<String>, found: impl Into<String>, ok: bool) -> Self {
        Self { check, wanted: wanted.into(), found: found.into(), passed: ok }
    }
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Verdict {
    /// Whether all hold.
    pub(super) passed: bool,
    /// Each by itself.
    pub(super) checks: Vec<Check>,
}

impl Verdict {
    /// The names of those that don't hold.
    pub(super) fn failed(&self) -> Vec<&str> {
        let failed = self.checks.iter().filter(|check| !check.passed);
        failed.map(|check| check.check.as_str()).collect()
    }
}

/// Judges what was seen.
pub(super) fn judge(sight: &Sight, wanted: &AssertArguments) -> Verdict {
    let mut checks = counters(sight, wanted);
    for lossless in &wanted.lossless {
        checks.extend(evidence::lossless(sight, lossless, !wanted.no_evidence));
    }
    if let Some(percent) = wanted.headroom_max {
        checks.push(headroom(sight, &wanted.port, percent));
    }
    if wanted.idle {
        checks.push(idle::idle(sight, &wanted.port));
    }
    if let Some(named) = &wanted.profile {
        checks.push(profile(sight, named));
    }
    Verdict { passed: checks.iter().all(|check| check.passed), checks }
}

/// Checks of numbers that are summed over ports.
fn counters(sight: &Sight, wanted: &AssertArguments) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut most = |name: &str, max: u64, count: &dyn Fn(&PortStatus) -> u64| {
        let wanted_text = format!("at most {max}");
        checks.extend(each(sight, &wanted.port, name, count, |found| {
            (wanted_text.clone(), found <= max)
        }));
    };
    if let Some(max) = wanted.violations {
        most("violations", max, &|port| port.lossless_violations);
    }
    if let Some(max) = wanted.overrun {
        most("overrun", max, &|port| port.receive_overrun);
    }
    for Drops { reason, max } in &wanted.drops {
        let of = |port: &PortStatus| port.drops.get(reason.name()).copied().unwrap_or_default();
        most(&format!("drops {}", reason.name()), *max, &of);
    }
    let mut least = |name: &str, min: u64, count: &dyn Fn(&PortStatus) -> u64| {
        let wanted_text = format!("at least {min}");
        checks.extend(each(sight, &wanted.port, name, count, |found| {
            (wanted_text.clone(), found >= min)
        }));
    };
    if let Some(min) = wanted.xoff {
        let edges = |port: &PortStatus| {
            sight.pgs.iter().filter(|pg| pg.port == port.port).map(|pg| pg.xoff_edges).sum()
        };
        least("xoff", min, &edges);
    }
    if let Some(min) = wanted.marked {
        let marked = |port: &PortStatus| {
            sight.ecn.iter().filter(|queue| queue.port == port.port).map(|queue| queue.marked).sum()
        };
        least("marked", min, &marked);
    }
    checks
}

/// One check of the sum over all ports, or one a port that was named.
fn each(
    sight: &Sight,
    named: &[String],
    name: &str,
    count: &dyn Fn(&PortStatus) -> u64,
    judge: impl Fn(u64) -> (String, bool),
) -> Vec<Check> {
    if named.is_empty() {
        let found = sight.ports.iter().map(count).fold(0, u64::saturating_add);
        let (wanted, passed) = judge(found);
        return vec![Check::new(name.to_owned(), wanted, found.to_string(), passed)];
    }
    let one = |port: &String| {
        let check = format!("{name} at {port}");
        match sight.ports.iter().find(|status| status.port == *port) {
            Some(status) => {
                let found = count(status);
                let (wanted, passed) = judge(found);
                Check::new(check, wanted, found.to_string(), passed)
            }
            // A name that is wrong must not pass for a port without losses.
            None => Check::new(check, judge(0).0, no_port(sight), false),
        }
    };
    named.iter().map(one).collect()
}

fn no_port(sight: &Sight) -> String {
    format!("no such port; there are {}", sight.port_names())
}

/// Named ports that don't exist; a check of a wrong name must fail.
fn unknown<'a>(sight: &Sight, named: &'a [String]) -> Option<&'a String> {
    named.iter().find(|name| !sight.ports.iter().any(|port| port.port == **name))
}

fn is_named(named: &[String], port: &str) -> bool {
    named.is_empty() || named.iter().any(|name| name == port)
}

fn headroom(sight: &Sight, named: &[String], percent: u32) -> Check {
    let (check, wanted) = ("headroom-max".to_owned(), format!("at most {percent} % of each"));
    if let Some(name) = unknown(sight, named) {
        return Check::new(check, wanted, format!("{name}: {}", no_port(sight)), false);
    }
    let pgs = sight.pgs.iter().filter(|pg| pg.lossless && is_named(named, &pg.port));
    // By 64-bit products: 0 of 0 is within every share, 1 of 0 within none.
    let parts =
        |pg: &PgStatus| (u64::from(pg.watermark.user.headroom), u64::from(pg.thresholds.headroom));
    let share = |pg: &&PgStatus| match parts(pg) {
        (0, _) => 0,
        (_, 0) => u64::MAX,
        (peak, size) => peak * 1_000_000 / size,
    };
    let Some(worst) = pgs.max_by_key(share) else {
        return Check::new(check, wanted, "no lossless PG", false);
    };
    let (peak, size) = parts(worst);
    let passed = peak * 100 <= u64::from(percent) * size;
    let found = match size {
        0 => format!("{peak} of 0 cells at {}:{}", worst.port, worst.pg),
        _ => {
            let tenths = peak * 1_000 / size;
            let (whole, tenth) = (tenths / 10, tenths % 10);
            let place = format!("{}:{}", worst.port, worst.pg);
            format!("{whole}.{tenth} % at {place}: {peak} of {size} cells")
        }
    };
    Check::new(check, wanted, found, passed)
}

fn profile(sight: &Sight, named: &str) -> Check {
    let (name, sha256) = &sight.profile;
    let sha = named.len() >= SHA_DIGITS && sha256.starts_with(&named.to_ascii_lowercase());
    let found = format!("{name} {sha256}");
    Check::new("profile".to_owned(), named, found, name == named || sha)
}

#[cfg(test)]
mod tests;
