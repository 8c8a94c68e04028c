//! From a profile document to the profile that workers run (DESIGN 3):
//! `ProfileDoc` -> [`ProfilePlan`] (explainable) -> `ProfileSpec` -> `Profile`.
//!
//! [`resolve`] fills in defaults and turns amounts into cells, [`check`] holds the relations
//! between thresholds, [`edit`] makes a changed profile from the running one, [`headroom`] knows
//! the formulas. Pure: no file, no clock.
#![forbid(unsafe_code)]

mod account;
mod amounts;
pub mod check;
pub mod edit;
mod error;
pub mod export;
mod facts;
pub mod headroom;
pub mod import;
mod maps;
mod merge;
mod preset;
mod queue;
mod resolve;

pub use error::PlanError;
pub use facts::{PortFacts, SwitchFacts};
pub use resolve::{budget, resolve, HeadroomTerm, ProfilePlan, WatchdogPlan};
