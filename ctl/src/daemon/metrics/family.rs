//! Metric families as they grow, and the page that becomes of them.

use holdfast_shm::counters::Times;
use prometheus::proto::MetricType;
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily};
use prometheus::TextEncoder;

/// A label with its value.
pub(super) type Label<'a> = (&'static str, &'a str);

/// Families in the order of their beginning; each is begun once.
#[derive(Debug, Default)]
pub(super) struct Families(Vec<MetricFamily>);

impl Families {
    /// Begins a family of counters: what is added next belongs to it.
    pub(super) fn counter(&mut self, name: &str, help: &str) {
        self.begin(name, help, MetricType::COUNTER);
    }

    /// Begins a family of gauges.
    pub(super) fn gauge(&mut self, name: &str, help: &str) {
        self.begin(name, help, MetricType::GAUGE);
    }

    fn begin(&mut self, name: &str, help: &str, kind: MetricType) {
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        self.0.push(family);
    }

    /// Adds a series to the family begun last.
    pub(super) fn add(&mut self, labels: &[Label<'_>], value: f64) {
        let Some(family) = self.0.last_mut() else { return };
        let mut metric = Metric::from_label(pairs(labels));
        match family.get_field_type() {
            MetricType::COUNTER => {
                let mut counter = Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            }
            _ => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
        }
        family.mut_metric().push(metric);
    }

    /// Adds a series of a count. Prometheus knows only floating point: beyond 2^53 the last digits
    /// are rounded, which keeps the order of counts.
    pub(super) fn count(&mut self, labels: &[Label<'_>], value: u64) {
        self.add(labels, value as f64);
    }

    /// Adds a series of a state: 1 or 0.
    pub(super) fn state(&mut self, labels: &[Label<'_>], state: bool) {
        self.add(labels, if state { 1.0 } else { 0.0 });
    }

    /// A whole family of one histogram of seconds.
    pub(super) fn histogram(&mut self, name: &str, help: &str, times: &Times) {
        self.begin(name, help, MetricType::HISTOGRAM);
        let mut histogram = Histogram::default();
        let mut counted = 0;
        let mut buckets = Vec::new();
        for (n, count) in times.below.iter().enumerate() {
            counted += count;
            // The last one has no upper bound: it is the encoder's +Inf.
            if n + 1 < times.below.len() {
                let mut bucket = Bucket::default();
                bucket.set_upper_bound(f64::from(1u32 << n) * 1e-6);
                bucket.set_cumulative_count(counted);
                buckets.push(bucket);
            }
        }
        histogram.set_bucket(buckets);
        histogram.set_sample_count(counted);
        histogram.set_sample_sum(seconds(times.total));
        let mut metric = Metric::default();
        metric.set_histogram(histogram);
        if let Some(family) = self.0.last_mut() {
            family.mut_metric().push(metric);
        }
    }

    /// The page. A family without series, as on a switch without ports, is left out.
    ///
    /// # Errors
    /// The encoder's.
    pub(super) fn text(mut self) -> Result<String, prometheus::Error> {
        self.0.retain(|family| !family.get_metric().is_empty());
        TextEncoder::new().encode_to_string(&self.0)
    }
}

fn pairs(labels: &[Label<'_>]) -> Vec<LabelPair> {
    let pair = |(name, value): &Label<'_>| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    labels.iter().map(pair).collect()
}

/// Nanoseconds as seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
