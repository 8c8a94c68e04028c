//! The control thread's part of the counters segment: what the blocks' numbers stand for, what
//! became of applied profiles, and the file that is handed to clients.

use crate::report::{Board, PortFacts};
use holdfast_api::message::{ErrorBody, ErrorCode, ProfileReply, SegmentReply};
use holdfast_core::profile::PortSpec;
use holdfast_shm::counters::{ControlBlock, LAYOUT};
use holdfast_shm::directory::{Directory, PortEntry, ProfileEntry};
use holdfast_shm::{BlockWriter, DirectoryWriter, Segment};
use std::os::fd::OwnedFd;

/// What the control thread publishes.
#[derive(Debug)]
pub(crate) struct Published {
    segment: Segment,
    writers: Option<(DirectoryWriter, BlockWriter<ControlBlock>)>,
    done: ControlBlock,
}

impl Published {
    /// Publishes the switch as it starts.
    pub(crate) fn new(mut segment: Segment, board: &Board) -> Self {
        let writers = segment.control();
        let mut published = Self { segment, writers, done: ControlBlock::default() };
        published.follow(board);
        published.count(|_| ());
        published
    }

    /// Publishes the switch as it is now.
    pub(super) fn follow(&mut self, board: &Board) {
        let Some((directory, _)) = &mut self.writers else { return };
        if let Err(error) = directory.publish(&directory_of(board)) {
            log::error!("the counters segment keeps its old names: {error}");
        }
    }

    /// Counts what was done.
    pub(super) fn count(&mut self, count: impl FnOnce(&mut ControlBlock)) {
        count(&mut self.done);
        if let Some((_, block)) = &mut self.writers {
            block.publish(&self.done);
        }
    }

    /// What a client is told of the segment, and its file.
    pub(super) fn hand_over(&self) -> Result<(SegmentReply, OwnedFd), ErrorBody> {
        let file = self.segment.file().try_clone_to_owned().map_err(|error| {
            let message = format!("the counters segment can't be handed over: {error}");
            ErrorBody::new(ErrorCode::Unavailable, message).fix("end some clients and try again")
        })?;
        let reply = SegmentReply {
            bytes: self.segment.bytes(),
            layout: format!("{LAYOUT:016x}"),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        Ok((reply, file))
    }
}

fn directory_of(board: &Board) -> Directory {
    let spec = board.profile.spec();
    let profile = ProfileReply::new(&board.profile, &board.port_names(), Vec::new());
    let entry = |(facts, spec): (&Option<PortFacts>, &PortSpec)| {
        let facts = facts.as_ref()?;
        Some(PortEntry {
            name: facts.name.clone(),
            speed_bits_per_second: spec.speed.bits_per_second(),
            lossless: spec.pgs.iter().any(|(_, pg)| pg.lossless),
            since_ns: facts.since.0,
        })
    };
    Directory {
        switch: board.name.clone(),
        profile: ProfileEntry {
            name: profile.name,
            sha256: profile.sha256,
            generation: profile.generation,
        },
        pools: spec.pools.iter().map(|(name, _)| name.clone()).collect(),
        ports: board.ports.iter().zip(&spec.ports).map(entry).collect(),
    }
}
