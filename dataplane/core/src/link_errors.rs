//! Errors of a port's link, as the kernel counts them for its netdev (`IFLA_STATS64`).

/// What went wrong on a link; named after the kernel's `struct rtnl_link_stats64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LinkError {
    /// Received with a wrong checksum.
    RxCrc,
    /// Received with bits that make no whole byte.
    RxFrame,
    /// Received too short or too long.
    RxLength,
    /// Lost in the NIC's receive FIFO.
    RxFifo,
    /// Lost because the NIC's receive ring was full.
    RxOver,
    /// Lost because the host gave the NIC no buffer in time.
    RxMissed,
    /// Received with another error.
    RxOther,
    /// Not sent: given up.
    TxAborted,
    /// Not sent: no carrier.
    TxCarrier,
    /// Not sent: the NIC's transmit FIFO ran dry.
    TxFifo,
    /// Not sent: no heartbeat.
    TxHeartbeat,
    /// Not sent: a late collision.
    TxWindow,
    /// Not sent for another reason.
    TxOther,
}

impl LinkError {
    /// How many kinds there are.
    pub const COUNT: usize = Self::ALL.len();

    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 13] = [
        Self::RxCrc,
        Self::RxFrame,
        Self::RxLength,
        Self::RxFifo,
        Self::RxOver,
        Self::RxMissed,
        Self::RxOther,
        Self::TxAborted,
        Self::TxCarrier,
        Self::TxFifo,
        Self::TxHeartbeat,
        Self::TxWindow,
        Self::TxOther,
    ];

    /// The name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RxCrc => "rx_crc",
            Self::RxFrame => "rx_frame",
            Self::RxLength => "rx_length",
            Self::RxFifo => "rx_fifo",
            Self::RxOver => "rx_over",
            Self::RxMissed => "rx_missed",
            Self::RxOther => "rx_other",
            Self::TxAborted => "tx_aborted",
            Self::TxCarrier => "tx_carrier",
            Self::TxFifo => "tx_fifo",
            Self::TxHeartbeat => "tx_heartbeat",
            Self::TxWindow => "tx_window",
            Self::TxOther => "tx_other",
        }
    }

    /// Those that the kernel's totals, `rx_errors` and `tx_errors`, have in them.
    const IN_RX_TOTAL: [Self; 3] = [Self::RxCrc, Self::RxFrame, Self::RxLength];
    const IN_TX_TOTAL: [Self; 5] =
        [Self::TxAborted, Self::TxCarrier, Self::TxFifo, Self::TxHeartbeat, Self::TxWindow];
}

/// What the kernel says at one time, in the order of [`LinkError::ALL`]; at the places of `RxOther`
/// and `TxOther` stand its totals, `rx_errors` and `tx_errors`.
pub type KernelErrors = [u64; LinkError::COUNT];

/// Errors of one link since its port was opened: they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkErrors {
    counts: [u64; LinkError::COUNT],
    last: KernelErrors,
}

impl LinkErrors {
    /// None yet; the kernel says `now` when the port is opened.
    pub const fn since(now: KernelErrors) -> Self {
        Self { counts: [0; LinkError::COUNT], last: now }
    }

    /// Takes over what the kernel says now. Where that is less than before, the driver has begun
    /// anew at 0.
    pub fn follow(&mut self, now: KernelErrors) {
        let mut new = now;
        for (new, last) in new.iter_mut().zip(self.last) {
            *new = if *new >= last { *new - last } else { *new };
        }
        let sum = |kinds: &[LinkError]| -> u64 {
            kinds.iter().fold(0, |sum, kind| new[*kind as usize].saturating_add(sum))
        };
        let (rx, tx) = (sum(&LinkError::IN_RX_TOTAL), sum(&LinkError::IN_TX_TOTAL));
        for (total, known) in [(LinkError::RxOther, rx), (LinkError::TxOther, tx)] {
            new[total as usize] = new[total as usize].saturating_sub(known);
        }
        for (count, new) in self.counts.iter_mut().zip(new) {
            *count = count.saturating_add(new);
        }
        self.last = now;
    }

    /// By kind, in the order of [`LinkError::ALL`].
    pub const fn counts(&self) -> &[u64; LinkError::COUNT] {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reading(values: &[(LinkError, u64)]) -> KernelErrors {
        let mut reading = [0; LinkError::COUNT];
        values.iter().for_each(|(kind, value)| reading[*kind as usize] = *value);
        reading
    }

    #[test]
    fn errors_count_from_the_opening_and_on_after_a_reload() {
        use LinkError::{RxCrc, RxMissed, RxOther, TxCarrier, TxOther};
        let mut errors = LinkErrors::since(reading(&[(RxCrc, 100), (RxOther, 100)]));
        assert_eq!(*errors.counts(), reading(&[]));
        errors.follow(reading(&[(RxCrc, 103), (RxOther, 105), (RxMissed, 4)]));
        assert_eq!(*errors.counts(), reading(&[(RxCrc, 3), (RxOther, 2), (RxMissed, 4)]));
        // The driver was loaded anew: its counters began at 0.
        errors.follow(reading(&[(RxCrc, 1), (RxOther, 1), (TxCarrier, 2), (TxOther, 2)]));
        let all = [(RxCrc, 4), (RxOther, 2), (RxMissed, 4), (TxCarrier, 2)];
        assert_eq!(*errors.counts(), reading(&all));
    }

    #[test]
    fn kinds_have_their_places_and_names() {
        for (place, kind) in LinkError::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{}", kind.name());
        }
        let names: std::collections::BTreeSet<_> = LinkError::ALL.map(LinkError::name).into();
        assert_eq!(names.len(), LinkError::COUNT);
    }

    proptest! {
        /// Whatever a driver says, a counter never goes back.
        #[test]
        fn no_count_goes_back(readings: Vec<[u64; LinkError::COUNT]>) {
            let mut errors = LinkErrors::since([7; LinkError::COUNT]);
            for reading in readings {
                let before = *errors.counts();
                errors.follow(reading);
                prop_assert!(before.iter().zip(errors.counts()).all(|(old, new)| new >= old));
            }
        }
    }
}
