//! How long a peer may take to stop once a pause has arrived (802.3 31B.3.7).

use holdfast_api::amount::{rate_text, Rate};
use holdfast_api::doc::Finding;
use holdfast_core::units::{BitRate, QUANTUM_BITS};

/// Speed in Mbit/s and quanta.
const QUANTA: [(u64, u64); 10] = [
    (100, 1),
    (1_000, 2),
    (10_000, 67),
    (25_000, 80),
    (40_000, 118),
    (50_000, 147),
    (100_000, 394),
    (200_000, 453),
    (400_000, 905),
    (800_000, 905),
];

/// Quanta at that speed.
///
/// # Errors
/// [`Finding`] with the speeds that are known.
pub(super) fn quanta(speed: BitRate) -> Result<u64, Finding> {
    let bits = speed.bits_per_second();
    let found = QUANTA.iter().find(|(mbit, _)| mbit * 1_000_000 == bits);
    found.map(|(_, quanta)| *quanta).ok_or_else(|| {
        let known: Vec<String> =
            QUANTA.iter().map(|(mbit, _)| rate_text(mbit * 1_000_000)).collect();
        let message = "the time a peer may take to obey isn't known at this speed";
        let finding = Finding::new("speed", message, "use formula ac5p or exact, or a known speed");
        finding.numbers(Rate(speed), known.join(", "))
    })
}

/// Bytes that one quantum holds.
pub(super) const QUANTUM_BYTES: u64 = QUANTUM_BITS / 8;
