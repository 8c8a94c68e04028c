//! The path of a frame allocates nothing after boot (DESIGN law 8).
#![cfg(not(loom))]

mod lab;

use holdfast_core::units::Nanos;
use lab::{Bench, FRAMES_A_ROUND};

#[test]
fn no_allocation_a_frame() {
    for (dscp, len) in [(26, 64), (0, 64), (26, 1024), (26, 9000)] {
        let mut bench = Bench::new(dscp, len);
        let before = bench.sent() + bench.waiting();
        let count = allocation_counter::measure(|| {
            for _ in 0..200 {
                bench.round(Nanos(100_000));
            }
        });
        let moved = bench.sent() + bench.waiting() - before;
        assert_eq!(moved, 200 * FRAMES_A_ROUND as u64, "DSCP {dscp}, {len} bytes");
        assert_eq!(count.count_total, 0, "allocations in {moved} frames of {len} bytes");
    }
}

#[test]
fn the_counter_sees_an_allocation() {
    let count = allocation_counter::measure(|| {
        std::hint::black_box(Vec::<u64>::with_capacity(10));
    });
    assert_eq!(count.count_total, 1);
}
