//! `apply`: a whole profile takes over from the one in force, or nothing happens (SPEC 10, 11).

use super::dispatch::{reply, Answer};
use super::Console;
use crate::shedding::Shedding;
use holdfast_api::amount::{CellAmount, TotalAmount};
use holdfast_api::doc::Source;
use holdfast_api::last_good::{LastGood, LastGoodError};
use holdfast_api::message::{Apply, ApplyReply, ErrorBody, ErrorCode, ProfileReply};
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_core::io::PortIo;
use holdfast_core::profile::ProfileSpec;
use holdfast_plan::{resolve, PlanError, ProfilePlan, SwitchFacts};
use std::path::PathBuf;
use std::sync::Arc;

/// What a new profile is planned with, and who is told of it besides the workers.
pub(crate) struct Applying {
    /// The ports as they are open now.
    pub(crate) facts: SwitchFacts,
    /// What the profile in force was made from, but for what was set since.
    pub(crate) document: ProfileDoc,
    /// Keeps it for the next start.
    pub(crate) keeper: Keeper,
    /// The XDP programs.
    pub(crate) shedding: Shedding,
}

/// Keeps the profile that is in force on disk.
pub(crate) struct Keeper {
    folder: PathBuf,
    first: LastGood,
}

impl Keeper {
    /// `first` is what the switch boots with.
    pub(crate) fn new(folder: PathBuf, first: LastGood) -> Self {
        Self { folder, first }
    }

    /// Keeps what the switch boots with.
    ///
    /// # Errors
    /// [`LastGoodError`]; what was kept before is still there.
    pub(crate) fn keep_first(&self) -> Result<(), LastGoodError> {
        self.first.write(&self.folder)
    }

    /// Keeps a profile that was applied.
    ///
    /// # Errors
    /// [`LastGoodError`]; what was kept before is still there.
    fn keep(&self, text: &str) -> Result<(), LastGoodError> {
        let boot_file = self.first.boot_file.clone();
        LastGood { text: text.to_owned(), boot_file }.write(&self.folder)
    }
}

impl<P: PortIo + 'static> Console<P> {
    pub(super) fn apply(&mut self, call: &Apply) -> Answer {
        let (document, plan) = self.plan(call)?;
        let next = plan.profile(self.generation + 1)?;
        stays(self.board.profile.spec(), next.spec())?;
        let (names, notes) = (self.board.port_names(), plan.notes().to_vec());
        let old = ProfileReply::new(&self.board.profile, &names, Vec::new());
        let new = ProfileReply::new(&next, &names, Vec::new());
        let mut answer = ApplyReply {
            applied: !call.dry_run,
            generation: self.generation,
            changed: old.difference(&new),
            name: new.name,
            sha256: new.sha256,
            notes: notes.clone(),
            not_kept: None,
        };
        if call.dry_run || answer.changed.is_empty() {
            self.barrier()?;
        } else {
            self.put_into_force(next)?;
        }
        answer.generation = self.board.profile.generation();
        if !call.dry_run {
            self.applying.document = document;
            self.board.notes = notes;
            self.board.headroom_terms = plan.headroom_terms().to_vec();
            self.board.smallest_lossless_frame = plan.smallest_lossless_frame();
            answer.not_kept = self.applying.keeper.keep(&call.profile).err().map(|error| {
                log::warn!("profile {}: not kept for the next start: {error}", answer.name);
                error.to_string()
            });
        }
        reply(&answer)
    }

    fn plan(&self, call: &Apply) -> Result<(ProfileDoc, ProfilePlan), ErrorBody> {
        let file = call.file.clone().unwrap_or_else(|| "profile".to_owned());
        let source = Source::new(file, call.profile.clone());
        let mut doc = ProfileDoc::load(&source)?;
        if doc.buffer.total == TotalAmount::Auto {
            // As many as there are: more would need a restart, fewer would change for nothing.
            let total = self.board.profile.spec().total;
            doc.buffer.total = TotalAmount::Of(CellAmount::Cells(total.0));
        }
        let plan = resolve(&doc, &self.applying.facts);
        let fits = plan.and_then(|plan| plan.profile(self.generation + 1).map(|_| plan));
        let fits = fits.map_err(|error| match error {
            PlanError::UnknownPort { .. } => ErrorBody::from(error),
            error => source.locate(error.finding(&self.board.port_names())).into(),
        })?;
        Ok((doc, fits))
    }

    /// No frame that is lossless before or after is shed meanwhile: the XDP programs are told of
    /// both first, and of the outcome last.
    fn put_into_force(&mut self, next: holdfast_core::profile::Profile) -> Result<(), ErrorBody> {
        let deaf = |error: std::io::Error| {
            let message = format!("an XDP program can't be told what is lossless: {error}");
            ErrorBody::new(ErrorCode::Unavailable, message).fix("restart the switch")
        };
        let old = Arc::clone(&self.board.profile);
        let told = self.applying.shedding.widen(old.spec(), next.spec()).map_err(deaf);
        let done = told.and_then(|()| self.adopt(Arc::new(next)));
        let followed = self.applying.shedding.follow(self.board.profile.spec());
        done?;
        followed.map_err(deaf)
    }
}

/// What a restart is needed for: the memory is laid out by it (SPEC 3.6).
fn stays(old: &ProfileSpec, new: &ProfileSpec) -> Result<(), ErrorBody> {
    let refused = |what: &str, key: &str, old: u32, new: u32| {
        let message = format!("{what} can't change while the switch runs");
        let body = ErrorBody::new(ErrorCode::Refused, message).at(key).value(new).limit(old);
        Err(body.fix("keep the value that is in force, or restart the switch with this profile"))
    };
    if old.cell != new.cell {
        return refused("the cell size", "cell_bytes", old.cell.bytes(), new.cell.bytes());
    }
    if old.total != new.total {
        return refused("the number of cells", "buffer.total", old.total.0, new.total.0);
    }
    Ok(())
}
