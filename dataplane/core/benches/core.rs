//! The core in memory: one frame through ingress and egress, at several sizes and features.
//!
//! `cargo bench -p holdfast-core` measures time; under callgrind, `--test` style runs of
//! `tests/instructions.rs` count instructions, which don't depend on the machine's load.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../tests/lab/mod.rs"]
mod lab;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use holdfast_core::units::Nanos;
use lab::{Bench, FRAMES_A_ROUND};

fn frames(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame");
    group.throughput(Throughput::Elements(FRAMES_A_ROUND as u64));
    for (name, dscp, len) in
        [("lossless_64", 26, 64), ("lossy_64", 0, 64), ("lossless_1024", 26, 1024)]
    {
        let mut bench = Bench::new(dscp, len);
        group.bench_function(name, |b| b.iter(|| bench.round(Nanos(100_000))));
    }
    group.finish();
}

criterion_group!(benches, frames);
criterion_main!(benches);
