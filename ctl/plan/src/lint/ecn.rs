//! E01..E05, E07, E08: marking lines against the levels of the PGs that feed the queue. E06 is
//! found when the document is planned: the core has no probability out of range.

use super::levels::Levels;
use super::{feeds, Id, LintFinding, PortView, Severity, Subject};
use crate::amounts::q_limit;
use holdfast_api::doc::Finding;
use holdfast_core::ids::{PgId, QueueId};
use holdfast_core::profile::{Limit, PgSpec, WredSpec};
use holdfast_core::units::Cells;
use std::cmp::Reverse;

pub(super) fn check(subject: &Subject<'_>, found: &mut Vec<LintFinding>) {
    for port in subject.ports() {
        for (queue, entry) in port.spec.queues.iter() {
            let at = Place { subject, port, queue };
            if let Some(line) = &entry.wred {
                at.line(line, found);
                at.limit(line, entry.limit, found);
                let feeders = at.feeders();
                at.order(line, &feeders, found);
                at.congestion(line, &feeders, found);
            } else if subject.carries_lossless(port.spec, queue) {
                let message = "a lossless queue has no marking line";
                let fix = "add kmin and kmax, both below XOFF - XON";
                let finding = Finding::new(at.key("wred"), message, fix);
                found.push(LintFinding::gravest(Id::E04, finding).at(&port));
            }
        }
        shared_pgs(subject, &port, found);
    }
}

/// A lossless PG whose frames may leave by the queue, and its levels.
struct Feeder<'a> {
    port: PortView<'a>,
    pg: PgId,
    account: &'a PgSpec,
    levels: Levels,
}

/// One queue of one port.
struct Place<'a> {
    subject: &'a Subject<'a>,
    port: PortView<'a>,
    queue: QueueId,
}

impl<'a> Place<'a> {
    fn key(&self, name: &str) -> String {
        self.port.key(format_args!("queue.{}.{name}", self.queue))
    }

    fn found(&self, id: Id, finding: Finding) -> LintFinding {
        LintFinding::gravest(id, finding).at(&self.port).of_queue(self.port.number, self.queue)
    }

    fn feeders(&self) -> Vec<Feeder<'a>> {
        let mut feeders = Vec::new();
        for port in self.subject.ports() {
            for (pg, account) in port.spec.pgs.iter().filter(|(_, account)| account.lossless) {
                if feeds(port.spec, pg, self.port.spec, self.queue) {
                    let levels = Levels::of(account, self.subject.pool(account));
                    feeders.push(Feeder { port, pg, account, levels });
                }
            }
        }
        feeders
    }

    /// E01: 0 < Kmin <= Kmax (AC5P).
    fn line(&self, line: &WredSpec, found: &mut Vec<LintFinding>) {
        let finding = if line.kmin == Cells::ZERO {
            let fix = "use at least 1 cell, or remove the section";
            let finding =
                Finding::new(self.key("wred.kmin"), "an empty queue would be marked", fix);
            finding.numbers(0, "at least 1")
        } else if line.kmin > line.kmax {
            let fix = "lower kmin or raise kmax; equal values make a step";
            let finding = Finding::new(self.key("wred.kmin"), "Kmin is above Kmax", fix);
            finding.numbers(line.kmin.0, line.kmax.0)
        } else {
            return;
        };
        found.push(self.found(Id::E01, finding));
    }

    /// E08: Kmin against the queue's own limit.
    fn limit(&self, line: &WredSpec, limit: Option<Limit>, found: &mut Vec<LintFinding>) {
        let Some(limit) = limit.map(|limit| q_limit(limit, self.subject.spec.egress_shared)) else {
            return;
        };
        let hundred = u64::from(line.kmin.0) * 100;
        let percent = |n: u64| u64::from(limit.0) * n;
        if hundred < percent(10) || hundred > percent(80) {
            let message = format!("Kmin is outside 10..80 % of the queue's limit ({limit})");
            let fix = "move kmin, or change the queue's limit or alpha";
            let range = format!("{}..{}", percent(10).div_ceil(100), percent(80) / 100);
            let finding = Finding::new(self.key("wred.kmin"), message, fix);
            found.push(self.found(Id::E08, finding.numbers(line.kmin.0, range)));
        }
    }

    /// E02 and E03: the whole line lies below the level at which each feeder resumes, and so
    /// below XOFF. The tightest feeder is named.
    fn order(&self, line: &WredSpec, feeders: &[Feeder<'_>], found: &mut Vec<LintFinding>) {
        let k = self.subject.queues_at_once;
        let marked = u64::from(k) * u64::from(line.kmax.0);
        let times = if k == 1 { String::new() } else { format!("{k} x ") };
        let report = |id, feeder: &Feeder<'_>, severity, what: &str, limit: Cells| {
            let (pg, name) = (feeder.pg, feeder.port.name);
            let message = format!(
                "{times}Kmax is not below {what} PG {pg} of {name}{}: ECN must act before PFC \
                 (0 < Kmin <= Kmax < XOFF - XON < XOFF)",
                if id == Id::E03 { " resumes" } else { "" }
            );
            let fix = "lower kmax, raise xoff, or lower xon";
            let finding = Finding::new(self.key("wred.kmax"), message, fix);
            let finding = finding.numbers(marked, format!("below {}", limit.0));
            let place = LintFinding::new(id, severity, finding).at(&self.port);
            place.of_queue(self.port.number, self.queue).of_pg(feeder.port.number, feeder.pg)
        };
        // A pause at the limit of now has no fixed order: it is judged, but not refused. So are
        // several queues that only together reach the resume level.
        let above_xoff = |feeder: &Feeder<'_>| match feeder.levels.fixed {
            true => Severity::Error,
            false => Severity::Warning,
        };
        let above_resume = |feeder: &Feeder<'_>| match line.kmax >= feeder.levels.resume {
            true => above_xoff(feeder),
            false => Severity::Warning,
        };
        let reached = |level: Cells| marked >= u64::from(level.0);
        let over_xoff = feeders.iter().filter(|feeder| reached(feeder.levels.xoff));
        if let Some(f) = over_xoff.min_by_key(|f| (Reverse(above_xoff(f)), f.levels.xoff)) {
            found.push(report(Id::E02, f, above_xoff(f), "XOFF of", f.levels.xoff));
        }
        let over_resume = feeders.iter().filter(|feeder| reached(feeder.levels.resume));
        if let Some(f) = over_resume.min_by_key(|f| (Reverse(above_resume(f)), f.levels.resume)) {
            let what = "the level at which";
            found.push(report(Id::E03, f, above_resume(f), what, f.levels.resume));
        }
    }

    /// E05: n ports congested, each with P lossless PGs. One PG then settles at
    /// alpha * Service / (1 + alpha * P), and what it holds is spread over n queues.
    fn congestion(&self, line: &WredSpec, feeders: &[Feeder<'_>], found: &mut Vec<LintFinding>) {
        let ports = self.subject.spec.ports.len() as u64;
        let share = |feeder: &Feeder<'_>| {
            let pool = u128::from(self.subject.pool(feeder.account).0);
            let same = |pg: &&PgSpec| pg.lossless && pg.pool == feeder.account.pool;
            let pgs = feeder.port.spec.pgs.0.iter().filter(same).count() as u64;
            let (above, below) = match feeder.account.limit {
                Limit::Static(limit) => {
                    let all = u128::from(limit.0) * u128::from(pgs);
                    (all.min(pool), u128::from(pgs.max(1)))
                }
                Limit::Dynamic(alpha) => {
                    let shift = u32::from(alpha.log2().unsigned_abs());
                    match alpha.log2() {
                        0.. => (pool << shift, 1 + (u128::from(pgs) << shift)),
                        _ => (pool, (1 << shift) + u128::from(pgs)),
                    }
                }
            };
            (above, below * u128::from(ports.max(1)), pgs)
        };
        // The smallest share: a/b < c/d without dividing.
        let shares = feeders.iter().map(|feeder| (feeder, share(feeder)));
        let Some((feeder, (above, below, pgs))) =
            shares.min_by(|(_, (a, b, _)), (_, (c, d, _))| (a * d).cmp(&(c * b)))
        else {
            return;
        };
        if u128::from(line.kmin.0) * below < above {
            return;
        }
        let factor = above as f64 / (below as f64 * f64::from(line.kmin.0.max(1)));
        let message = format!(
            "with all {ports} ports congested and {pgs} lossless PGs each, PG {} of {} holds {} \
             cells for this queue: {factor:.2} x Kmin",
            feeder.pg,
            feeder.port.name,
            above / below
        );
        let fix = "lower kmin, raise alpha or the pool, or accept PFC first in the worst case";
        let finding = Finding::new(self.key("wred.kmin"), message, fix);
        // Kmin * below < above holds up to here.
        let limit = format!("below {}", above.div_ceil(below));
        let finding = self.found(Id::E05, finding.numbers(line.kmin.0, limit));
        found.push(finding.of_pg(feeder.port.number, feeder.pg));
    }
}

/// E07: the queues that one lossless PG feeds.
fn shared_pgs(subject: &Subject<'_>, port: &PortView<'_>, found: &mut Vec<LintFinding>) {
    for (pg, _) in port.spec.pgs.iter().filter(|(_, account)| account.lossless) {
        let fed = |egress: &PortView<'_>| -> Vec<QueueId> {
            QueueId::all().filter(|queue| feeds(port.spec, pg, egress.spec, *queue)).collect()
        };
        let Some(queues) = subject.ports().map(|egress| fed(&egress)).find(|q| q.len() > 1) else {
            continue;
        };
        let queues: Vec<String> = queues.iter().map(QueueId::to_string).collect();
        let message = format!("a lossless PG feeds several queues: {}", queues.join(", "));
        let fix = "give each class its own PG, or let the classes share one queue";
        let finding = Finding::new(port.key(format_args!("pg.{pg}")), message, fix);
        found.push(LintFinding::gravest(Id::E07, finding).at(port).of_pg(port.number, pg));
    }
}
