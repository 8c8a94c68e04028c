//! Which profile shall be in force, and what is done about it. No file, clock or socket is touched
//! here but in [`ProfileFile::read`]: a decision comes from what was read and answered.
//!
//! The hash of a profile is that of its thresholds, not of its file, and depends on the ports of
//! the switch. So the switch itself is asked, by a dry run, what hash the file has there.

use holdfast_api::last_good::sha256;
use holdfast_api::line::MAX_LINE;
use holdfast_api::log_lines::logged;
use holdfast_api::message::{Apply, ApplyReply, Call, ErrorBody, ErrorCode};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// After a failure that is no refusal, such as a silent worker, it is tried again so much later.
pub(crate) const TRY_AGAIN: Duration = Duration::from_secs(10);
/// So long after it was asked for while it was under way.
const SOON: Duration = Duration::from_secs(1);

/// The text of the desired profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProfileFile {
    /// The file's name, as it was given.
    pub name: String,
    /// The document.
    pub text: String,
}

impl ProfileFile {
    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with the file, in one sentence.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let wrong = |why: String| format!("{name}: can't be read: {why}");
        // A pipe would never end, or never begin.
        let kind = fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
        if !kind.is_file() {
            return Err(wrong("it is no file".to_owned()));
        }
        let mut text = String::new();
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let most = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
        file.take(most).read_to_string(&mut text).map_err(|error| wrong(error.to_string()))?;
        if text.len() >= MAX_LINE {
            return Err(wrong(format!("it is longer than {MAX_LINE} bytes")));
        }
        Ok(Self { name, text })
    }
}

/// What was refused, and by which switch: not sent to it again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Refused {
    text_sha256: String,
    switch_pid: u32,
}

/// What is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// The dry run was asked for.
    Checking {
        file: ProfileFile,
        running: String,
    },
    /// The apply was asked for.
    Applying {
        file: ProfileFile,
    },
}

/// The keeper of the desired profile.
#[derive(Debug)]
pub(crate) struct Reconciler {
    path: PathBuf,
    phase: Phase,
    refused: Option<Refused>,
    switch_pid: u32,
    again_at: Option<Instant>,
    tally: Tally,
}

/// What has come of it so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Profiles put into force.
    pub accepted: u64,
    /// Profiles that were refused.
    pub refused: u64,
    /// SHA-256 of the file's text as it was read last.
    pub text_sha256: Option<String>,
    /// Hash of its thresholds, as the switch that was asked last says.
    pub sha256: Option<String>,
    /// Why it is not in force.
    pub problem: Option<String>,
}

impl Reconciler {
    /// `path` is the file of the profile that shall be in force.
    pub(crate) fn new(path: PathBuf) -> Self {
        let (phase, tally) = (Phase::Idle, Tally::default());
        Self { path, phase, refused: None, switch_pid: 0, again_at: None, tally }
    }

    /// The desired profile's file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What has come of it so far.
    pub(crate) const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// When a failure is over.
    pub(crate) const fn again_at(&self) -> Option<Instant> {
        self.again_at
    }

    /// The switch that answers now is the process `pid`: what another one refused may suit it.
    pub(crate) const fn switch_is(&mut self, pid: u32) {
        self.switch_pid = pid;
    }

    /// What was refused is tried again when the profiles are compared next.
    pub(crate) fn forget_refusal(&mut self) {
        self.refused = None;
    }

    /// The profiles are about to be compared again: that is no more to be waited for.
    pub(crate) fn begins_again(&mut self) {
        self.again_at = None;
    }

    /// The connection is lost, and with it what was under way; it begins anew with the next one.
    pub(crate) fn lost(&mut self) {
        self.phase = Phase::Idle;
        self.again_at = None;
    }

    /// Begins: `running` is the hash of the profile in force, `file` the desired one as just read.
    /// What to ask the switch, if anything.
    pub(crate) fn begin(
        &mut self,
        running: &str,
        file: Result<ProfileFile, String>,
        now: Instant,
    ) -> Option<Call> {
        self.again_at = None;
        if self.phase != Phase::Idle {
            // What is under way may be of an older text: after it.
            self.again_at = Some(now + SOON);
            return None;
        }
        let file = match file {
            Ok(file) => file,
            Err(why) => {
                if self.tally.problem.as_ref() != Some(&why) {
                    log::warn!("desired profile {why}; the one in force stays");
                }
                self.tally.problem = Some(why);
                self.again_at = Some(now + TRY_AGAIN);
                return None;
            }
        };
        let text_sha256 = sha256(&file.text);
        self.tally.text_sha256 = Some(text_sha256.clone());
        let this = Refused { text_sha256, switch_pid: self.switch_pid };
        if self.refused.as_ref() == Some(&this) {
            log::debug!("desired profile {}: still refused", file.name);
            return None;
        }
        let check = apply(&file, true);
        self.phase = Phase::Checking { file, running: running.to_owned() };
        Some(check)
    }

    /// The answer to what was asked. What to ask next, if anything.
    pub(crate) fn answered(
        &mut self,
        answer: Result<ApplyReply, ErrorBody>,
        now: Instant,
    ) -> Option<Call> {
        match (core::mem::replace(&mut self.phase, Phase::Idle), answer) {
            (Phase::Idle, _) => None,
            (Phase::Checking { file, .. } | Phase::Applying { file }, Err(error)) => {
                self.failed(&file, &error, now);
                None
            }
            (Phase::Checking { file, running }, Ok(reply)) => {
                self.tally.sha256 = Some(reply.sha256.clone());
                if reply.sha256 == running {
                    log::info!("desired profile {}: is in force ({running})", file.name);
                    self.tally.problem = None;
                    return None;
                }
                let next = apply(&file, false);
                self.phase = Phase::Applying { file };
                Some(next)
            }
            (Phase::Applying { file }, Ok(reply)) => {
                self.tally.accepted += 1;
                self.tally.problem = None;
                self.tally.sha256 = Some(reply.sha256);
                log::info!(
                    "desired profile {}: {} put into force as generation {}, {} changes",
                    file.name,
                    logged(&reply.name),
                    reply.generation,
                    reply.changed.len()
                );
                if let Some(why) = reply.not_kept {
                    log::warn!("desired profile {}: not kept: {}", file.name, logged(&why));
                }
                None
            }
        }
    }

    fn failed(&mut self, file: &ProfileFile, error: &ErrorBody, now: Instant) {
        let text = error.to_string();
        if is_refusal(error.code) {
            log::error!("desired profile {}: refused: {}", file.name, logged(&text));
            self.tally.refused += 1;
            let text_sha256 = sha256(&file.text);
            self.refused = Some(Refused { text_sha256, switch_pid: self.switch_pid });
        } else {
            if self.tally.problem.as_ref() != Some(&text) {
                log::warn!("desired profile {}: not applied: {}", file.name, logged(&text));
            }
            self.again_at = Some(now + TRY_AGAIN);
        }
        self.tally.problem = Some(text);
    }
}

fn apply(file: &ProfileFile, dry_run: bool) -> Call {
    let (profile, file) = (file.text.clone(), Some(file.name.clone()));
    Call::Apply(Apply { profile, file, dry_run })
}

/// Whether the same profile would get the same answer again.
const fn is_refusal(code: ErrorCode) -> bool {
    match code {
        ErrorCode::BadJson
        | ErrorCode::TooLong
        | ErrorCode::BadVersion
        | ErrorCode::UnknownCall
        | ErrorCode::BadArgument
        | ErrorCode::UnknownPort
        | ErrorCode::Refused
        | ErrorCode::NotAllowed
        | ErrorCode::BadHttp => true,
        ErrorCode::WorkerSilent | ErrorCode::Unavailable | ErrorCode::Silent => false,
    }
}

#[cfg(test)]
mod tests;
