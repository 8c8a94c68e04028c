#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod amount;
pub mod client;
pub mod doc;
pub mod doctor;
pub mod last_good;
pub mod line;
pub mod log_lines;
pub mod message;
pub mod nics;
pub mod place;
pub mod profile_doc;
pub mod switch_doc;
pub mod whole_file;
