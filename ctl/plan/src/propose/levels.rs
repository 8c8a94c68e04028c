//! The rules from need and Q_limit to thresholds. Each level carries its rule as text.

use super::published::{base, least_headroom, marking_line, Reach};
use super::{largest_frame, reference, Request, Sharing};
use crate::headroom::{self, Formula, Need};
use holdfast_api::amount::rate_text;
use holdfast_api::doc::Finding;
use holdfast_core::profile::{Limit, FRAME_OVERHEAD};
use holdfast_core::units::{BitRate, CellSize, Cells};

/// One threshold or size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// What it is, as in SPEC 1.
    pub name: &'static str,
    /// How much.
    pub cells: Cells,
    /// Why so much.
    pub rule: String,
}

/// The thresholds and sizes of a lossless PG and its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Size for frames in flight.
    pub headroom: Level,
    /// Size of its own.
    pub guaranteed: Level,
    /// Where one PG alone settles.
    pub q_limit: Level,
    /// When to pause.
    pub xoff: Level,
    /// The offset of the resume.
    pub xon: Level,
    /// XOFF - XON.
    pub resume: Level,
    /// Where marking begins.
    pub kmin: Level,
    /// From where on everything is marked.
    pub kmax: Level,
}

impl Levels {
    /// All of them, in the order of the explanation.
    pub const fn all(&self) -> [&Level; 8] {
        [
            &self.headroom,
            &self.guaranteed,
            &self.q_limit,
            &self.xoff,
            &self.xon,
            &self.resume,
            &self.kmin,
            &self.kmax,
        ]
    }
}

fn level(name: &'static str, cells: Cells, rule: impl Into<String>) -> Level {
    Level { name, cells, rule: rule.into() }
}

fn round_up(cells: Cells, step: Cells) -> Cells {
    let step = step.0.max(1);
    Cells(cells.0.div_ceil(step).saturating_mul(step))
}

fn share(of: Cells, percent: u32) -> Cells {
    let part = u64::from(of.0) * u64::from(percent) / 100;
    Cells(u32::try_from(part).unwrap_or(u32::MAX))
}

/// `part` of `whole` in whole percent.
pub(super) fn percent(part: Cells, whole: Cells) -> u32 {
    let percent = u64::from(part.0) * 100 / u64::from(whole.0.max(1));
    u32::try_from(percent).unwrap_or(u32::MAX)
}

/// The need rounded up, and from 400G on never below the published range of the loop.
pub(super) fn headroom(request: &Request, need: &Need) -> Level {
    let given = &request.given;
    let step = match request.formula {
        Formula::Cpu => 1_024,
        _ if given.speed <= BitRate::gigabits(100) => 64,
        _ => 128,
    };
    let step = base(step, given.cell);
    let rounded = round_up(need.cells, step);
    let looped = matches!(request.formula, Formula::Ac5p | Formula::Exact);
    let span = headroom::t_loop(given.t_loop, given.cable).filter(|_| looped);
    let least = span.filter(|_| given.speed >= reference());
    let least = least.map_or(Cells::ZERO, |span| least_headroom(span, given.cell));
    let rule = if least >= rounded {
        format!("need {}; top of the range published for this loop at 400G", need.cells.0)
    } else {
        format!("need {} rounded up to {}", need.cells.0, step.0)
    };
    level("Headroom", rounded.max(least), rule)
}

/// The other levels.
pub(super) fn all(
    request: &Request,
    headroom: Level,
    sharing: &Sharing,
    settled: Cells,
) -> Result<Levels, Finding> {
    let frame = largest_frame(&request.given, request.given.cell);
    let xoff = xoff(request, headroom.cells, settled);
    let least = frame.max(Cells(4));
    if xoff.cells < least {
        let message = "what one PG may borrow has no room for XOFF below Headroom";
        let fix = "raise --q-limit, --pool or --alpha, or plan for a shorter loop";
        let finding = Finding::new("q_limit", message, fix);
        let limit = format!("at least {}", headroom.cells.saturating_add(least).0);
        return Err(finding.numbers(settled.0, limit));
    }
    let xon = xon(request, xoff.cells)?;
    let resume = xoff.cells.saturating_sub(xon.cells);
    let (kmin, kmax) = marking(request, xoff.cells, resume);
    Ok(Levels {
        guaranteed: level("Guaranteed", frame, guaranteed_rule(frame, request.given.cell)),
        q_limit: level("Q_limit", settled, q_limit_rule(sharing)),
        resume: level("resume", resume, "XOFF - XON"),
        headroom,
        xoff,
        xon,
        kmin,
        kmax,
    })
}

fn guaranteed_rule(frame: Cells, cell: CellSize) -> String {
    let bytes = u64::from(frame.0) * u64::from(cell.bytes());
    let mtu = bytes.saturating_sub(u64::from(FRAME_OVERHEAD));
    format!("one largest frame: for ports of an MTU up to {mtu}")
}

fn q_limit_rule(sharing: &Sharing) -> String {
    match sharing.limit {
        Limit::Static(_) => "static limit".to_owned(),
        Limit::Dynamic(alpha) => format!(
            "alpha x Service / (1 + alpha), alpha 2^{}, Service {}",
            alpha.log2(),
            sharing.lossless.0
        ),
    }
}

/// Step 2: a share of Q_limit less the margin, and as published where it is.
fn xoff(request: &Request, headroom: Cells, q_limit: Cells) -> Level {
    // What arrives after XOFF must fit between it and the limit.
    let most = q_limit.saturating_sub(headroom);
    if let Some(xoff) = published_xoff(request, most, q_limit) {
        return xoff;
    }
    let (wanted, rule) = if request.formula == Formula::Cpu {
        (share(q_limit, 50), "half of Q_limit, as the lab profiles have it".to_owned())
    } else {
        // The middle of 55..70 %.
        let middle = Cells(u32::try_from(u64::from(q_limit.0) * 5 / 8).unwrap_or(u32::MAX));
        let less = middle.saturating_sub(headroom);
        let floor = share(q_limit, 43);
        if less >= floor {
            (less, format!("62.5 % of Q_limit = {}, less Headroom", middle.0))
        } else {
            (floor, format!("43 % of Q_limit: 62.5 % less Headroom would be {}", less.0))
        }
    };
    if wanted > most {
        return level("XOFF", most, format!("Q_limit - Headroom; {rule} would be {}", wanted.0));
    }
    level("XOFF", wanted, rule)
}

fn published_xoff(request: &Request, most: Cells, q_limit: Cells) -> Option<Level> {
    let given = &request.given;
    if !matches!(request.formula, Formula::Ac5p | Formula::Exact) {
        return None;
    }
    let row = Reach::of(given.speed, headroom::t_loop(given.t_loop, given.cable)?)?;
    let xoff = base(row.shipped_xoff, given.cell);
    // It is for a Q_limit like the family's: within what is usual, and with room for Headroom.
    let usual = share(q_limit, 40)..=share(q_limit, 70);
    let rule = format!(
        "as published for {} ({}..{}); {} % of Q_limit",
        row.name,
        base(row.xoff.0, given.cell).0,
        base(row.xoff.1, given.cell).0,
        percent(xoff, q_limit)
    );
    (usual.contains(&xoff) && xoff <= most).then(|| level("XOFF", xoff, rule))
}

/// Step 3, as its table really follows it: from the need at 400G, scaled to the speed.
fn xon(request: &Request, xoff: Cells) -> Result<Level, Finding> {
    let given = &request.given;
    let cell = given.cell;
    if request.formula == Formula::Cpu {
        let quarter = Cells((xoff.0 / 4).max(1));
        return Ok(level("XON", quarter, "a quarter of XOFF, as the lab profiles have it"));
    }
    let at_reference = headroom::Given { speed: reference(), ..*given };
    let need = request.formula.need(&at_reference)?.cells;
    let (low, high) = (base(1_536, cell), base(3_072, cell));
    let tripled = round_up(Cells(need.0.saturating_mul(3)), base(512, cell));
    let at_400 = tripled.clamp(low, high);
    let scale = |cells: Cells| {
        let speed = u128::from(given.speed.bits_per_second());
        let scaled = u128::from(cells.0) * speed / u128::from(reference().bits_per_second());
        Cells(u32::try_from(scaled).unwrap_or(u32::MAX))
    };
    let scaled = scale(at_400);
    // Not a cell below 12 %.
    let least = xoff.saturating_sub(share(xoff, 88));
    let most = share(xoff, 45).max(Cells(1));
    let cells = scaled.max(least).max(Cells(1)).min(most);
    let mut rule = format!(
        "3 x need at 400G {} = {}, up to {} in {}..{}: {}",
        need.0,
        need.0.saturating_mul(3),
        base(512, cell).0,
        low.0,
        high.0,
        at_400.0
    );
    if given.speed != reference() {
        rule.push_str(&format!("; x {} / 400G", rate_text(given.speed.bits_per_second())));
    }
    match cells {
        _ if cells > scaled => rule.push_str("; raised to 12 % of XOFF"),
        _ if cells < scaled => rule.push_str("; at most 45 % of XOFF"),
        _ => {}
    }
    // Step 3 as it is published, beside what its table follows.
    let floor = scale(low);
    let (from, to) = (least.max(floor), share(xoff, 20).max(floor));
    rule.push_str(&format!(" (max({}, 12..20 % of XOFF) = {}..{})", floor.0, from.0, to.0));
    Ok(level("XON", cells, rule))
}

/// Kmin and Kmax: the whole zone below the resume level, as published where it fits.
fn marking(request: &Request, xoff: Cells, resume: Cells) -> (Level, Level) {
    let given = &request.given;
    if request.formula == Formula::Cpu {
        let three_eighths = xoff.0 / 8 * 3 + xoff.0 % 8 * 3 / 8;
        let kmax = Cells(three_eighths.clamp(1, resume.0.saturating_sub(1).max(1)));
        let kmin = Cells((xoff.0 / 16).clamp(1, kmax.0));
        let rule = |part: &str| format!("{part} of XOFF, as the lab profiles have it");
        return (level("Kmin", kmin, rule("1/16")), level("Kmax", kmax, rule("3/8")));
    }
    let line = marking_line(given.speed, given.cell);
    if let Some((kmin, kmax)) = line.filter(|(_, kmax)| *kmax <= share(resume, 60)) {
        let rule = format!("as published for {}", rate_text(given.speed.bits_per_second()));
        let below = format!("{rule}; below the resume level");
        return (level("Kmin", kmin, rule), level("Kmax", kmax, below));
    }
    let kmax = Cells((resume.0 / 2).max(1));
    let gigabits = given.speed.bits_per_second().div_ceil(1_000_000_000);
    let per_gigabit = base(u32::try_from(gigabits).unwrap_or(u32::MAX), given.cell);
    let kmin = Cells(per_gigabit.0.min(kmax.0 / 2).max(1));
    let rule = "a published cell (256 B) a Gbit/s, at most half of Kmax";
    (level("Kmin", kmin, rule), level("Kmax", kmax, "half of the resume level"))
}
