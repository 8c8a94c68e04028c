//! B01..B03, B08..B11: what the parts of the buffer hold.

use super::{is_lossless, Id, LintFinding, PortView, Severity, Subject};
use crate::amounts::q_limit;
use holdfast_api::doc::Finding;
use holdfast_core::frame::MAX_CHUNKS;
use holdfast_core::ids::MAX_PORTS;
use holdfast_core::io::BURST;
use holdfast_core::profile::{Limit, PgSpec, PortSpec, ProfileSpec};
use holdfast_core::units::{Cells, FrameLen};

/// Chunks that the dataplane keeps for MAC control frames: 16 for each port there can be.
const CONTROL_CHUNKS: u64 = 16 * MAX_PORTS as u64;

pub(super) fn check(subject: &Subject<'_>, found: &mut Vec<LintFinding>) {
    budget(subject.spec, found);
    chunks(subject, found);
    service(subject.spec, found);
    need(subject, found);
    for port in subject.ports() {
        let frame = largest_frame(port.spec).to_cells(subject.spec.cell);
        for (pg, account) in port.spec.pgs.iter() {
            let key = |name: &str| port.key(format_args!("pg.{pg}.{name}"));
            if account.lossless {
                unreserved(&port, &key("headroom"), account, found);
            } else {
                lossy_headroom(&port, &key("headroom"), account, found);
            }
            let pool = subject.pool(account);
            for (name, what) in one_frame(&key, account, pool, frame) {
                let finding = LintFinding::gravest(Id::B11, what).at(&port);
                // Only what it may borrow decides about the levels of the account.
                let borrows = matches!(name, "limit" | "alpha");
                found.push(if borrows { finding.of_pg(port.number, pg) } else { finding });
            }
        }
        ignored_limits(&port, found);
    }
}

fn largest_frame(port: &PortSpec) -> FrameLen {
    FrameLen(port.largest_frame())
}

/// B01: the two views of SPEC 3.1.
fn budget(spec: &ProfileSpec, found: &mut Vec<LintFinding>) {
    let pgs = || spec.ports.iter().flat_map(|port| port.pgs.0.iter());
    let sum = |cells: &mut dyn Iterator<Item = Cells>| cells.map(|c| u64::from(c.0)).sum::<u64>();
    let total = u64::from(spec.total.0);
    let guaranteed = sum(&mut pgs().map(|pg| pg.guaranteed));
    let private = pgs().filter(|pg| !pg.headroom_pool).map(|pg| pg.headroom);
    let headroom = sum(&mut private.chain([spec.headroom_pool]));
    let pools = sum(&mut spec.pools.iter().map(|(_, size)| *size));
    let ingress = guaranteed + headroom + pools;
    if ingress > total {
        let message = format!(
            "ingress parts exceed the total: Guaranteed {guaranteed} + Headroom {headroom} + \
             pools {pools}"
        );
        let fix = "make a pool smaller or the total larger";
        let finding = Finding::new("buffer.total", message, fix).numbers(ingress, total);
        found.push(LintFinding::gravest(Id::B01, finding));
    }
    let queues = spec.ports.iter().flat_map(|port| port.queues.0.iter());
    let guarantees = sum(&mut queues.map(|queue| queue.guarantee));
    let egress = guarantees + u64::from(spec.egress_shared.0);
    if egress > total {
        let shared = spec.egress_shared.0;
        let message =
            format!("egress parts exceed the total: guarantees {guarantees} + shared {shared}");
        let fix = "make egress_shared smaller or the total larger";
        let finding = Finding::new("buffer.egress_shared", message, fix).numbers(egress, total);
        found.push(LintFinding::gravest(Id::B01, finding));
    }
}

/// B02: a chunk behind each cell, beside those of RX rings, floods and MAC control frames.
fn chunks(subject: &Subject<'_>, found: &mut Vec<LintFinding>) {
    let Some(rx_ring) = subject.rx_ring else { return };
    let spec = subject.spec;
    let rings = spec.ports.len() as u64 * (u64::from(rx_ring) + BURST as u64);
    let (cells, floods) = (u64::from(spec.total.0), u64::from(spec.flood_limit));
    let needed = cells + floods + rings + CONTROL_CHUNKS;
    if needed > u64::from(MAX_CHUNKS) {
        let message = format!(
            "there are fewer chunks of frame memory than needed: cells {cells} + floods {floods} \
             + RX rings {rings} + MAC control {CONTROL_CHUNKS}"
        );
        let fix = "make the total smaller, or cell_bytes larger";
        let finding = Finding::new("buffer.total", message, fix).numbers(needed, MAX_CHUNKS);
        found.push(LintFinding::gravest(Id::B02, finding));
    }
}

/// B10: what Guaranteed leaves of what isn't Headroom.
fn service(spec: &ProfileSpec, found: &mut Vec<LintFinding>) {
    let pgs = spec.ports.iter().flat_map(|port| port.pgs.0.iter());
    let guaranteed: u64 = pgs.map(|pg| u64::from(pg.guaranteed.0)).sum();
    let service: u64 = spec.pools.iter().map(|(_, size)| u64::from(size.0)).sum();
    if service < guaranteed {
        let percent = service * 100 / (service + guaranteed);
        let message = format!(
            "Guaranteed of all PGs ({guaranteed}) leaves {percent} % of it and Service ({service})"
        );
        let fix = "lower guaranteed, or make the pools larger";
        let finding = Finding::new("pool", message, fix);
        let finding = finding.numbers(service, format!("at least {guaranteed}"));
        found.push(LintFinding::gravest(Id::B10, finding));
    }
}

/// B03 against the profile's own formula.
fn need(subject: &Subject<'_>, found: &mut Vec<LintFinding>) {
    for term in subject.terms {
        let Some(port) = subject.ports().find(|port| port.name == term.port) else { continue };
        let (have, need, text) = (term.headroom, term.need, &term.terms);
        let key = port.key(format_args!("pg.{}.headroom", term.pg));
        let (severity, message, limit) = if have < need {
            (Severity::Error, format!("Headroom is below its need: {text}"), need)
        } else if have < term.smallest_need {
            let message = format!(
                "Headroom is below the need of {} byte frames, the smallest lossless ones: one \
                 takes {} cells",
                subject.smallest.0,
                subject.smallest.to_cells(subject.spec.cell)
            );
            (Severity::Warning, message, term.smallest_need)
        } else if u64::from(have.0) * 100 < u64::from(need.0) * 105 {
            (Severity::Warning, format!("Headroom is within 5 % of its need: {text}"), need)
        } else {
            continue;
        };
        if have == Cells::ZERO {
            // Reported with or without a formula.
            continue;
        }
        let fix = match severity {
            Severity::Error => {
                "raise it, lower the port's MTU or rx_backlog_mark, or remove [formula]"
            }
            _ => "raise it, or state a larger smallest_lossless_frame if there is no smaller one",
        };
        let finding = Finding::new(key, message, fix).numbers(have.0, limit.0);
        found.push(LintFinding::new(Id::B03, severity, finding).at(&port));
    }
}

/// B03 without a formula: 0 is never lossless.
fn unreserved(port: &PortView<'_>, key: &str, pg: &PgSpec, found: &mut Vec<LintFinding>) {
    if pg.headroom == Cells::ZERO {
        let message = "a lossless PG has no Headroom";
        let fix = "set what the profile's formula asks for: 0 is never lossless";
        let finding = Finding::new(key, message, fix).numbers(0, "at least its need");
        found.push(LintFinding::gravest(Id::B03, finding).at(port));
    }
}

/// B08.
fn lossy_headroom(port: &PortView<'_>, key: &str, pg: &PgSpec, found: &mut Vec<LintFinding>) {
    if pg.headroom != Cells::ZERO {
        let message = "a lossy PG has Headroom";
        let finding = Finding::new(key, message, "set it to 0, or set lossless = true");
        found.push(LintFinding::gravest(Id::B08, finding.numbers(pg.headroom.0, 0)).at(port));
    }
}

/// B11: what is given must hold one frame of the port's MTU.
fn one_frame(
    key: &dyn Fn(&str) -> String,
    pg: &PgSpec,
    pool: Cells,
    frame: Cells,
) -> Vec<(&'static str, Finding)> {
    let mut found = Vec::new();
    let mut hold = |name: &'static str, what: &str, value: Cells, fix: &str| {
        if value < frame {
            let message = format!("{what} holds less than one largest frame of the port");
            let finding = Finding::new(key(name), message, fix);
            found.push((name, finding.numbers(value.0, format!("at least {}", frame.0))));
        }
    };
    if pg.guaranteed != Cells::ZERO {
        hold("guaranteed", "Guaranteed", pg.guaranteed, "use 0 or enough for a frame");
    }
    if pg.lossless {
        hold("headroom", "Headroom", pg.headroom, "raise it: 0 is never lossless");
        let (name, most) = match pg.limit {
            Limit::Static(_) => ("limit", q_limit(pg.limit, pool)),
            Limit::Dynamic(alpha) => ("alpha", alpha.of(pool)),
        };
        hold(name, "what the PG may borrow", most, "raise it, or the pool");
    }
    found
}

/// B09.
fn ignored_limits(port: &PortView<'_>, found: &mut Vec<LintFinding>) {
    for (queue, entry) in port.spec.queues.iter() {
        let Some(limit) = entry.limit.filter(|_| is_lossless(port.spec, queue)) else { continue };
        let name = match limit {
            Limit::Static(_) => "limit",
            Limit::Dynamic(_) => "alpha",
        };
        let key = port.key(format_args!("queue.{queue}.{name}"));
        let message = "the limit of a lossless queue is ignored";
        let finding = Finding::new(key, message, "remove it");
        found.push(LintFinding::gravest(Id::B09, finding).at(port));
    }
}
