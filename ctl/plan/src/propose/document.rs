//! A proposal as a profile document, its terms and rules in comments.

use super::{Proposal, Sharing, PORTS};
use crate::headroom::{Formula, Given, Term};
use holdfast_api::amount::{rate_text, span_text};
use holdfast_core::profile::Limit;
use holdfast_core::units::{BitRate, Cells, Nanos};
use std::fmt::Write;

/// Comments are broken before this column.
const WIDTH: usize = 98;
/// Faster live ports have to be allowed (SPEC 4.1).
const FASTEST_LIVE: BitRate = BitRate::gigabits(25);
/// The watchdog's two times (AC5P).
const WATCHDOG: Nanos = Nanos::millis(200);

/// The whole file.
pub(super) fn text(proposal: &Proposal) -> String {
    let mut out = String::new();
    comments(proposal, &mut out);
    let request = &proposal.request;
    let given = &request.given;
    line(&mut out, &format!("name = {}", quoted(&request.name)));
    line(&mut out, &format!("description = {}", quoted(&request.description)));
    line(&mut out, &format!("smallest_lossless_frame = \"{}B\"", given.smallest.0));
    formula(proposal, &mut out);
    memory(proposal, &mut out);
    classes(proposal, &mut out);
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// A TOML string: whatever was asked for, in quotes and escaped.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// `text` as comment lines, continued below its `indent`.
fn comment(out: &mut String, indent: usize, text: &str) {
    let mut row = String::from("#");
    for word in text.split_whitespace() {
        if row.len() + 1 + word.len() > WIDTH && row.len() > 1 {
            line(out, row.trim_end());
            row = format!("#{:indent$}", "");
        }
        row.push(' ');
        row.push_str(word);
    }
    line(out, row.trim_end());
}

fn comments(proposal: &Proposal, out: &mut String) {
    let (request, need) = (&proposal.request, &proposal.need);
    let given = &request.given;
    let title = match request.description.as_str() {
        "" => request.name.clone(),
        text => format!("{}: {text}", request.name),
    };
    comment(out, 0, &title);
    line(out, "#");
    let speed = rate_text(given.speed.bits_per_second());
    let what = format!("Headroom at {speed} by formula \"{}\":", need.formula.name());
    comment(out, 0, &what);
    let row = |out: &mut String, term: &Term| {
        comment(out, 4, &format!("- {}: {} ({})", term.name, term.amount, term.how));
    };
    need.terms.iter().for_each(|term| row(out, term));
    comment(out, 4, &format!("- need: {} B = {}", need.bytes.0, need.cells));
    need.beside.iter().for_each(|term| row(out, term));
    if let Some(holds) = proposal.holds {
        let text = |frame: Option<_>| {
            frame.map_or("any length".to_owned(), |frame: holdfast_core::units::FrameLen| {
                format!("more than {} B", frame.0)
            })
        };
        let text = format!(
            "By formula exact it holds for lossless frames of {}, and of {} where a largest frame \
             may be leaving the other way.",
            text(holds.at_once),
            text(holds.behind_a_frame)
        );
        comment(out, 0, &text);
    }
    line(out, "# Rules:");
    for level in proposal.levels.all() {
        comment(out, 4, &format!("- {} {}: {}", level.name, level.cells.0, level.rule));
    }
    for note in &proposal.notes {
        comment(out, 0, &format!("Note: {note}"));
    }
    let bytes = u64::from(proposal.total.0) * u64::from(given.cell.bytes());
    let total = format!(
        "Sized for the ports that are configured: {PORTS} of them take {} ({bytes} B).",
        proposal.total
    );
    comment(out, 0, &total);
    if given.speed > FASTEST_LIVE {
        let live = "A live port of more than 25G has to say allow_slow_refresh in switch.toml.";
        comment(out, 0, live);
    }
}

/// What the profile is held against when it is loaded: the formula, and of its conditions those
/// that aren't as by default.
fn formula(proposal: &Proposal, out: &mut String) {
    let given = &proposal.request.given;
    let kind = proposal.request.formula;
    line(out, &format!("\n[formula]\nkind = \"{}\"", kind.name()));
    if kind == Formula::Cpu {
        let span = span_text(given.xoff_reaction.0);
        return line(out, &format!("xoff_reaction = \"{span}\""));
    }
    if let Some(span) = given.t_loop.filter(|_| matches!(kind, Formula::Ac5p | Formula::Exact)) {
        line(out, &format!("t_loop = \"{}\"", span_text(span.0)));
    }
    if let Some(cable) = given.cable {
        line(out, &format!("cable = \"{cable}\""));
    }
    let usual = Given::new(given.speed);
    if kind == Formula::Ieee && given.interface_delay != usual.interface_delay {
        line(out, &format!("interface_delay = \"{}\"", span_text(given.interface_delay.0)));
    }
    if kind != Formula::Sonic {
        return;
    }
    if given.small_share != usual.small_share {
        line(out, &format!("small_share = \"{}%\"", given.small_share.percent()));
    }
    if given.lossless_mtu != usual.lossless_mtu {
        line(out, &format!("lossless_mtu = {}", given.lossless_mtu));
    }
    if given.gearbox != usual.gearbox {
        line(out, &format!("gearbox = \"{}B\"", given.gearbox.0));
    }
}

fn memory(proposal: &Proposal, out: &mut String) {
    let Sharing { lossless, lossy, spare, .. } = proposal.sharing;
    let cell = proposal.request.given.cell.bytes();
    line(out, &format!("\n[buffer]\ncell_bytes = {cell}\ntotal = \"auto\""));
    if spare != Cells::ZERO {
        line(out, &format!("spare = {}", spare.0));
    }
    for (name, size) in [("lossless", lossless), ("lossy", lossy)] {
        line(out, &format!("\n[[pool]]\nname = \"{name}\"\nsize = {}", size.0));
    }
}

fn classes(proposal: &Proposal, out: &mut String) {
    let levels = &proposal.levels;
    let limit = match proposal.sharing.limit {
        Limit::Static(cells) => format!("limit = {}", cells.0),
        Limit::Dynamic(alpha) => format!("alpha = {}", alpha.log2()),
    };
    let mark = match proposal.request.formula {
        Formula::Cpu => format!("\nrx_backlog_mark = {}", proposal.request.given.rx_backlog_mark),
        _ => String::new(),
    };
    let watchdog = span_text(WATCHDOG.0);
    // Writing into a String can't fail.
    let _ = write!(
        out,
        r#"
[maps]
base = "ac5p"

[pg.0]
alpha = 0

[pg.3]
guaranteed = {guaranteed}
headroom = {headroom}
{limit}
xoff = {xoff}
xon = {xon}

[queue.0]
alpha = 1
weight = 14

[queue.3]
weight = 15

[queue.3.wred]
kmin = {kmin}
kmax = {kmax}
pmax = 0.2

[queue.6]
alpha = 1
strict = true

[pfc]
pause_quanta = 65535{mark}

[watchdog]
detection_time = "{watchdog}"
restoration_time = "{watchdog}"
action = "drop"
"#,
        guaranteed = levels.guaranteed.cells.0,
        headroom = levels.headroom.cells.0,
        xoff = levels.xoff.cells.0,
        xon = levels.xon.cells.0,
        kmin = levels.kmin.cells.0,
        kmax = levels.kmax.cells.0,
    );
}
