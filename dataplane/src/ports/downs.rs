//! Why ports are down now: written by who finds out, read by who is asked.

use holdfast_core::down::DownReason;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Why one port is down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Down {
    /// What took it down.
    pub(crate) reason: DownReason,
    /// What keeps it from coming back, if that was tried.
    pub(crate) error: Option<String>,
}

impl Down {
    /// For people, in one line.
    pub(crate) fn text(&self) -> String {
        let reason = self.reason.text();
        match &self.error {
            Some(error) => format!("{reason}; can't be opened again yet: {error}"),
            None => reason.to_owned(),
        }
    }
}

/// The ports that are down, by number. Clones are the same; a lock is held for a word's time, and
/// never by a worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Downs(Arc<Mutex<BTreeMap<usize, Down>>>);

impl Downs {
    /// The port went down.
    pub(crate) fn set(&self, number: usize, reason: DownReason) {
        self.edit(|downs| downs.insert(number, Down { reason, error: None }));
    }

    /// It can't be opened; `true` if that wasn't known.
    pub(crate) fn fail(&self, number: usize, error: &str) -> bool {
        self.edit(|downs| {
            let Some(down) = downs.get_mut(&number) else { return false };
            let news = down.error.as_deref() != Some(error);
            if news {
                down.error = Some(error.to_owned());
            }
            news
        })
    }

    /// It is down no more.
    pub(crate) fn clear(&self, number: usize) {
        self.edit(|downs| downs.remove(&number));
    }

    /// Why it is down, if it is.
    pub(crate) fn of(&self, number: usize) -> Option<Down> {
        self.edit(|downs| downs.get(&number).cloned())
    }

    fn edit<T>(&self, act: impl FnOnce(&mut BTreeMap<usize, Down>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_a_port_down_is_news_once() {
        let downs = Downs::default();
        assert!(!downs.fail(3, "no such netdev"), "it isn't down");
        downs.set(3, DownReason::NetdevGone);
        assert!(downs.fail(3, "no such netdev") && !downs.fail(3, "no such netdev"));
        assert!(downs.fail(3, "MTU 9000"));
        let text = downs.of(3).map(|down| down.text());
        let wanted = "its netdev is gone; can't be opened again yet: MTU 9000";
        assert_eq!(text.as_deref(), Some(wanted));
        downs.clear(3);
        assert_eq!(downs.of(3), None);
    }
}
