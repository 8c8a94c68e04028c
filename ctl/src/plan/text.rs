//! A plan for a person.

use super::Compared;
use crate::layout::prose_table;
use comfy_table::Table;
use holdfast_api::amount::rate_text;
use holdfast_core::units::FrameLen;
use holdfast_plan::headroom::Term;
use holdfast_plan::propose::{Holds, Proposal, PORTS};

pub(super) fn plan(proposal: &Proposal, compared: &[Compared]) -> String {
    let (request, need) = (&proposal.request, &proposal.need);
    let given = &request.given;
    let mut out = format!(
        "Headroom at {} by formula {}, cells of {} bytes\n",
        rate_text(given.speed.bits_per_second()),
        need.formula.name(),
        given.cell.bytes()
    );
    let mut terms = explained(["term", "amount", "how"]);
    need.terms.iter().for_each(|term| add(&mut terms, term));
    let (bytes, cells) = (need.bytes.0, need.cells.0);
    terms.add_row(["need".to_owned(), format!("{bytes} B"), format!("{cells} cells")]);
    out.push_str(&format!("{terms}\n"));
    if !need.beside.is_empty() {
        let mut beside = explained(["beside it", "amount", "how"]);
        need.beside.iter().for_each(|term| add(&mut beside, term));
        out.push_str(&format!("\n{beside}\n"));
    }
    let mut levels = explained(["threshold", "cells", "rule"]);
    for level in proposal.levels.all() {
        levels.add_row([level.name.to_owned(), level.cells.0.to_string(), level.rule.clone()]);
    }
    out.push_str(&format!("\n{levels}\n\n"));
    let sharing = proposal.sharing;
    out.push_str(&format!(
        "Pools: lossless {}, lossy {}; {PORTS} ports take {}\n",
        sharing.lossless.0, sharing.lossy.0, proposal.total
    ));
    if let Some(holds) = proposal.holds {
        out.push_str(&hold_text(holds));
    }
    for note in &proposal.notes {
        out.push_str(&format!("Note: {note}\n"));
    }
    if !compared.is_empty() {
        out.push_str(&format!("\n{}\n", comparison(compared)));
    }
    out
}

fn hold_text(holds: Holds) -> String {
    let above = |frame: Option<FrameLen>| match frame {
        Some(frame) => format!("of more than {} B", frame.0),
        None => "of any length".to_owned(),
    };
    format!(
        "By formula exact Headroom holds for lossless frames {}; {} where a largest frame may be \
         leaving the other way\n",
        above(holds.at_once),
        above(holds.behind_a_frame)
    )
}

/// Words, a number, words.
fn explained(header: [&str; 3]) -> Table {
    prose_table(header, 1..2)
}

fn add(table: &mut Table, term: &Term) {
    table.add_row([term.name.to_owned(), term.amount.to_string(), term.how.clone()]);
}

fn comparison(compared: &[Compared]) -> Table {
    let mut rows = prose_table(["formula", "bytes", "cells", "made of"], 1..3);
    for row in compared {
        let behind = if row.reverse_frame { ", behind a frame" } else { "" };
        let name = format!("{}{behind}", row.formula.name());
        match &row.need {
            Ok(need) => {
                let made_of: Vec<String> = need
                    .terms
                    .iter()
                    .map(|term| format!("{} {}", term.name, term.amount))
                    .collect();
                let (bytes, cells) = (need.bytes.0.to_string(), need.cells.0.to_string());
                rows.add_row([name, bytes, cells, made_of.join(", ")]);
            }
            Err(why) => {
                rows.add_row([name, "-".to_owned(), "-".to_owned(), why.clone()]);
            }
        }
    }
    rows
}
