//! `/metrics`: what the counters segment says, in the text format of Prometheus (facts: every
//! series exists from the start, labels are identities, state is a value).
//!
//! The switch is asked nothing. When it is gone its last counters stay, with `holdfast_up 0` and
//! their age.

mod family;
mod pauses;
mod pgs;
mod ports;
mod process;
mod queues;
mod snapshot;

#[cfg(test)]
mod tests;

use family::Families;
use holdfast_shm::{SegmentError, SegmentReader};
use snapshot::Snapshot;
use thiserror::Error;

/// The media type of a page.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Why there is no page.
#[derive(Debug, Error)]
pub(crate) enum MetricsError {
    /// The counters can't be read.
    #[error("the counters can't be read: {0}")]
    Segment(#[from] SegmentError),
    /// The page can't be written.
    #[error("the metrics can't be written: {0}")]
    Format(#[from] prometheus::Error),
}

/// One page. `segment` is the last one that a switch handed over; `up` says whether that switch
/// still answers, `now_ns` is `CLOCK_MONOTONIC`.
///
/// # Errors
/// [`MetricsError`].
pub(crate) fn page(
    segment: Option<&SegmentReader>,
    up: bool,
    now_ns: u64,
) -> Result<String, MetricsError> {
    let mut families = Families::default();
    let up = up && segment.is_some();
    families.gauge("holdfast_up", "Whether the switch answers its control socket.");
    families.add(&[], if up { 1.0 } else { 0.0 });
    if let Some(segment) = segment {
        let snapshot = Snapshot::take(segment)?;
        process::add(&mut families, &snapshot, now_ns);
        ports::add(&mut families, &snapshot);
        pauses::add(&mut families, &snapshot);
        pgs::add(&mut families, &snapshot);
        queues::add(&mut families, &snapshot);
    }
    Ok(families.text()?)
}
