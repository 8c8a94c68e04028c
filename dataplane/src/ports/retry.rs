//! When a port that is closed is tried again: soon at first, then less and less often.

use std::time::{Duration, Instant};

/// After a port was closed: a netdev that was only changed is there.
const FIRST: Duration = Duration::from_millis(20);
/// Never less often than this: how long a netdev that is back waits at most.
const LONGEST: Duration = Duration::from_secs(2);
/// What doesn't change is said again after so long.
const SAY_AGAIN: Duration = Duration::from_secs(60);

/// The attempts at one port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    delay: Duration,
    next: Instant,
    said: Option<Instant>,
}

impl Retry {
    /// The port was closed now.
    pub(super) fn new(now: Instant) -> Self {
        Self { delay: FIRST, next: now + FIRST, said: None }
    }

    /// When it is tried next.
    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    /// An attempt has failed; whether that is to be said. `news` says that it failed in a way that
    /// wasn't known.
    pub(super) fn failed(&mut self, now: Instant, news: bool) -> bool {
        self.delay = (self.delay * 2).min(LONGEST);
        self.next = now + self.delay;
        let due = self.said.is_none_or(|said| now >= said + SAY_AGAIN);
        // A way of failing that changes to and fro is said no more often than it is tried last.
        let say = due || news && self.said.is_none_or(|said| now >= said + LONGEST);
        if say {
            self.said = Some(now);
        }
        say
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_get_rare_but_not_rarer_and_are_said_now_and_then() {
        let start = Instant::now();
        let mut retry = Retry::new(start);
        let (mut said, mut tries, mut now) = (0, 0, start);
        while now < start + Duration::from_secs(120) {
            now = retry.next();
            said += u32::from(retry.failed(now, tries == 0));
            tries += 1;
            assert!(retry.next() - now <= LONGEST);
        }
        assert!((60..80).contains(&tries), "{tries} attempts");
        assert_eq!(said, 3, "at once, after a minute, after another one");
        let mut flapping = Retry::new(start);
        let often = (0..100).filter(|n| flapping.failed(start + FIRST * *n, true)).count();
        assert_eq!(often, 1, "news every 20 ms for two seconds");
    }
}
