//! Moves frames through a switch in memory: `frames DSCP LENGTH ROUNDS`, 64 frames a round.
//!
//! What `tests/instructions.rs` counts the instructions of.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../tests/lab/mod.rs"]
mod lab;

use holdfast_core::units::Nanos;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>().expect("number"));
    let mut next = || arguments.next().expect("frames DSCP LENGTH ROUNDS");
    let (dscp, len, rounds) = (next() as u8, next(), next());
    let mut bench = lab::Bench::new(dscp, len);
    for _ in 0..rounds {
        bench.round(Nanos(100_000));
    }
    println!("{}", bench.sent());
}
