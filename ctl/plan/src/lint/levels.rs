//! B04..B07, B12: the watermarks of a lossless PG against its limit and against each other.
//! `xoff = "limit"` is judged where one PG alone settles (Q_limit); what compares XOFF with the
//! limit doesn't apply to it (SPEC 3.3).

use super::{Id, LintFinding, PortView, Severity, Subject};
use crate::amounts::q_limit;
use holdfast_api::doc::Finding;
use holdfast_core::ids::PgId;
use holdfast_core::io::BURST;
use holdfast_core::profile::{PgSpec, Xoff, Xon};
use holdfast_core::units::Cells;

/// The levels of a lossless PG while it is the only one that borrows.
pub(super) struct Levels {
    /// Q_limit: where it settles.
    pub limit: Cells,
    /// Where it pauses.
    pub xoff: Cells,
    /// Where it resumes if no floor holds it up.
    pub resume: Cells,
    /// Whether XOFF is a level of its own and not the limit.
    pub fixed: bool,
}

impl Levels {
    pub(super) fn of(pg: &PgSpec, pool: Cells) -> Self {
        let limit = q_limit(pg.limit, pool);
        let (xoff, fixed) = match pg.xoff {
            Xoff::At(xoff) => (xoff, true),
            Xoff::AtLimit => (limit, false),
        };
        let resume = match pg.xon {
            Xon::Offset(window) => xoff.saturating_sub(window),
            Xon::Absolute(level) => level,
        };
        Self { limit, xoff, resume, fixed }
    }

    /// How far below XOFF the PG resumes, `floor` counted (R of SPEC 3.3).
    fn window(&self, floor: Cells) -> Cells {
        let below = self.xoff.saturating_sub(Cells(1));
        self.xoff.saturating_sub(self.resume.max(floor).min(below))
    }
}

pub(super) fn check(subject: &Subject<'_>, found: &mut Vec<LintFinding>) {
    let burst =
        Cells((BURST as u32).saturating_mul(subject.smallest.to_cells(subject.spec.cell).0));
    for port in subject.ports() {
        for (pg, account) in port.spec.pgs.iter().filter(|(_, account)| account.lossless) {
            let levels = Levels::of(account, subject.pool(account));
            let at = Place { port, pg };
            at.xon(account, &levels, found);
            at.window(account, &levels, burst, found);
            if levels.fixed {
                at.xoff(account, &levels, found);
            }
        }
    }
}

/// One PG of one port.
struct Place<'a> {
    port: PortView<'a>,
    pg: PgId,
}

impl Place<'_> {
    fn found(
        &self,
        id: Id,
        name: &str,
        message: String,
        fix: &str,
        numbers: (u32, String),
    ) -> LintFinding {
        let key = self.port.key(format_args!("pg.{}.{name}", self.pg));
        let finding = Finding::new(key, message, fix).numbers(numbers.0, numbers.1);
        LintFinding::gravest(id, finding).at(&self.port).of_pg(self.port.number, self.pg)
    }

    /// B05: 0 < XON < XOFF. A pause at the limit of now has no fixed order with XON: it is judged
    /// where one PG settles, but not refused, and a floor under the resume level is enough.
    fn xon(&self, pg: &PgSpec, levels: &Levels, found: &mut Vec<LintFinding>) {
        if levels.fixed && levels.xoff.0 < 2 {
            let message = "XOFF leaves no level for XON below it".to_owned();
            let (fix, numbers) =
                ("use 40..70 % of the limit", (levels.xoff.0, "at least 2".into()));
            found.push(self.found(Id::B05, "xoff", message, fix, numbers));
            return;
        }
        let (Xon::Offset(xon) | Xon::Absolute(xon)) = pg.xon;
        let held = !levels.fixed && pg.xon_floor != Cells::ZERO;
        if xon == Cells::ZERO || (xon >= levels.xoff && !held) {
            let message = "XON must lie between 0 and XOFF".to_owned();
            let fix = "as an offset about 25 % of XOFF, as a level about 75 %";
            let limit = format!("1..{}", levels.xoff.0.saturating_sub(1));
            let mut finding = self.found(Id::B05, "xon", message, fix, (xon.0, limit));
            if !levels.fixed && xon != Cells::ZERO {
                finding.severity = Severity::Warning;
            }
            found.push(finding);
        }
    }

    /// B06.
    fn window(&self, pg: &PgSpec, levels: &Levels, burst: Cells, found: &mut Vec<LintFinding>) {
        let window = levels.window(pg.xon_floor);
        let hundred = u64::from(window.0) * 100;
        let percent = |n: u64| u64::from(levels.xoff.0) * n;
        let below = |n: u64| percent(n).div_ceil(100);
        let wrong = if hundred < percent(12) {
            let what = format!("less than 12 % of XOFF ({})", levels.xoff);
            Some((what, "make it about 25 % of XOFF", format!("at least {}", below(12))))
        } else if window < burst {
            let what = format!("less than a burst of {BURST} of the smallest lossless frames");
            Some((what, "make it larger than a burst", format!("at least {}", burst.0)))
        } else if hundred > percent(50) {
            let what = format!("more than 50 % of XOFF ({})", levels.xoff);
            Some((what, "make it about 25 % of XOFF", format!("at most {}", percent(50) / 100)))
        } else {
            None
        };
        if let Some((what, fix, limit)) = wrong {
            let message = format!("the window between pause and resume is {what}");
            found.push(self.found(Id::B06, "xon", message, fix, (window.0, limit)));
        }
    }

    /// B04, B07 and B12: a fixed XOFF against Q_limit.
    fn xoff(&self, pg: &PgSpec, levels: &Levels, found: &mut Vec<LintFinding>) {
        let (xoff, limit) = (levels.xoff, levels.limit);
        if xoff >= limit {
            let message = "XOFF is not below what one PG can borrow: Headroom would be entered \
                           before the pause";
            let fix = "lower xoff to 40..70 % of the limit, or raise the pool, alpha or limit";
            let numbers = (xoff.0, format!("below {}", limit.0));
            found.push(self.found(Id::B04, "xoff", message.to_owned(), fix, numbers));
        }
        let hundred = u64::from(xoff.0) * 100;
        let percent = |n: u64| u64::from(limit.0) * n;
        if hundred < percent(40) || hundred > percent(70) {
            let message = format!("XOFF is outside 40..70 % of the limit ({limit})");
            let fix = "set it to 50..70 % of the limit, or change the pool, alpha or limit";
            let range = format!("{}..{}", percent(40).div_ceil(100), percent(70) / 100);
            found.push(self.found(Id::B07, "xoff", message, fix, (xoff.0, range)));
        }
        let left = limit.saturating_sub(xoff);
        if left < pg.headroom {
            let message =
                format!("between XOFF and the limit ({limit}) there is less than Headroom");
            let fix = "lower xoff, or raise the pool, alpha or limit";
            let numbers = (left.0, format!("at least {}", pg.headroom.0));
            found.push(self.found(Id::B12, "xoff", message, fix, numbers));
        }
    }
}
