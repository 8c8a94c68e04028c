//! From a profile document to the profile that workers run (DESIGN 3):
//! `ProfileDoc` -> [`ProfilePlan`] (explainable) -> `ProfileSpec` -> `Profile`.
//!
//! [`resolve()`] fills in defaults and turns amounts into cells, [`lint`] judges the result and
//! refuses it with its errors, [`edit`] makes a changed profile from the running one,
//! [`headroom`] knows the formulas, [`propose`] makes a whole profile from link and switch. Pure:
//! no file, no clock.
#![forbid(unsafe_code)]

mod account;
mod amounts;
pub mod edit;
mod error;
pub mod export;
mod facts;
pub mod headroom;
pub mod import;
pub mod lint;
mod maps;
mod merge;
mod preset;
pub mod propose;
mod queue;
mod resolve;

pub use error::PlanError;
pub use facts::{PortFacts, SwitchFacts};
pub use resolve::{budget, resolve, HeadroomTerm, ProfilePlan};
