//! A planned profile as what other systems read (SPEC 10): the counterpart of
//! [`import`](crate::import). What the format can't express is a [`Finding`] with the document's
//! key, all of them at once, never left out in silence.

use crate::import::Format;
use crate::resolve::ProfilePlan;
use crate::SwitchFacts;
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::ProfileDoc;

mod ac5p_cli;
mod egress;
mod ingress;
mod pg_lookup;
mod sonic;
mod tables;

/// A profile, planned for the ports it is exported for.
#[derive(Clone, Copy, Debug)]
pub struct ExportInput<'a> {
    /// The document: what it names beyond the plan may have no counterpart.
    pub doc: &'a ProfileDoc,
    /// Its plan.
    pub plan: &'a ProfilePlan,
    /// The ports it was planned for.
    pub facts: &'a SwitchFacts,
    /// `pg-lookup`: the cable of all ports, `40m`.
    pub cable: Option<&'a str>,
}

/// A text, and what isn't in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The text.
    pub text: String,
    /// What the format has no place for and the profile doesn't depend on, one sentence each.
    pub notes: Vec<String>,
}

/// Writes the profile as `format`.
///
/// # Errors
/// All that `format` can't express.
pub fn export(input: &ExportInput<'_>, format: Format) -> Result<Exported, Vec<Finding>> {
    match format {
        Format::Sonic => sonic::export(input),
        Format::PgLookup => pg_lookup::export(input),
        Format::Ac5pCli => ac5p_cli::export(input),
    }
}
