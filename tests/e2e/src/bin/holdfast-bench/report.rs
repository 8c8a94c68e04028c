//! Medians and ratios.

use crate::contender::Contender;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::Table;
use serde_json::{json, Map, Value};

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Who forwarded.
    pub contender: Contender,
    /// Bytes of a frame, without FCS.
    pub size: u16,
    /// Frames that came through, a second.
    pub frames_per_second: f64,
    /// CPU time of the contender a frame, the peers' receive work included, ns.
    pub cpu_ns_per_frame: f64,
}

/// All samples of one contender at one size, in short.
struct Line {
    contender: Contender,
    size: u16,
    frames_per_second: f64,
    cpu_ns_per_frame: f64,
    /// Its rate in terms of the bare forwarder's: the median over the rounds, because the two runs
    /// of one round lie next to each other in time and a shared machine drifts.
    of_bare: f64,
}

/// The outcome of the bench.
pub struct Report {
    lines: Vec<Line>,
    samples: Vec<Sample>,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.get(middle) {
        Some(upper) if values.len() % 2 == 0 => (values[middle - 1] + upper) / 2.0,
        Some(only) => *only,
        None => 0.0,
    }
}

impl Report {
    /// Medians of `samples`.
    pub fn new(samples: &[Sample], contenders: &[Contender], sizes: &[u16]) -> Self {
        let each = |contender, size, what: fn(&Sample) -> f64| -> Vec<f64> {
            let same = |s: &&Sample| s.contender == contender && s.size == size;
            samples.iter().filter(same).map(what).collect()
        };
        let mut lines = Vec::new();
        for &size in sizes {
            let bare = each(Contender::Bare, size, |s| s.frames_per_second);
            for &contender in contenders {
                let rates = each(contender, size, |s| s.frames_per_second);
                let ratios = rates.iter().zip(&bare).map(|(rate, bare)| rate / bare);
                lines.push(Line {
                    contender,
                    size,
                    of_bare: median(ratios.collect()),
                    frames_per_second: median(rates),
                    cpu_ns_per_frame: median(each(contender, size, |s| s.cpu_ns_per_frame)),
                });
            }
        }
        Self { lines, samples: samples.to_vec() }
    }

    /// The contender's lowest rate over all sizes, in terms of the bare forwarder's.
    pub fn least_of_bare(&self, contender: Contender) -> f64 {
        let lines = self.lines.iter().filter(|line| line.contender == contender);
        lines.map(|line| line.of_bare).fold(f64::INFINITY, f64::min)
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(UTF8_HORIZONTAL_ONLY);
        table.set_header(["size", "contender", "frames/s", "CPU ns a frame", "of bare"]);
        for line in &self.lines {
            table.add_row([
                format!("{} B", line.size),
                line.contender.name().to_owned(),
                format!("{:.0}", line.frames_per_second),
                format!("{:.0}", line.cpu_ns_per_frame),
                format!("{:.2}", line.of_bare),
            ]);
        }
        table.to_string()
    }
}

impl serde::Serialize for Report {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut ratios = Map::new();
        let lines = self.lines.iter().map(|line| {
            let key = format!("{}_of_bare_{}B", line.contender.name(), line.size);
            ratios.insert(key, json!(line.of_bare));
            json!({
                "contender": line.contender.name(),
                "size": line.size,
                "frames_per_second": line.frames_per_second,
                "cpu_ns_per_frame": line.cpu_ns_per_frame,
            })
        });
        let medians: Vec<Value> = lines.collect();
        let sample = |s: &Sample| {
            json!({
                "contender": s.contender.name(),
                "size": s.size,
                "frames_per_second": s.frames_per_second,
                "cpu_ns_per_frame": s.cpu_ns_per_frame,
            })
        };
        let samples: Vec<Value> = self.samples.iter().map(sample).collect();
        json!({ "medians": medians, "ratios": ratios, "samples": samples }).serialize(serializer)
    }
}
