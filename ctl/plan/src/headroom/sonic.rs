//! Formula `sonic`: the arithmetic of sonic-swss (e6b0c5b5) for dynamic buffers, in floating
//! point as there and in the same order, so that its results are met to the byte.

use super::response::{quanta, QUANTUM_BYTES};
use super::{bytes_to_cells, Amount, Formula, Given, Need, Term};
use holdfast_api::amount::Distance;
use holdfast_api::doc::Finding;
use holdfast_core::units::Bytes;

/// Metres a second in the medium.
const SPEED_IN_CABLE: f64 = 1.98e8;
/// What MAC and PHY hold: 0.8 KiB.
const MAC_PHY: f64 = 0.8 * 1024.0;
/// The ports' MTU where none is given.
const PORT_MTU: u16 = 9_100;
/// The smallest packet, bytes.
const SMALLEST: f64 = 64.0;
/// Results are rounded up to this.
const STEP: f64 = 1024.0;
/// A port of so many lanes takes two buffer units.
const TWO_UNITS: u8 = 8;

pub(super) fn need(given: &Given) -> Result<Need, Finding> {
    let mtu = given.mtu.unwrap_or(PORT_MTU);
    let metres = given.centimetres() as f64 / 100.0;
    let cable = 2.0 * metres * given.speed.bits_per_second() as f64 / SPEED_IN_CABLE / 8.0;
    let quanta = quanta(given.speed)?;
    let response = quanta * QUANTUM_BYTES;
    let gearboxes = given.gearbox.0.saturating_mul(2);
    let delay = f64::from(mtu) + cable + gearboxes as f64 + MAC_PHY + response as f64;
    let worst = worst_case(given.cell.bytes());
    let small = f64::from(given.small_share.percent());
    let occupancy = (100.0 - small + small * worst) / 100.0;
    let headroom = rounded(f64::from(given.lossless_mtu) + delay * occupancy);
    let each_small = format!("cells of {} B take {worst} x as much", given.cell.bytes());
    let length = Distance(given.centimetres());
    let terms = vec![
        Term::new("port MTU", Amount::Bytes(mtu.into()), "a frame that is just leaving"),
        Term::new("cable", Amount::RealBytes(cable), format!("{length}, 1.98e8 m/s both ways")),
        Term::new("gearboxes", Amount::Bytes(gearboxes), "both ends"),
        Term::new("MAC and PHY", Amount::RealBytes(MAC_PHY), "0.8 KiB"),
        Term::new("response", Amount::Bytes(response), format!("{quanta} quanta of 64 B")),
        Term::new(
            "occupancy",
            Amount::Factor(occupancy),
            format!(
                "on the sum so far: {} of bytes in small packets, {each_small}",
                given.small_share
            ),
        ),
        Term::new("lossless MTU", Amount::Bytes(given.lossless_mtu.into()), "and to the next KiB"),
    ];
    let cells = bytes_to_cells(headroom.0, given.cell);
    let beside = beside(given, mtu, headroom);
    Ok(Need { formula: Formula::Sonic, terms, bytes: headroom, cells, beside })
}

/// How many times its length a smallest packet may take in cells, rounded up.
fn worst_case(cell: u32) -> f64 {
    let cell = f64::from(cell);
    let factor = if cell > 2.0 * SMALLEST { cell / SMALLEST } else { 2.0 * cell / (1.0 + cell) };
    factor.ceil()
}

fn rounded(bytes: f64) -> Bytes {
    // A float becomes the nearest whole number there is, never a wrapped one.
    Bytes(((bytes / STEP).ceil() * STEP) as u64)
}

/// SONiC's xon and the size of its buffer profile, where the pipeline latency is known.
fn beside(given: &Given, mtu: u16, headroom: Bytes) -> Vec<Term> {
    let Some(latency) = given.pipeline_latency else { return Vec::new() };
    let two = given.lanes == TWO_UNITS;
    let (latency, frame) = if two {
        ((latency.0.saturating_mul(2)).saturating_sub(1024), u64::from(mtu))
    } else {
        (latency.0, 0)
    };
    let xon = latency.div_ceil(1024).saturating_mul(1024);
    let size = headroom.0.saturating_add(xon).saturating_add(frame);
    let size = size.div_ceil(1024).saturating_mul(1024);
    let (xon_how, size_how) = if two {
        ("2 x pipeline latency - 1 KiB: 8 lanes are two buffer units", "need + xon + port MTU")
    } else {
        ("pipeline latency", "need + xon")
    };
    vec![
        Term::new("SONiC xon", Amount::Bytes(xon), xon_how),
        Term::new("SONiC size", Amount::Bytes(size), size_how),
    ]
}
