//! PFC as sent and received, and how fast XOFF left (SPEC 4).

use super::reading::PriorityReading;
use super::{PortReading, View};
use holdfast_api::message::{Histogram, HistogramBucket, PfcPort, PfcPriority, PfcReply};
use holdfast_core::durations::Durations;
use holdfast_core::ids::Priority;
use holdfast_core::pfc::PauseCause;
use holdfast_core::profile::PortSpec;
use holdfast_wire::InvalidKind;
use std::collections::BTreeMap;

/// The name under which PAUSE frames are counted where they aren't obeyed.
const PAUSE_NOT_ENABLED: &str = "pause_not_enabled";

/// The answer to `show_pfc`. The histogram covers the ports of the answer.
pub(crate) fn pfc_reply(view: View<'_>) -> PfcReply {
    let ports = view.ports();
    let xoff_reaction = histogram(ports.iter().map(|(port, _)| &port.reaction));
    let ports = ports.into_iter().map(|(port, spec)| pfc_port(view, port, spec)).collect();
    PfcReply { ports, xoff_reaction }
}

fn pfc_port(view: View<'_>, port: &PortReading, spec: &PortSpec) -> PfcPort {
    let kinds = InvalidKind::ALL.iter().zip(port.invalid);
    let mut invalid: BTreeMap<String, u64> =
        kinds.map(|(kind, frames)| (kind.name().to_owned(), frames)).collect();
    let (obeyed, ignored) = match spec.pfc.link_pause {
        true => (port.link_pause_frames, 0),
        false => (0, port.link_pause_frames),
    };
    invalid.insert(PAUSE_NOT_ENABLED.to_owned(), ignored);
    PfcPort {
        port: view.board.port_name(port.id),
        pause_quanta: spec.pfc.quanta.0,
        pause_ns: spec.pfc.quanta.at(spec.speed).0,
        invalid,
        link_pause_frames: obeyed,
        priorities: port
            .priorities
            .iter()
            .map(|(priority, reading)| pfc_priority(priority, reading, spec))
            .collect(),
    }
}

fn pfc_priority(priority: Priority, reading: &PriorityReading, spec: &PortSpec) -> PfcPriority {
    let causes = PauseCause::ALL.iter().zip(reading.causes);
    let queues = spec.maps.priority_to_queues[priority];
    PfcPriority {
        priority: priority.number(),
        enabled: spec.pfc.enabled.contains(priority),
        causes: causes
            .filter(|(_, holds)| *holds)
            .map(|(cause, _)| cause.name().to_owned())
            .collect(),
        queues: queues.iter().map(|queue| queue.number()).collect(),
        transmitted: reading.transmitted,
        received: reading.received,
        not_enabled_frames: reading.not_enabled,
    }
}

/// Durations times of several ports as one histogram.
fn histogram<'a>(reactions: impl Iterator<Item = &'a Durations>) -> Histogram {
    let mut sum = Histogram::default();
    let mut below = [0u64; Durations::BUCKETS];
    for reaction in reactions {
        for (total, count) in below.iter_mut().zip(reaction.below) {
            *total += count;
        }
        sum.sum_ns += reaction.total;
        sum.max_ns = sum.max_ns.max(reaction.longest);
    }
    sum.count = below.iter().sum();
    let last = Durations::BUCKETS - 1;
    sum.buckets = below
        .iter()
        .enumerate()
        .map(|(n, count)| HistogramBucket {
            // Below 2^n us is up to one nanosecond less.
            up_to_ns: (n < last).then(|| (1_000u64 << n) - 1),
            count: *count,
        })
        .collect();
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::units::Nanos;

    #[test]
    fn histogram_adds_ports_and_bounds_ascend() {
        let (mut one, mut two) = (Durations::default(), Durations::default());
        one.count(Nanos(999));
        one.count(Nanos(1_000));
        two.count(Nanos(90_000_000));
        let histogram = histogram([&one, &two].into_iter());
        assert_eq!((histogram.count, histogram.max_ns), (3, 90_000_000));
        assert_eq!(histogram.sum_ns, 90_001_999);
        assert_eq!(histogram.buckets[0], HistogramBucket { up_to_ns: Some(999), count: 1 });
        assert_eq!(histogram.buckets[1], HistogramBucket { up_to_ns: Some(1_999), count: 1 });
        let last = histogram.buckets.last().unwrap();
        assert_eq!(*last, HistogramBucket { up_to_ns: None, count: 1 });
        let bounds: Vec<_> = histogram.buckets.iter().filter_map(|b| b.up_to_ns).collect();
        assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
