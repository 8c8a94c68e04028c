//! One PG of one port: lossless only with PFC on one of its priorities and with Headroom.

use super::buffers::{Binding, Bound, Buffer, Marks};
use super::maps::PortMaps;
use super::pools::Pool;
use super::ports::Port;
use super::{ImportOptions, Notes};
use holdfast_api::amount::{CellAmount, XoffAmount};
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::{PgDoc, Slot, XonModeDoc};
use holdfast_core::profile::FRAME_OVERHEAD;
use holdfast_core::units::{Cells, FrameLen};
use std::collections::BTreeMap;

const fn cells(cells: Cells) -> Option<CellAmount> {
    Some(CellAmount::Cells(cells.0))
}

/// A lossless PG, with every key that a shared section might have.
pub(super) fn lossless(
    buffer: &Buffer,
    marks: Marks,
    priorities: Vec<Slot>,
    shared_headroom: bool,
) -> PgDoc {
    let (limit, alpha) = buffer.bound.keys();
    PgDoc {
        lossless: Some(true),
        guaranteed: cells(buffer.size),
        headroom: cells(marks.headroom),
        headroom_pool: Some(shared_headroom),
        pool: Some(buffer.pool.clone()),
        limit,
        alpha,
        xoff: Some(XoffAmount::Limit),
        xon: cells(marks.xon),
        xon_mode: Some(marks.mode),
        xon_floor: cells(marks.floor),
        priorities: Some(priorities),
    }
}

/// A lossy PG, likewise: a port may have it where the others have a lossless one.
pub(super) fn lossy(buffer: &Buffer) -> PgDoc {
    let none = Marks {
        headroom: Cells::ZERO,
        xon: Cells::ZERO,
        mode: XonModeDoc::Offset,
        floor: Cells::ZERO,
    };
    PgDoc { lossless: Some(false), ..lossless(buffer, none, Vec::new(), false) }
}

/// What decides about the PGs of one port.
pub(super) struct PortBuffers<'a> {
    pub port: &'a Port,
    pub maps: &'a PortMaps,
    pub bound: &'a BTreeMap<Slot, Binding>,
    pub pools: &'a [Pool],
    pub options: &'a ImportOptions,
}

/// What a lossless PG is to have.
enum Lossless {
    Yes(Buffer, Marks),
    No(Buffer),
}

impl PortBuffers<'_> {
    /// The PGs of the port. Those that can't be lossless are lossy, and said in `refused`.
    pub fn resolve(
        &self,
        notes: &mut Notes,
        refused: &mut Vec<Finding>,
    ) -> Result<BTreeMap<Slot, PgDoc>, Finding> {
        let mut pgs = BTreeMap::new();
        for pg in (0..8).filter_map(Slot::new) {
            let priorities = self.maps.priorities(pg);
            let paused = priorities.iter().any(|priority| self.maps.enabled.contains(priority));
            let buffer = self.buffer(pg, notes)?;
            let doc = match self.lossless(pg, paused, buffer, notes) {
                Ok(Lossless::Yes(buffer, marks)) => {
                    let buffer = self.whole_frames(buffer, notes);
                    let of = self.pools.iter().find(|pool| pool.name == buffer.pool);
                    let shared = of.is_some_and(|pool| pool.shared_headroom != Cells::ZERO);
                    lossless(&buffer, marks, priorities, shared)
                }
                Ok(Lossless::No(buffer)) => lossy(&self.whole_frames(buffer, notes)),
                Err((buffer, finding)) => {
                    refused.push(*finding);
                    lossy(&self.whole_frames(buffer, notes))
                }
            };
            pgs.insert(pg, doc);
        }
        Ok(pgs)
    }

    fn place(&self, pg: Slot) -> String {
        let bound = self.bound.get(&pg).map(|binding| binding.place.clone());
        bound.unwrap_or_else(|| format!("BUFFER_PG|{}|{pg}", self.port.name))
    }

    /// What `pg` is bound to; where it is to nothing, what its pool would lend.
    fn buffer(&self, pg: Slot, notes: &mut Notes) -> Result<Buffer, Finding> {
        if let Some(buffer) = self.bound.get(&pg).and_then(|binding| binding.buffer.clone()) {
            return Ok(buffer);
        }
        let bound = || self.bound.values().filter_map(|binding| binding.buffer.as_ref());
        let like = bound().find(|buffer| buffer.marks.is_none()).or_else(|| bound().next());
        let first = || self.pools.iter().find(|pool| !pool.egress);
        let pool = like.map(|buffer| &buffer.pool).or_else(|| first().map(|pool| &pool.name));
        let Some(pool) = pool else {
            let message = "there is no ingress pool to borrow from";
            return Err(Finding::new("BUFFER_POOL", message, "add one with type ingress"));
        };
        if self.maps.pg.contains(&pg.number()) && !self.bound.contains_key(&pg) {
            let became =
                format!("no row: unless PFC makes it lossless, it is lossy, alpha = 0 of {pool}");
            notes.say(format!("BUFFER_PG|…|{pg}"), became);
        }
        let bound = Bound::Alpha(0);
        Ok(Buffer {
            place: self.place(pg),
            pool: pool.clone(),
            size: Cells::ZERO,
            bound,
            marks: None,
        })
    }

    /// Whether the PG can be lossless, and by what.
    fn lossless(
        &self,
        pg: Slot,
        paused: bool,
        buffer: Buffer,
        notes: &mut Notes,
    ) -> Result<Lossless, (Buffer, Box<Finding>)> {
        let name = &self.port.name;
        let marks = match (paused, buffer.marks) {
            (false, None) => return Ok(Lossless::No(buffer)),
            (true, Some(marks)) => return Ok(Lossless::Yes(buffer, marks)),
            (false, Some(_)) => {
                let message = format!(
                    "PG {pg} of {name} has Headroom, but PFC is on for none of its priorities: it \
                     becomes lossy"
                );
                let fix = format!("add one of them to PORT_QOS_MAP|{name}|pfc_enable");
                let finding = Finding::new(self.place(pg), message, fix);
                return Err((buffer, Box::new(finding)));
            }
            (true, None) => self.looked_up(pg, &buffer, notes),
        };
        match marks {
            Ok(Some((row, marks))) => Ok(Lossless::Yes(row, marks)),
            Ok(None) => Ok(Lossless::No(buffer)),
            Err(finding) => Err((buffer, finding)),
        }
    }

    /// Headroom for a PG that has PFC, but none of its own: from the table, or what the user
    /// gives. `None`: the port needs none.
    fn looked_up(
        &self,
        pg: Slot,
        buffer: &Buffer,
        notes: &mut Notes,
    ) -> Result<Option<(Buffer, Marks)>, Box<Finding>> {
        let name = &self.port.name;
        if let Some(table) = &self.options.lookup {
            if self.port.down {
                let became = "the port is down and holds no Headroom: its PGs are lossy";
                notes.say(format!("PORT|{name}|admin_status"), became);
                return Ok(None);
            }
            let missing = |what: &str, place: String| {
                let message = format!("without {what} nothing can be looked up for PG {pg}: lossy");
                Box::new(Finding::new(place, message, format!("add the {what} of {name}")))
            };
            let speed = self.port.speed.ok_or_else(|| missing("speed", format!("PORT|{name}")))?;
            let place = format!("CABLE_LENGTH|{name}");
            let cable = self.port.cable.as_deref();
            let cable = cable.ok_or_else(|| missing("cable", place.clone()))?;
            let Some((line, row)) = table.row(speed, cable, &place)? else {
                let became = "no cable: its PGs are lossy";
                notes.say(place, became);
                return Ok(None);
            };
            let place = format!("pg_profile_lookup line {line}");
            let row = row.buffer(&place, &buffer.pool, self.options.cell, notes)?;
            return Ok(row
                .marks
                .map(|marks| (Buffer { pool: self.lossless_pool(buffer), ..row }, marks)));
        }
        if let Some(assumed) = self.options.assumed {
            let became = format!(
                "has no headroom: headroom = {} and xon = {} as given, pausing at the limit",
                assumed.headroom.0, assumed.xon.0
            );
            notes.say(&buffer.place, became);
            let marks = Marks {
                headroom: assumed.headroom,
                xon: assumed.xon,
                mode: XonModeDoc::Offset,
                floor: Cells::ZERO,
            };
            return Ok(Some((buffer.clone(), marks)));
        }
        let message = format!(
            "PFC is on for PG {pg} of {name}, but nothing gives it headroom: it becomes lossy"
        );
        let fix = "bind a buffer profile with xoff, or give --pg-lookup FILE, or --headroom and \
                   --xon";
        Err(Box::new(Finding::new(self.place(pg), message, fix)))
    }

    /// SONiC puts what it looks up on the pool of this name.
    fn lossless_pool(&self, buffer: &Buffer) -> String {
        let named = |name: &str| self.pools.iter().any(|pool| pool.name == name);
        let usual = "ingress_lossless_pool";
        if named(usual) {
            usual.to_owned()
        } else {
            buffer.pool.clone()
        }
    }

    /// A frame goes into one segment whole: less than a largest frame can't be reserved.
    fn whole_frames(&self, mut buffer: Buffer, notes: &mut Notes) -> Buffer {
        let mtu = self.port.mtu;
        let frame = FrameLen(mtu + FRAME_OVERHEAD).to_cells(self.options.cell);
        if buffer.size != Cells::ZERO && buffer.size < frame {
            let became = format!(
                "{} is less than the largest frame at MTU {mtu}, and frames aren't split: \
                 guaranteed = {}",
                buffer.size, frame.0
            );
            notes.say(format!("{}|size", buffer.place), became);
            buffer.size = frame;
        }
        buffer
    }
}
