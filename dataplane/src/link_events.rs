//! Watches the links of all ports and keeps what must be put back when the switch ends.
//!
//! Workers see a link's state by an atomic in each step; this thread is who writes it, from the
//! kernel's messages.

use crate::control::{LinkNews, Moment};
use crossbeam::channel::{bounded, Receiver, Sender};
use holdfast_xsk::{clock, wait, Bell, LinkEvent, PortGuard, XskError};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

/// News that may wait for the control thread, which takes them once a second. A link that flaps
/// faster has the rest left out.
const NEWS: usize = 256;

/// The running watch. Dropping it ends the watch and puts the links' settings back.
pub struct LinkWatcher {
    stop: Arc<AtomicBool>,
    bell: Arc<Bell>,
    hand_over: Sender<Vec<PortGuard>>,
    thread: Option<JoinHandle<Vec<PortGuard>>>,
}

impl LinkWatcher {
    /// Starts a watch that waits for what to watch; `wake` is called after each piece of news, so
    /// that a sleeping worker looks. The second of the two is where the news can be read.
    ///
    /// # Errors
    /// [`XskError`] where the system gives no eventfd or thread.
    pub fn start(
        names: Vec<String>,
        wake: impl Fn() + Send + 'static,
    ) -> Result<(Self, Receiver<LinkNews>), Box<dyn std::error::Error>> {
        let (tell, news) = bounded(NEWS);
        let stop = Arc::new(AtomicBool::new(false));
        let bell = Arc::new(Bell::new()?);
        let (end, door) = (Arc::clone(&stop), Arc::clone(&bell));
        let (hand_over, take_over) = bounded::<Vec<PortGuard>>(1);
        let thread = std::thread::Builder::new().name("links".to_owned()).spawn(move || {
            let mut guards = Vec::new();
            while !end.load(Ordering::Acquire) {
                if let Err(error) = sleep(&guards, &door) {
                    log::warn!("links are no longer watched: {error}");
                    break;
                }
                // Before looking: what is handed over from here on rings anew.
                door.clear();
                if let Ok(given) = take_over.try_recv() {
                    guards = given;
                }
                for (port, (guard, name)) in guards.iter_mut().zip(&names).enumerate() {
                    for event in guard.take_link_events() {
                        say(name, &event);
                        // A full channel is noticed by who reads it.
                        let at = Moment::now(clock::now());
                        let _ = tell.try_send(LinkNews { port, event, at });
                    }
                }
                wake();
            }
            guards.extend(take_over.try_iter().flatten());
            guards
        })?;
        Ok((Self { stop, bell, hand_over, thread: Some(thread) }, news))
    }

    /// Watches these from now on, in the order of the names.
    ///
    /// # Errors
    /// If the thread has ended already; then their settings are back.
    pub fn watch(&mut self, guards: Vec<PortGuard>) -> Result<(), Box<dyn std::error::Error>> {
        self.hand_over
            .try_send(guards)
            .map_err(|_| "links can't be watched: the watch has ended")?;
        self.bell.ring();
        Ok(())
    }
}

impl Drop for LinkWatcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.bell.ring();
        let guards = self.thread.take().and_then(|thread| thread.join().ok());
        for mut guard in guards.into_iter().flatten() {
            guard.restore();
        }
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
