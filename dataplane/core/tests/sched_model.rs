//! Queues of every kind against a fluid model: strict, weights, minimum and maximum rates (SPEC 6).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sched_port;

use holdfast_core::profile::{QueueSpec, Service};
use holdfast_core::units::{BitRate, Time};
use proptest::prelude::*;
use sched_port::*;

/// How long each port sends.
const RUN: Time = Time(40_000_000);
/// Bytes that a queue may be ahead or behind: two rounds, two frames, and what its rates and the
/// port's may make up for.
const SLACK: f64 = 2.0 * 16_384.0 + 2.0 * 9_226.0 + 2.0 * 62_500.0;

/// A queue as the model sees it; rates in bytes of frames a second.
#[derive(Clone, Copy, Debug)]
struct Fluid {
    strict: bool,
    weight: f64,
    floor: f64,
    cap: f64,
    /// Bytes on the wire for each byte of a frame.
    wire: f64,
}

/// Minimum rates first, then strict queues from above, then the rest by weight, no queue beyond its
/// maximum: the rate of each.
fn shares(queues: &[Fluid], speed: f64) -> Vec<f64> {
    let mut rates: Vec<f64> = queues.iter().map(|queue| queue.floor.min(queue.cap)).collect();
    let wire = |rates: &[f64]| -> f64 { queues.iter().zip(rates).map(|(q, r)| q.wire * r).sum() };
    for at in (0..queues.len()).rev().filter(|at| queues[*at].strict) {
        let room = (speed - wire(&rates)).max(0.0) / queues[at].wire;
        rates[at] = (rates[at] + room).min(queues[at].cap);
    }
    // The level to which all weighted queues are filled, found by halving.
    let filled = |level: f64| -> Vec<f64> {
        let fill = |(queue, rate): (&Fluid, &f64)| match queue.strict {
            true => *rate,
            false => (level * queue.weight).clamp(queue.floor.min(queue.cap), queue.cap),
        };
        queues.iter().zip(&rates).map(fill).collect()
    };
    let (mut low, mut high) = (0.0, speed);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if wire(&filled(middle)) > speed {
            high = middle;
        } else {
            low = middle;
        }
    }
    filled(low)
}

fn any_queue() -> impl Strategy<Value = (QueueSpec, u16)> {
    let service = prop_oneof![
        1 => Just(Service::Strict),
        4 => (1u16..=100).prop_map(Service::Weight),
    ];
    // Eight minima of a tenth of the port's speed and less can be kept together.
    let rate = |from: u64, to: u64| {
        proptest::option::weighted(0.3, (from..=to).prop_map(|rate| BitRate::new(rate).unwrap()))
    };
    let rates = (rate(10_000_000, 1_000_000_000), rate(1_200_000_000, 9_000_000_000));
    let len = prop_oneof![Just(64u16), Just(1_500), Just(9_000)];
    (service, rates, len).prop_map(|(service, (min_rate, max_rate), len)| {
        (QueueSpec { min_rate, max_rate, ..queue(service) }, len)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn queues_of_every_kind_get_the_shares_of_the_model(
        queues in proptest::collection::vec(any_queue(), 1..=8),
    ) {
        let specs: Vec<(u8, QueueSpec)> = (0u8..).zip(queues.iter().map(|queue| queue.0)).collect();
        let lens: Vec<(u8, u16)> = (0u8..).zip(queues.iter().map(|queue| queue.1)).collect();
        let mut port = Saturated::new(&port(&specs), &lens);
        port.run(RUN);
        let fluid = |(spec, len): &(QueueSpec, u16)| {
            let wire = f64::from(len + 24) / f64::from(*len);
            let rate = |rate: Option<BitRate>| {
                rate.map(|rate| rate.bits_per_second() as f64 / 8.0 / wire)
            };
            let (strict, weight) = match spec.service {
                Service::Strict => (true, 0.0),
                Service::Weight(weight) => (false, f64::from(weight)),
            };
            let (floor, cap) = (rate(spec.min_rate), rate(spec.max_rate));
            Fluid { strict, weight, floor: floor.unwrap_or(0.0), cap: cap.unwrap_or(1e12), wire }
        };
        let fluids: Vec<Fluid> = queues.iter().map(fluid).collect();
        let seconds = port.now.0 as f64 / 1e9;
        let speed = SPEED.bits_per_second() as f64 / 8.0;
        for (at, rate) in shares(&fluids, speed).into_iter().enumerate() {
            let (sent, ideal) = (port.bytes[at] as f64, rate * seconds);
            prop_assert!(
                (sent - ideal).abs() <= 0.02 * ideal + SLACK,
                "queue {}: {} bytes, {} by the model: {:?}", at, sent, ideal, fluids
            );
        }
        prop_assert!(port.most_looks <= 32, "{} looks for one decision", port.most_looks);
    }
}
