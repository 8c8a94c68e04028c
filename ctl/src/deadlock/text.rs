//! The report for a person.

use super::graph::{Edge, End};
use super::report::{Chain, ChainEnd, Cycle, Link, Report};
use crate::layout::time;
use std::fmt::Write;

impl Report {
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        for cycle in &self.deadlocks {
            cycle_text(&mut out, "Deadlock", cycle);
        }
        for cycle in &self.moving_cycles {
            let what = "Cycle of pauses that still moves, no deadlock";
            cycle_text(&mut out, what, cycle);
        }
        let chains: Vec<String> = self.chains.iter().map(chain).collect();
        if !chains.is_empty() {
            out.push_str("Waiting:\n");
            chains.iter().for_each(|chain| out.push_str(chain));
        }
        for unasked in &self.unasked {
            // Writing to a String can't fail.
            let _ = writeln!(out, "Not asked: {}", unasked.why);
        }
        out.push_str(&self.sum());
        out
    }

    fn sum(&self) -> String {
        let asked =
            format!("{} asked: {}", switches(self.switches.len()), self.switches.join(", "));
        let found = match (self.deadlocks.len(), self.moving_cycles.len(), self.chains.len()) {
            (0, 0, 0) => "no PG is in XOFF".to_owned(),
            (0, ..) => "no deadlock".to_owned(),
            (1, ..) => "1 deadlock".to_owned(),
            (count, ..) => format!("{count} deadlocks"),
        };
        format!("{asked}; {found}.\n")
    }
}

fn switches(count: usize) -> String {
    if count == 1 {
        "1 switch".to_owned()
    } else {
        format!("{count} switches")
    }
}

fn cycle_text(out: &mut String, what: &str, cycle: &Cycle) {
    let _ = writeln!(out, "{what}: {}", cycle.text);
    for link in &cycle.pgs {
        let _ = writeln!(out, "  {}", link_text(link));
    }
    if cycle.is_doubtful() {
        out.push_str("  In doubt: an address in it is that of several ports.\n");
    }
    out.push('\n');
}

fn link_text(link: &Link) -> String {
    let Link { place, pg_cells, suspected, waits_for } = link;
    let of = waits_for.as_ref().map_or_else(String::new, |edge| {
        format!("{} of {pg_cells} cells in {}", edge.cells, queue(edge))
    });
    let moves = if *suspected { "" } else { "; not all of it stands" };
    format!("{place}: {of}{moves}")
}

fn queue(edge: &Edge) -> String {
    let mut text = format!("queue {} of port {}", edge.queue, edge.port);
    if let (Some(mac), true) = (&edge.paused_by, edge.stands_ns > 0) {
        let _ = write!(text, ", paused by {mac}, stands for {}", time(edge.stands_ns));
    }
    text
}

fn chain(chain: &Chain) -> String {
    let places: Vec<String> = chain.pgs.iter().map(|link| link.place.to_string()).collect();
    let last = chain.pgs.last().and_then(|link| link.waits_for.as_ref());
    let queue = last
        .map_or_else(String::new, |edge| format!(" -> queue {} of port {}", edge.queue, edge.port));
    let end = match &chain.end {
        ChainEnd::At(end) => format!("{queue}{}", end_text(end)),
        ChainEnd::Deadlock(place) => format!(" -> {place}, in a deadlock"),
        ChainEnd::MovingCycle(place) => format!(" -> {place}, in a cycle that moves"),
        ChainEnd::Told(place) => format!(" -> {place}, as above"),
    };
    format!("  {}{end}\n", places.join(" -> "))
}

fn end_text(end: &End) -> String {
    match end {
        End::NotPaused => ", which isn't paused".to_owned(),
        End::NoAddress => ", paused by a frame without a source address: a host's".to_owned(),
        End::Unasked { mac } => {
            format!(", paused by {mac}: a host, or a switch that wasn't asked")
        }
        End::NoXoff { switch, port } => {
            format!(", paused by {switch} port {port}, where no PG is in XOFF for it")
        }
        End::OnTheWay => ": its frames are on their way".to_owned(),
    }
}
