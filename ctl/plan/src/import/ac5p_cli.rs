//! The PFC and MMU lines of the AC5P family's command line.
//!
//! Read are `pfc enable priority LIST`, `pfc pause-threshold`, `pfc resume-threshold` and
//! `pfc headroom`, each with an optional `priority LIST` before its cells, below
//! `interface NAME` for that port alone; `mmu queue-guarantee` and `mmu queue-threshold` with the
//! queues and cells, `alpha N` for a dynamic one; `mmu buffer-mode flowctrl-enhance`.

use super::config_db::slots;
use super::one_pool::{one_pool, OnePool, ONE_POOL};
use super::{ImportOptions, Imported, Notes};
use holdfast_api::amount::{CellAmount, XoffAmount};
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{PgDoc, PortOverrideDoc, QueueDoc, Slot, XonModeDoc};
use holdfast_api::switch_doc::is_name;
use holdfast_core::ids::MAX_PORTS;
use std::collections::BTreeMap;

/// The only buffer mode in which the family's thresholds mean this.
const BUFFER_MODE: &str = "flowctrl-enhance";

/// What the lines of the switch, or of one interface, say.
#[derive(Debug, Default)]
struct Section {
    /// Where PFC was enabled, by priority.
    enabled: BTreeMap<Slot, usize>,
    /// Values with their line: of named priorities, or (`None`) of all enabled.
    xoff: Vec<(Option<Slot>, u32, usize)>,
    xon: Vec<(Option<Slot>, u32, usize)>,
    headroom: Vec<(Option<Slot>, u32, usize)>,
}

#[derive(Debug, Default)]
struct Lines {
    shared: Section,
    ports: BTreeMap<String, Section>,
    queues: BTreeMap<Slot, QueueDoc>,
    mode: bool,
    others: Vec<String>,
}

/// Reads the lines.
pub(super) fn import(text: &str, options: &ImportOptions) -> Result<Imported, Finding> {
    let mut lines = Lines::default();
    let mut interface: Option<String> = None;
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            [first, ..] if first.starts_with(['!', '#']) => {}
            ["exit" | "end"] => interface = None,
            ["interface", name @ ..] => interface = Some(port_name(&name.join("-"), number)?),
            ["pfc", rest @ ..] => lines.pfc(rest, interface.as_deref(), number)?,
            ["mmu", rest @ ..] => lines.mmu(rest, number)?,
            ["no", "pfc" | "mmu", ..] => {
                let message = format!("{line:?} takes back what isn't there");
                return Err(wrong(number, message, "import what is in force"));
            }
            _ => lines.others.push(format!("line {number}")),
        }
    }
    lines.finish(options)
}

fn wrong(line: usize, message: impl Into<String>, fix: &str) -> Finding {
    Finding::new(format!("line {line}"), message, fix)
}

/// `ethernet 0/1` as the name of a port.
fn port_name(text: &str, line: usize) -> Result<String, Finding> {
    let name: String =
        text.chars().map(|c| if matches!(c, '/' | '.' | ':') { '-' } else { c }).collect();
    if is_name(&name) {
        return Ok(name);
    }
    Err(wrong(line, format!("{text:?} can't be a port's name"), "name one interface"))
}

/// `6800`, `6800 cells`.
fn cells(words: &[&str], line: usize) -> Result<u32, Finding> {
    let number = match words {
        [number] | [number, "cells" | "cell"] => number.parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| {
        let message = format!("{:?} is no number of cells", words.join(" "));
        wrong(line, message, "write a number, and cells behind it")
    })
}

impl Lines {
    fn pfc(&mut self, words: &[&str], port: Option<&str>, line: usize) -> Result<(), Finding> {
        let section = match port {
            None => &mut self.shared,
            Some(name) => self.ports.entry(name.to_owned()).or_default(),
        };
        let place = format!("line {line}");
        if let ["enable", "priority", list] = words {
            for priority in slots(&place, list)? {
                if section.enabled.insert(priority, line).is_some() {
                    let message = format!("priority {priority} is enabled twice");
                    return Err(wrong(line, message, "remove one of the two"));
                }
            }
            return Ok(());
        }
        let (values, rest) = match words {
            ["pause-threshold", rest @ ..] => (&mut section.xoff, rest),
            ["resume-threshold", rest @ ..] => (&mut section.xon, rest),
            ["headroom", rest @ ..] => (&mut section.headroom, rest),
            _ => {
                let message = format!("pfc {} can't be expressed", words.join(" "));
                let fix = "known are enable priority, pause-threshold, resume-threshold, headroom";
                return Err(wrong(line, message, fix));
            }
        };
        let (of, rest) = match rest {
            ["priority", list, rest @ ..] => {
                (slots(&place, list)?.into_iter().map(Some).collect(), rest)
            }
            rest => (vec![None], rest),
        };
        let value = cells(rest, line)?;
        for of in of {
            if let Some((_, _, earlier)) = values.iter().find(|(other, _, _)| *other == of) {
                let message = format!("line {earlier} gives this threshold as well");
                return Err(wrong(line, message, "remove one of the two"));
            }
            values.push((of, value, line));
        }
        Ok(())
    }

    fn mmu(&mut self, words: &[&str], line: usize) -> Result<(), Finding> {
        let (guarantee, rest) = match words {
            ["buffer-mode", mode] if *mode == BUFFER_MODE => {
                self.mode = true;
                return Ok(());
            }
            ["buffer-mode", mode @ ..] => {
                let message = format!("buffer mode {:?} can't be expressed", mode.join(" "));
                return Err(wrong(line, message, "thresholds are those of flowctrl-enhance"));
            }
            ["queue-guarantee", rest @ ..] => (true, rest),
            ["queue-threshold", rest @ ..] => (false, rest),
            _ => {
                let message = format!("mmu {} can't be expressed", words.join(" "));
                let fix = "known are queue-guarantee, queue-threshold, buffer-mode";
                return Err(wrong(line, message, fix));
            }
        };
        let words: Vec<&str> = rest
            .iter()
            .filter(|word| !["output", "unicast", "queue", "set"].contains(word))
            .copied()
            .collect();
        let Some((list, value)) = words.split_first() else {
            return Err(wrong(line, "names no queue", "write the queue, then its cells"));
        };
        for slot in slots(&format!("line {line}"), list)? {
            let queue = self.queues.entry(slot).or_default();
            let there = if guarantee {
                queue.guarantee.is_some()
            } else {
                queue.limit.is_some() || queue.alpha.is_some()
            };
            if there {
                let message = format!("queue {slot} has this already");
                return Err(wrong(line, message, "remove one of the two"));
            }
            match value {
                value if guarantee => {
                    queue.guarantee = Some(CellAmount::Cells(cells(value, line)?));
                }
                ["alpha", log2] => {
                    let log2 = log2.parse().ok().filter(|log2| (-8..=7).contains(log2));
                    let fix = "use the exponent n of alpha = 2^n";
                    let out = || wrong(line, "alpha out of range", fix).numbers(value[1], "-8..7");
                    queue.alpha = Some(log2.ok_or_else(out)?);
                }
                value => queue.limit = Some(CellAmount::Cells(cells(value, line)?)),
            }
        }
        Ok(())
    }

    fn finish(self, options: &ImportOptions) -> Result<Imported, Finding> {
        let mut notes = Notes::default();
        if !self.mode {
            let message = "mmu buffer-mode flowctrl-enhance is missing: in other modes the \
                           thresholds mean something else";
            return Err(Finding::new("mmu buffer-mode", message, "add the line"));
        }
        if !self.others.is_empty() {
            let shown = self.others.iter().take(12).cloned().collect::<Vec<_>>().join(", ");
            let more = if self.others.len() > 12 { ", …" } else { "" };
            notes.say(format!("{shown}{more}"), "not read: neither pfc nor mmu");
        }
        if self.ports.len() > MAX_PORTS {
            let finding = Finding::new("interface", "too many ports", "import some of them");
            return Err(finding.numbers(self.ports.len(), MAX_PORTS));
        }
        let mut parts = OnePool { pgs: self.shared.pgs(&mut notes)?, ..OnePool::default() };
        for (name, section) in &self.ports {
            let pgs = section.pgs(&mut notes)?;
            parts.ports.insert(name.clone(), PortOverrideDoc { pgs, ..Default::default() });
        }
        if parts.pgs.is_empty() && parts.ports.values().all(|port| port.pgs.is_empty()) {
            let message = "no line enables PFC";
            return Err(Finding::new("pfc enable", message, "add pfc enable priority N"));
        }
        parts.queues = self.queues;
        everywhere(&mut parts);
        one_pool(parts, options, notes)
    }
}

/// A PG that only some interfaces have is lossy at the others.
fn everywhere(parts: &mut OnePool) {
    let named: Vec<Slot> = parts.ports.values().flat_map(|port| port.pgs.keys().copied()).collect();
    for slot in named {
        let lossy = PgDoc { lossless: Some(false), ..PgDoc::default() };
        parts.pgs.entry(slot).or_insert(lossy);
    }
}

impl Section {
    /// The lossless PGs, PG n for priority n.
    fn pgs(&self, notes: &mut Notes) -> Result<BTreeMap<Slot, PgDoc>, Finding> {
        let values = [&self.xoff, &self.xon, &self.headroom];
        for (of, _, line) in values.into_iter().flatten() {
            let unknown = of.is_some_and(|of| !self.enabled.contains_key(&of));
            if unknown || self.enabled.is_empty() {
                let message = "a threshold for a priority on which PFC isn't enabled here";
                return Err(wrong(*line, message, "add pfc enable priority N before it"));
            }
        }
        let mut pgs = BTreeMap::new();
        for (priority, line) in &self.enabled {
            let value = |values: &[(Option<Slot>, u32, usize)], name: &str| {
                let own = values.iter().find(|(of, _, _)| *of == Some(*priority));
                let value = own.or_else(|| values.iter().find(|(of, _, _)| of.is_none()));
                value.map(|(_, value, _)| *value).ok_or_else(|| {
                    let message = format!("priority {priority} has no {name}");
                    wrong(*line, message, "add its pfc line")
                })
            };
            let (xoff, xon) =
                (value(&self.xoff, "pause-threshold")?, value(&self.xon, "resume-threshold")?);
            let headroom = value(&self.headroom, "headroom")?;
            let became = format!(
                "resume-threshold {xon} is an offset here: resumes at {xoff} - {xon} = {}; where \
                 it was a level, set xon_mode = \"absolute\"",
                xoff.saturating_sub(xon)
            );
            notes.say(format!("priority {priority}"), became);
            notes.say(format!("PG {priority}"), "no line has its DBA limit: alpha = 0");
            let pg = PgDoc {
                lossless: Some(true),
                headroom: Some(CellAmount::Cells(headroom)),
                pool: Some(ONE_POOL.to_owned()),
                alpha: Some(0),
                xoff: Some(XoffAmount::At(CellAmount::Cells(xoff))),
                xon: Some(CellAmount::Cells(xon)),
                xon_mode: Some(XonModeDoc::Offset),
                priorities: Some(vec![*priority]),
                ..PgDoc::default()
            };
            pgs.insert(*priority, pg);
        }
        Ok(pgs)
    }
}
