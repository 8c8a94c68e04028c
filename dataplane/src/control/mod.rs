//! The control socket (SPEC 11): one thread that answers calls, and the only one that changes what
//! runs. Frames never wait for it: a worker runs its questions and orders between two steps.
//!
//! [`listener`] makes the socket, [`server`] has its clients one line each in turn, [`client`] is
//! what one of them may hold up, [`dispatch`] finds out what a line wants, [`console`] asks the
//! workers, [`change`] has them do something, [`preflight`] has them send frames that only show
//! what passes, [`witness`] writes into the [`journal`] what there is to tell, [`suspicions`] those
//! of deadlocks, [`published`] is the control thread's part of the counters segment, [`host`] looks
//! at the machine below, [`ports`] answers the keeper of ports.

mod apply;
mod change;
mod client;
mod console;
mod dispatch;
mod host;
mod journal;
mod listener;
mod ports;
mod preflight;
mod published;
mod server;
mod suspicions;
mod witness;

#[cfg(test)]
mod tests;

pub(crate) use apply::{Applying, Keeper};
pub(crate) use console::Console;
pub(crate) use journal::Moment;
pub(crate) use listener::{Listener, GROUP};
pub(crate) use ports::PortDesk;
pub(crate) use witness::{LinkNews, News, Witness};

use crate::ports::Downs;
use crate::report::RingReading;
use crate::switch::Switch;
use crossbeam::channel::Receiver;
use holdfast_core::io::PortIo;
use holdfast_core::units::FrameLen;
use holdfast_shm::Segment;
use mio::Waker;
use server::Server;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use thiserror::Error;

/// What the control thread needs to know besides the switch.
pub(crate) struct ControlSettings {
    /// Chunks of frame memory, all workers together.
    pub(crate) chunks: u64,
    /// The profile's smallest lossless frame, by which `show ports` states the stall that is
    /// survived (SPEC 4.3).
    pub(crate) smallest_lossless_frame: FrameLen,
    /// What a new profile needs.
    pub(crate) applying: Applying,
    /// The counters segment, workers' blocks taken.
    pub(crate) segment: Segment,
    /// Where the link watcher tells.
    pub(crate) links: Receiver<LinkNews>,
    /// What goes to and fro with the keeper of ports.
    pub(crate) desk: PortDesk,
    /// Why ports are down.
    pub(crate) downs: Downs,
    /// Why another profile is in force than the file that was named; one sentence each.
    pub(crate) because: Vec<String>,
}

/// Why there is no control thread: the event loop or its thread can't be made.
#[derive(Debug, Error)]
#[error("the control thread can't start: {0}")]
pub(crate) struct ControlError(#[from] std::io::Error);

/// The running control thread.
#[derive(Debug)]
pub(crate) struct Control {
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: JoinHandle<()>,
}

impl Control {
    /// What makes it look at what it was asked.
    pub(crate) const fn waker(&self) -> &Arc<Waker> {
        &self.waker
    }

    /// Ends the thread: clients are cut off, the socket's file is removed.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Release);
        if let Err(error) = self.waker.wake() {
            log::warn!("the control thread can't be woken: {error}");
        }
        if self.thread.join().is_err() {
            log::error!("the control thread had ended by a panic");
        }
    }
}

/// Starts the control thread of a switch with live ports on its socket.
///
/// # Errors
/// [`ControlError`]; then nothing was started, and the socket is gone.
pub(crate) fn spawn(
    switch: Switch,
    settings: ControlSettings,
    listener: Listener,
) -> Result<Control, ControlError> {
    start(Console::live(switch, settings), listener)
}

/// Starts the thread for any kind of ports.
fn start<P: PortIo + 'static>(
    console: Console<P>,
    listener: Listener,
) -> Result<Control, ControlError> {
    let stop = Arc::new(AtomicBool::new(false));
    let (server, waker) = Server::new(console, listener, Arc::clone(&stop))?;
    let thread =
        std::thread::Builder::new().name("control".to_owned()).spawn(move || server.run())?;
    Ok(Control { stop, waker, thread })
}

/// Reads what only the rings of a kind of port know.
pub(crate) type ReadRings<P> = fn(&mut P) -> RingReading;
