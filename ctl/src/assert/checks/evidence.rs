//! Losslessness of PGs: nothing was lost, and the path that prevents loss was in use. A run that
//! never paused anybody shows nothing about it (SPEC 14).

use super::{no_port, Check};
use crate::assert::sight::Sight;
use crate::cli::assert::Lossless;
use holdfast_api::message::PgStatus;

const WITHOUT_LOSS: &str = "0 lost, 0 overrun, 0 dropped";
const IN_USE: &str = "XOFF, XON and Headroom in use";

/// Checks of the PGs that are meant.
pub(super) fn lossless(sight: &Sight, meant: &Lossless, evidence: bool) -> Vec<Check> {
    match meant {
        Lossless::Pg { port, pg } => one(sight, port, *pg, evidence),
        Lossless::All => all(sight, evidence),
    }
}

fn one(sight: &Sight, port: &str, number: u8, evidence: bool) -> Vec<Check> {
    let name = format!("lossless {port}:{number}");
    let found = sight.pgs.iter().find(|pg| pg.port == port && pg.pg == number);
    let pg = match found {
        None => return vec![Check::new(name, WITHOUT_LOSS, no_port(sight), false)],
        Some(pg) if !pg.lossless => {
            return vec![Check::new(name, WITHOUT_LOSS, "the PG is lossy", false)];
        }
        Some(pg) => pg,
    };
    let mut checks = vec![without_loss(sight, pg)];
    if evidence {
        let missing = missing(pg);
        let found = match missing.as_slice() {
            [] => in_use(pg),
            _ => format!("{}: {}", missing.join(", "), in_use(pg)),
        };
        checks.push(Check::new(
            format!("evidence {port}:{number}"),
            IN_USE,
            found,
            missing.is_empty(),
        ));
    }
    checks
}

/// Each lossless PG without loss; evidence of at least one, for in an incast the receivers' ports
/// are never paused.
fn all(sight: &Sight, evidence: bool) -> Vec<Check> {
    let pgs: Vec<&PgStatus> = sight.pgs.iter().filter(|pg| pg.lossless).collect();
    if pgs.is_empty() {
        let name = "lossless all".to_owned();
        return vec![Check::new(name, WITHOUT_LOSS, "no PG is lossless", false)];
    }
    let mut checks: Vec<Check> = pgs.iter().map(|pg| without_loss(sight, pg)).collect();
    if evidence {
        let shown = pgs.iter().find(|pg| missing(pg).is_empty());
        // The one that lacks least says best what the run was short of.
        let nearest = pgs.iter().min_by_key(|pg| missing(pg).len());
        let found = match (shown, nearest) {
            (Some(pg), _) => format!("{}:{}: {}", pg.port, pg.pg, in_use(pg)),
            (None, Some(pg)) => {
                let lacks = missing(pg).join(", ");
                format!("at no PG; nearest is {}:{}: {lacks}: {}", pg.port, pg.pg, in_use(pg))
            }
            (None, None) => "no PG is lossless".to_owned(),
        };
        checks.push(Check::new("evidence all".to_owned(), IN_USE, found, shown.is_some()));
    }
    checks
}

fn without_loss(sight: &Sight, pg: &PgStatus) -> Check {
    let port = sight.ports.iter().find(|port| port.port == pg.port);
    let overrun = port.map_or(0, |port| port.receive_overrun);
    let dropped: u64 = pg.drops.values().sum();
    let lost = pg.lossless_violations;
    let found = format!("{lost} lost, {overrun} overrun, {dropped} dropped");
    let passed = port.is_some() && lost == 0 && overrun == 0 && dropped == 0;
    Check::new(format!("lossless {}:{}", pg.port, pg.pg), WITHOUT_LOSS, found, passed)
}

/// What the run doesn't show at a PG.
fn missing(pg: &PgStatus) -> Vec<&'static str> {
    let evidence = [
        (pg.xoff_edges > 0, "never in XOFF"),
        (pg.xon_edges > 0, "no XON"),
        (pg.watermark.user.headroom > 0, "Headroom never used"),
    ];
    evidence.into_iter().filter(|(shown, _)| !shown).map(|(_, lacks)| lacks).collect()
}

fn in_use(pg: &PgStatus) -> String {
    let (xoff, xon, headroom) = (pg.xoff_edges, pg.xon_edges, pg.watermark.user.headroom);
    format!("{xoff} XOFF, {xon} XON, Headroom up to {headroom} cells")
}
