//! What a process logs of its clients' doings (SPEC 11): their text cut and on one line, and each
//! cause now and then. The time is an argument.

use crate::message::shortened;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Characters of a client's text in the log at most.
const LOGGED: usize = 400;
/// Lines of one cause that are logged within [`WINDOW`].
const LINES: u64 = 5;
/// After so long a cause may have its lines again.
const WINDOW: Duration = Duration::from_secs(10);

/// A text that came from a client, or repeats what came from one, as it is logged.
pub fn logged(text: &str) -> String {
    let mut line = String::new();
    for character in shortened(text, LOGGED).chars() {
        if character.is_control() {
            line.extend(character.escape_debug());
        } else {
            line.push(character);
        }
    }
    line
}

/// How often each cause was logged lately. There are few causes, all of them known beforehand.
#[derive(Debug)]
pub struct Throttle<C>(BTreeMap<C, Window>);

#[derive(Debug)]
struct Window {
    since: Instant,
    lines: u64,
}

impl<C: Ord> Default for Throttle<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Ord> Throttle<C> {
    /// Nothing logged yet.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Whether a line of `cause` may be logged now: then with the number of those that were left
    /// out before it.
    pub fn line(&mut self, cause: C, now: Instant) -> Option<u64> {
        let window = self.0.entry(cause).or_insert(Window { since: now, lines: 0 });
        let mut left_out = 0;
        if now.saturating_duration_since(window.since) >= WINDOW {
            left_out = window.lines.saturating_sub(LINES);
            *window = Window { since: now, lines: 0 };
        }
        window.lines += 1;
        (window.lines <= LINES).then_some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_logged_now_and_then_and_others_beside_it() {
        let mut throttle = Throttle::new();
        let start = Instant::now();
        let lines: Vec<_> = (0..1_000).filter_map(|_| throttle.line("pg", start)).collect();
        assert_eq!(lines, [0; 5]);
        assert_eq!(throttle.line("wred", start), Some(0));
        assert_eq!(throttle.line("pg", start + WINDOW), Some(995));
        assert_eq!(throttle.line("pg", start + WINDOW), Some(0));
    }

    #[test]
    fn a_clients_text_is_one_line_of_bounded_length() {
        assert_eq!(
            logged("port: no \"h\u{e4}\"\nfake: \u{1b}[2J"),
            "port: no \"h\u{e4}\"\\nfake: \\u{1b}[2J"
        );
        assert!(logged(&"\n".repeat(1 << 20)).len() <= 2 * LOGGED + 4);
    }
}
