//! What the machine gives a running switch (`show_host`), without asking a worker: [`looker`] reads
//! netdevs in bounded time, [`threads`] how the kernel schedules the workers, [`lossless`] how long
//! a port has been without lossless traffic.

mod looker;
mod lossless;
mod threads;

pub(crate) use looker::{Looker, Netdev};
pub(crate) use lossless::{lossless_frames, LastLossless};
pub(crate) use threads::{scheduling, Scheduling};
