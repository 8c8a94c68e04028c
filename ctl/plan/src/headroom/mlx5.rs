//! Formula `mlx5`: what the driver computes for the receive buffer of a NIC.

use super::{bytes_to_cells, Amount, Formula, Given, Need, Term};
use holdfast_api::amount::Distance;
use holdfast_core::units::Bytes;

/// The MTU where none is given.
const MTU: u16 = 9_100;
/// Slower ports count as this, Gbit/s.
const SLOWEST: u64 = 40;
/// The resume level is at least this far below the pause level.
const LEAST_WINDOW: u16 = 9_216;

pub(super) fn need(given: &Given) -> Need {
    let mtu = given.mtu.unwrap_or(MTU);
    let cm = given.centimetres();
    let gigabits = given.speed.bits_per_second().div_ceil(1_000_000_000);
    let counted = gigabits.max(SLOWEST);
    // 2.16 a metre, rounded down: 216 / 10,000 a centimetre.
    let cable = cm.saturating_mul(216) / 10_000;
    let fixed = 301 * counted;
    let on_cable = cable.saturating_mul(counted);
    let frame = u64::from(mtu) * 272 / 100;
    let bytes = Bytes(fixed.saturating_add(on_cable).saturating_add(frame));
    let length = Distance(cm);
    let slow = if gigabits < SLOWEST { ", the least that counts" } else { "" };
    let terms = vec![
        Term::new("delays", Amount::Bytes(fixed), format!("301 x {counted} Gbit/s{slow}")),
        Term::new(
            "cable",
            Amount::Bytes(on_cable),
            format!("floor(2.16 x {length}) = {cable}, x {counted} Gbit/s"),
        ),
        Term::new("MTU", Amount::Bytes(frame), format!("floor(2.72 x {mtu} B)")),
    ];
    let window = u64::from(mtu.max(LEAST_WINDOW));
    let how = "pause at buffer - need, resume so far below";
    let beside = vec![Term::new("mlx5 window", Amount::Bytes(window), how)];
    let cells = bytes_to_cells(bytes.0, given.cell);
    Need { formula: Formula::Mlx5, terms, bytes, cells, beside }
}
