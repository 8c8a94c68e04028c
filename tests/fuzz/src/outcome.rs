//! What libFuzzer says of a run.

use serde::Serialize;
use std::path::PathBuf;

/// How one target went.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Outcome {
    /// Its name.
    pub(crate) target: &'static str,
    /// Inputs that ran.
    pub(crate) inputs: u64,
    /// How long that took.
    pub(crate) seconds: f64,
    /// Edges of code that were reached.
    pub(crate) edges: u64,
    /// Inputs that each reach something of their own.
    pub(crate) corpus: u64,
    /// The slowest input, in whole seconds.
    pub(crate) slowest_s: u64,
    /// Inputs that broke a law, took too long or too much memory.
    pub(crate) crashes: Vec<PathBuf>,
    /// Whether it ended by itself and well.
    pub(crate) ended_well: bool,
}

impl Outcome {
    /// Whether all inputs ran and none crashed.
    pub(crate) fn is_well(&self, inputs: u64) -> bool {
        self.ended_well && self.crashes.is_empty() && self.inputs >= inputs
    }

    /// Takes one line of libFuzzer's output in: a pulse, or a number of the final statistics.
    pub(crate) fn read(&mut self, line: &str) {
        let number = |text: &str| text.trim().parse().unwrap_or_default();
        if let Some((name, value)) = line.split_once(": ").filter(|_| line.starts_with("stat::")) {
            match name {
                "stat::number_of_executed_units" => self.inputs = number(value),
                "stat::slowest_unit_time_sec" => self.slowest_s = number(value),
                _ => {}
            }
            return;
        }
        let Some((count, rest)) = line.strip_prefix('#').and_then(|rest| rest.split_once('\t'))
        else {
            return;
        };
        self.inputs = self.inputs.max(number(count));
        let mut words = rest.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "cov:" => self.edges = number(words.next().unwrap_or_default()),
                "corp:" => {
                    let size = words.next().unwrap_or_default();
                    self.corpus = number(size.split('/').next().unwrap_or_default());
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libfuzzers_lines_are_read() {
        let mut outcome = Outcome::default();
        for line in [
            "INFO: Seed: 231213825",
            "#2\tINITED cov: 7 ft: 9 corp: 3/19b exec/s: 0 rss: 27Mb",
            "#2000\tNEW    cov: 71 ft: 80 corp: 15/2190Kb lim: 21 exec/s: 20 rss: 7Mb L: 5/6 MS: 1",
            "#2048\tpulse  cov: 71 ft: 80 corp: 16/2191Kb lim: 21 exec/s: 20 rss: 7Mb",
            "stat::number_of_executed_units: 2063",
            "stat::slowest_unit_time_sec: 2",
        ] {
            outcome.read(line);
        }
        assert_eq!((outcome.inputs, outcome.edges, outcome.corpus), (2063, 71, 16));
        assert_eq!(outcome.slowest_s, 2);
        outcome.ended_well = true;
        assert!(outcome.is_well(2000) && !outcome.is_well(3000));
        outcome.crashes.push("crash-0".into());
        assert!(!outcome.is_well(2000));
    }
}
