//! How a sleeping worker is woken: an eventfd, and a wait on it beside the ports' sockets.

use crate::error::XskError;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A bell that any thread may ring and one worker hears. Rings add up to one.
#[derive(Debug)]
pub struct Bell(EventFd);

impl Bell {
    /// A silent bell.
    ///
    /// # Errors
    /// [`XskError::Wait`] if the process has no file descriptor left.
    pub fn new() -> Result<Self, XskError> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let made = EventFd::from_value_and_flags(0, flags);
        made.map(Self).map_err(|e| XskError::Wait { step: "make a bell", source: e.into() })
    }

    /// Wakes the worker, now or when it next goes to sleep.
    pub fn ring(&self) {
        // The only failure is a counter at its limit, and then the bell is ringing already.
        let _ = self.0.write(1);
    }

    /// Silences the bell; `true` if it was ringing.
    pub fn clear(&self) -> bool {
        self.0.read().is_ok()
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sleeps until one of `fds` is readable or the time is over; `None` waits without end.
/// Returns whether one of them was readable. A signal ends the wait too.
///
/// # Errors
/// [`XskError::Wait`] if the kernel refuses, for instance a closed descriptor's number.
pub fn wait(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> Result<bool, XskError> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    match nix::poll::ppoll(&mut polled, timeout.map(TimeSpec::from), None) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(e) => Err(XskError::Wait { step: "wait for frames", source: e.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_wakes_once_however_often_it_rang() {
        let bell = Bell::new().unwrap();
        let at_once = Some(Duration::ZERO);
        assert!(!wait(&[bell.as_fd()], at_once).unwrap());
        bell.ring();
        bell.ring();
        assert!(wait(&[bell.as_fd()], None).unwrap());
        assert!(bell.clear() && !bell.clear());
        assert!(!wait(&[bell.as_fd()], at_once).unwrap());
    }

    #[test]
    fn a_ring_from_another_thread_ends_the_sleep() {
        let bell = Bell::new().unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| bell.ring());
            assert!(wait(&[bell.as_fd()], None).unwrap());
        });
    }
}
