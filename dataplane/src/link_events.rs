//! Watches the links of all ports and keeps what must be put back when the switch ends.
//!
//! Workers see a link's state by an atomic in each step; this thread is who writes it, from the
//! kernel's messages.

use holdfast_xsk::{wait, Bell, LinkEvent, PortGuard, XskError};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

/// The running watch. [`LinkWatcher::stop`] gives the guards back, in the order of the ports.
pub struct LinkWatcher {
    stop: Arc<AtomicBool>,
    bell: Arc<Bell>,
    thread: JoinHandle<Vec<PortGuard>>,
}

impl LinkWatcher {
    /// Starts watching; `wake` is called after each piece of news, so that a sleeping worker looks.
    ///
    /// # Errors
    /// [`XskError`] where the system gives no eventfd or thread.
    pub fn start(
        names: Vec<String>,
        mut guards: Vec<PortGuard>,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let stop = Arc::new(AtomicBool::new(false));
        let bell = Arc::new(Bell::new()?);
        let (end, door) = (Arc::clone(&stop), Arc::clone(&bell));
        let thread = std::thread::Builder::new().name("links".to_owned()).spawn(move || {
            while !end.load(Ordering::Acquire) {
                if let Err(error) = sleep(&guards, &door) {
                    log::warn!("links are no longer watched: {error}");
                    break;
                }
                for (guard, name) in guards.iter_mut().zip(&names) {
                    guard.take_link_events().iter().for_each(|event| say(name, event));
                }
                wake();
            }
            guards
        })?;
        Ok(Self { stop, bell, thread })
    }

    /// Ends the watch.
    pub fn stop(self) -> Vec<PortGuard> {
        self.stop.store(true, Ordering::Release);
        self.bell.ring();
        self.thread.join().unwrap_or_default()
    }
}

fn sleep(guards: &[PortGuard], bell: &Bell) -> Result<(), XskError> {
    let mut fds: Vec<BorrowedFd<'_>> = guards.iter().map(PortGuard::link_fd).collect();
    fds.push(bell.as_fd());
    wait(&fds, None).map(|_| ())
}

fn say(port: &str, event: &LinkEvent) {
    match event {
        LinkEvent::Up(true) => log::info!("port {port}: link up"),
        LinkEvent::Up(false) => log::warn!("port {port}: link down; its frames are dropped"),
        LinkEvent::Gone => log::error!("port {port}: its netdev is gone"),
        LinkEvent::Mtu(mtu) => {
            log::warn!("port {port}: MTU is {mtu} now; the switch keeps to the MTU of its start");
        }
        LinkEvent::Missed => log::warn!("port {port}: news of its link were lost"),
    }
}
