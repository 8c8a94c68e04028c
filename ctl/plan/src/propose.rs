//! The planner: from link, traffic and switch to thresholds, each with its rule, and to a whole
//! profile (SPEC 10, facts of the AC5P family).

mod document;
mod levels;
mod published;

pub use levels::{Level, Levels};
pub use published::{Reach, REACHES};

use crate::amounts::q_limit;
use crate::error::PlanError;
use crate::facts::{PortFacts, SwitchFacts};
use crate::headroom::{self, Formula, Given, Need, REVERSE_FRAME};
use crate::resolve::{resolve, ProfilePlan};
use holdfast_api::doc::{Finding, Source};
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_core::profile::Limit;
use holdfast_core::units::{Alpha, BitRate, CellSize, Cells, FrameLen, MAX_SEGMENT_CELLS};

/// Ports that a proposal is tried on.
pub const PORTS: usize = 16;
/// MTU of those ports where none is given: a frame of it takes no more than Guaranteed.
const PORT_MTU: u16 = 9_000;
/// The longest frame looked at when the frames are sought for which Headroom doesn't hold.
const LONGEST: FrameLen = FrameLen(9_216);
/// The chip's public pools (98DX45xx), bytes.
const LOSSLESS_POOL: u32 = 6_000_000;
const LOSSY_POOL: u32 = 1_000_000;

/// What is to be planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The profile's name.
    pub name: String,
    /// Where it fits.
    pub description: String,
    /// How Headroom is computed.
    pub formula: Formula,
    /// Link, traffic and switch.
    pub given: Given,
    /// A static limit of what one PG may borrow; default: by `alpha`.
    pub q_limit: Option<Cells>,
    /// The dynamic limit; default 2^0 from 400G on and with formula `cpu`, 2^-1 from 200G on,
    /// else 2^-2.
    pub alpha: Option<Alpha>,
    /// The lossless pool; default 6,000,000 bytes, with formula `cpu` what Headroom asks for.
    pub pool: Option<Cells>,
    /// The lossy pool; default 1,000,000 bytes, with formula `cpu` a quarter of the other.
    pub lossy_pool: Option<Cells>,
}

impl Request {
    /// A plan by that formula with everything else by default.
    pub fn new(formula: Formula, given: Given) -> Self {
        let (name, description) = ("planned".to_owned(), String::new());
        let (q_limit, alpha, pool, lossy_pool) = (None, None, None, None);
        Self { name, description, formula, given, q_limit, alpha, pool, lossy_pool }
    }
}

/// What PGs share, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The lossless pool.
    pub lossless: Cells,
    /// The lossy pool.
    pub lossy: Cells,
    /// What one lossless PG may borrow.
    pub limit: Limit,
    /// Cells beside, so that live changes have room.
    pub spare: Cells,
}

/// Which lossless frames Headroom is too small for, by formula `exact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// Frames up to this length can exceed Headroom; `None`: none can.
    pub at_once: Option<FrameLen>,
    /// The same where a largest frame is just leaving the other way.
    pub behind_a_frame: Option<FrameLen>,
}

/// A complete proposal.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// What was asked.
    pub request: Request,
    /// Headroom's need, term by term.
    pub need: Need,
    /// Thresholds, each with its rule.
    pub levels: Levels,
    /// Pools and limit.
    pub sharing: Sharing,
    /// Frames for which Headroom holds; `None` where the loop isn't known.
    pub holds: Option<Holds>,
    /// Cells of a switch of [`PORTS`] ports.
    pub total: Cells,
    /// The profile as a document, with its terms in comments.
    pub document: String,
    /// Warnings.
    pub notes: Vec<String>,
}

/// Plans thresholds and a profile.
///
/// The document is read, resolved for [`PORTS`] ports and checked before it is returned: it
/// satisfies 0 < Kmin <= Kmax < XOFF - XON < XOFF < limit and limit - XOFF >= Headroom.
///
/// # Errors
/// [`PlanError::Value`] where the formula lacks something, where what a PG may borrow has no room
/// for XOFF above Headroom, or where a number is out of the core's range.
pub fn propose(request: Request) -> Result<Proposal, PlanError> {
    let need = request.formula.need(&request.given)?;
    let headroom = levels::headroom(&request, &need);
    if headroom.cells.0 > MAX_SEGMENT_CELLS {
        let fix = "plan for a shorter loop, a lower speed or larger cells";
        let finding = Finding::new("headroom", "more than a PG can hold", fix);
        return Err(finding.numbers(headroom.cells.0, MAX_SEGMENT_CELLS).into());
    }
    let sharing = sharing(&request, headroom.cells);
    let settled = q_limit(sharing.limit, sharing.lossless);
    let levels = levels::all(&request, headroom, &sharing, settled)?;
    let mut proposal = Proposal {
        holds: holds(&request.given, levels.headroom.cells),
        request,
        need,
        levels,
        sharing,
        total: Cells::ZERO,
        document: String::new(),
        notes: Vec::new(),
    };
    let plan = tried(&document::text(&proposal), &proposal.request)?;
    proposal.total = plan.profile(1)?.spec().total;
    proposal.notes = notes(&proposal);
    proposal.document = document::text(&proposal);
    Ok(proposal)
}

/// The document resolved for [`PORTS`] ports.
fn tried(text: &str, request: &Request) -> Result<ProfilePlan, PlanError> {
    let doc = ProfileDoc::load(&Source::new("plan", text)).map_err(|error| *error.finding)?;
    resolve(&doc, &ports(&request.given, PORTS))
}

/// A switch of such ports.
pub fn ports(given: &Given, count: usize) -> SwitchFacts {
    let port = |number| PortFacts {
        name: format!("p{number}"),
        speed: given.speed,
        mtu: given.mtu.unwrap_or(PORT_MTU),
        trust: None,
        link_pause: false,
    };
    SwitchFacts {
        ports: (1..=count).map(port).collect(),
        flood_limit: 1024,
        rx_ring: 4096,
        spare_ports: 0,
    }
}

fn sharing(request: &Request, headroom: Cells) -> Sharing {
    let cell = request.given.cell;
    let cpu = request.formula == Formula::Cpu;
    let (lossless, lossy) = if cpu {
        // Twice Headroom must fit below Q_limit, half of it; memory of a host is there to take.
        let step = published::base(16_384, cell).0;
        let pool = headroom.0.saturating_mul(4).div_ceil(step).saturating_mul(step);
        (Cells(pool), Cells(pool / 4))
    } else {
        (Cells(LOSSLESS_POOL / cell.bytes()), Cells(LOSSY_POOL / cell.bytes()))
    };
    let lossless = request.pool.unwrap_or(lossless);
    let alpha = request.alpha.or_else(|| Alpha::new(default_alpha(request.given.speed, cpu)));
    let (limit, lossless) = match (request.q_limit, alpha) {
        // A pool can't lend more than it has.
        (Some(cells), _) => (Limit::Static(cells), lossless.max(cells)),
        (None, Some(alpha)) => (Limit::Dynamic(alpha), lossless),
        (None, None) => (Limit::Static(lossless), lossless),
    };
    let spare = if cpu { Cells(lossless.0 / 8) } else { Cells::ZERO };
    Sharing { lossless, lossy: request.lossy_pool.unwrap_or(lossy), limit, spare }
}

/// What the pool's size grows less than the speed by: see the shipped profiles.
fn default_alpha(speed: BitRate, cpu: bool) -> i8 {
    if cpu || speed >= BitRate::gigabits(400) {
        0
    } else if speed >= BitRate::gigabits(200) {
        -1
    } else {
        -2
    }
}

fn holds(given: &Given, headroom: Cells) -> Option<Holds> {
    let span = headroom::t_loop(given.t_loop, given.cable)?;
    let (rate, cell) = (given.speed, given.cell);
    let at_once = |frame| headroom::exact(rate, span, frame, cell);
    let behind = |frame| headroom::exact_behind_a_frame(rate, span, REVERSE_FRAME, frame, cell);
    Some(Holds {
        at_once: headroom::holds_above(at_once, headroom, LONGEST),
        behind_a_frame: headroom::holds_above(behind, headroom, LONGEST),
    })
}

fn notes(proposal: &Proposal) -> Vec<String> {
    let (request, levels) = (&proposal.request, &proposal.levels);
    let (smallest, headroom) = (request.given.smallest, levels.headroom.cells);
    let mut notes = Vec::new();
    let need = proposal.need.cells;
    if u64::from(headroom.0) * 100 < u64::from(need.0) * 105 {
        notes.push(format!("Headroom is within 5 % of its need ({} for {})", headroom.0, need.0));
    }
    let exact = Formula::Exact.need(&request.given).ok().filter(|need| need.cells > headroom);
    if let Some(exact) = exact.filter(|_| request.formula != Formula::Cpu) {
        notes.push(format!(
            "lossless frames of {} B need {} cells by formula exact: choose it, or a larger \
             --smallest-frame",
            smallest.0, exact.cells.0
        ));
    }
    let share = levels::percent(levels.xoff.cells, levels.q_limit.cells);
    if !(40..=70).contains(&share) {
        notes.push(format!("XOFF is {share} % of Q_limit, outside the usual 40..70 %"));
    }
    notes
}

/// The speed that rules of the family are written for.
const fn reference() -> BitRate {
    BitRate::gigabits(400)
}

/// Cells of the largest frame of these ports.
fn largest_frame(given: &Given, cell: CellSize) -> Cells {
    given.longest_frame().to_cells(cell)
}

#[cfg(test)]
mod tests;
