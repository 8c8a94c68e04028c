//! The state of a port's link, shared between its worker and whoever watches the link.

use std::sync::atomic::{AtomicU32, Ordering};

const UP: u32 = 1;
const GONE: u32 = 2;

/// Whether a port's link is usable. One word a port: written when rtnetlink or a system call
/// says so, read by the worker in every step.
#[derive(Debug)]
pub struct LinkState(AtomicU32);

impl LinkState {
    pub(crate) fn new(up: bool) -> Self {
        Self(AtomicU32::new(if up { UP } else { 0 }))
    }

    /// Administratively up, with a carrier, and there.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) == UP
    }

    /// The netdev is gone from its namespace. It doesn't come back: a new one must be opened.
    #[inline]
    pub fn is_gone(&self) -> bool {
        self.0.load(Ordering::Relaxed) & GONE != 0
    }

    pub(crate) fn set_up(&self, up: bool) {
        if up {
            self.0.fetch_or(UP, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!UP, Ordering::Relaxed);
        }
    }

    pub(crate) fn set_gone(&self) {
        self.0.fetch_or(GONE, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_not_up() {
        let link = LinkState::new(true);
        link.set_up(false);
        assert!(!link.is_up() && !link.is_gone());
        link.set_up(true);
        assert!(link.is_up());
        link.set_gone();
        link.set_up(true);
        assert!(!link.is_up() && link.is_gone());
    }
}
