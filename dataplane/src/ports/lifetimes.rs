//! Ports that are added and removed for good (SPEC 9, `port add` and `port remove`).

use super::keeper::{netns, one_line, NotYet, Work};
use super::WRED_SEED;
use crate::link_events::Link;
use crate::mailbox::WorkerEnded;
use crate::opening::{self, Opened};
use holdfast_api::switch_doc::PortDoc;
use holdfast_core::ids::PortId;
use holdfast_core::port::Port;
use holdfast_core::profile::Profile;
use holdfast_xsk::{clock, look, PortGuard, XskPort};
use std::error::Error;
use std::sync::Arc;

impl Work {
    /// Opens a port that is new and gives it to its worker.
    pub(super) fn add(&mut self, number: usize, doc: PortDoc) -> Result<(), NotYet> {
        let because = |error: Box<dyn Error>| NotYet::Because(one_line(&error.to_string()));
        let seen =
            look(&netns(&doc), &doc.ifname).map_err(|error| NotYet::Because(error.to_string()))?;
        self.queues_fit(number, &doc, seen.queues)?;
        let parts = &self.parts;
        let Opened { io, guard } =
            opening::open(&parts.memory, &parts.config, &doc, &parts.undo).map_err(because)?;
        let mtu = opening::mtu(&parts.config, &doc, guard.status().mtu).map_err(because);
        let profile = mtu.and_then(|mtu| self.ask_control(number, &doc, &guard, mtu));
        match profile {
            Ok(profile) => self.give_to_worker(number, doc, (io, guard), &profile),
            Err(why) => {
                // Nothing was in it yet, and nobody is behind it.
                let _ = io.close();
                Err(why)
            }
        }
    }

    fn give_to_worker(
        &mut self,
        number: usize,
        doc: PortDoc,
        (io, guard): (XskPort, PortGuard),
        profile: &Arc<Profile>,
    ) -> Result<(), NotYet> {
        let id = PortId::from_bits(number as u8);
        let spec = profile.port(id).ok_or(NotYet::Ends)?;
        let block = self.parts.blocks.remove(&number).ok_or(NotYet::Ends)?;
        let total = profile.spec();
        let frames = (total.total.0 + total.flood_limit) as usize;
        // Here and not by the worker: its queues are large.
        let port = Port::new(id, guard.status().mac, io, spec, frames, WRED_SEED);
        self.parts.workers.ask_one(self.owner(number), move |worker| worker.insert(port))?;
        let link = Link::new((number, self.life(number)), doc.name.clone(), guard, block);
        self.docs.insert(number, doc);
        self.parts.links.add(vec![link]);
        Ok(())
    }

    /// Ends a port: its worker lets the peer go and hands it out, its rings are closed and what was
    /// in them is given back, its link is put back.
    pub(super) fn remove(&mut self, number: usize) -> Result<(), WorkerEnded> {
        self.to_look_at.remove(&number);
        self.closed.remove(&number);
        let (id, owner) = (PortId::from_bits(number as u8), self.owner(number));
        let link = self.parts.links.take(number);
        let removed =
            self.parts.workers.ask_one(owner, move |worker| worker.remove(id, clock::now()))?;
        if let Some(mut port) = removed {
            let remains = port.take_io(XskPort::closed(&self.parts.memory)).close();
            // Dropped here and not by the worker.
            drop(
                self.parts
                    .workers
                    .ask_one(owner, move |worker| worker.take_back(port, remains, clock::now()))?,
            );
        }
        if let Some(link) = link {
            let (guard, block) = link.into_parts();
            drop(guard);
            self.parts.blocks.insert(number, block);
        }
        self.docs.remove(&number);
        self.parts.downs.clear(number);
        *self.lives.entry(number).or_default() += 1;
        Ok(())
    }
}
