//! One-way latency: from the stamp in a frame to its reading.

use hdrhistogram::Histogram;
use holdfast_host::Nanos;
use serde::Serialize;

/// Longest latency that is told apart: a minute.
const LONGEST: u64 = 60_000_000_000;
/// Two significant digits: one per cent.
const DIGITS: u8 = 2;

/// A distribution of latencies. Empty if a histogram of that shape can't be made.
#[derive(Debug)]
pub(crate) struct Latency(Option<Histogram<u64>>);

/// Percentiles in nanoseconds, within one per cent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LatencyReport {
    samples: u64,
    min: u64,
    mean: u64,
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl Latency {
    pub(crate) fn new() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST, DIGITS).ok())
    }

    /// Adds one; more than a minute counts as a minute.
    pub(crate) fn record(&mut self, span: Nanos) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(span.0.max(1));
        }
    }

    /// The percentiles; `None` without samples.
    pub(crate) fn report(&self) -> Option<LatencyReport> {
        let histogram = self.0.as_ref().filter(|histogram| !histogram.is_empty())?;
        Some(LatencyReport {
            samples: histogram.len(),
            min: histogram.min(),
            mean: histogram.mean() as u64,
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_one_per_cent() {
        let mut latency = Latency::new();
        assert_eq!(latency.report(), None);
        (1..=1000).for_each(|n| latency.record(Nanos(n * 1000)));
        latency.record(Nanos(u64::MAX));
        let report = latency.report().unwrap();
        assert_eq!(report.samples, 1001);
        assert!((495_000..=506_000).contains(&report.p50), "{report:?}");
        assert!((980_000..=1_001_000).contains(&report.p99), "{report:?}");
        assert!(report.max >= LONGEST && report.min <= 1000, "{report:?}");
    }
}
