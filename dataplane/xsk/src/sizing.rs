//! How many chunks a switch needs, and who gets them (SPEC 3.1).

use crate::error::XskError;
use holdfast_core::frame::MAX_CHUNKS;
use holdfast_core::ids::MAX_PORTS;
use holdfast_core::io::BURST;
use holdfast_core::units::Cells;
use std::ops::Range;

/// TX slots and chunks that each port keeps for MAC control frames. A port has at most one PFC
/// frame to send for each change of its pause level and kicks it at once, so a few are enough.
pub const CONTROL_SLOTS: u32 = 16;
/// Chunks for the MAC control frames of all ports there can be.
pub const CONTROL_CHUNKS: u32 = CONTROL_SLOTS * MAX_PORTS as u32;

const LEAST_RING: u32 = 64;
const MOST_RING: u32 = 32_768;
/// Entries of every fill and completion ring: their size belongs to the memory's registration,
/// which is made before any port is known.
pub(crate) const SHARED_RING: u32 = MOST_RING;

/// Entries of a port's rings: powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    /// RX ring of each queue, descriptors: the stall that is survived (SPEC 4.3).
    pub rx: u32,
    /// Fill ring of each queue, at least as large as the RX ring.
    pub fill: u32,
    /// TX ring of the port, descriptors.
    pub tx: u32,
    /// Completion ring of the port, at least as large as the TX ring.
    pub completion: u32,
}

impl Default for RingSizes {
    fn default() -> Self {
        Self { rx: 4096, fill: 4096, tx: 2048, completion: 2048 }
    }
}

impl RingSizes {
    /// Checks sizes and their relations.
    ///
    /// # Errors
    /// [`XskError::RingSize`] for the first ring that isn't a power of two in range, or is
    /// smaller than the ring that feeds it.
    pub fn check(&self, port: &str) -> Result<(), XskError> {
        let rings = [
            ("RX", self.rx, LEAST_RING),
            ("fill", self.fill, self.rx),
            ("TX", self.tx, LEAST_RING.max(2 * CONTROL_SLOTS)),
            ("completion", self.completion, self.tx),
        ];
        for (ring, size, least) in rings {
            if !size.is_power_of_two() || size < least || size > MOST_RING {
                let port = port.to_owned();
                return Err(XskError::RingSize { port, ring, size, least, most: MOST_RING });
            }
        }
        Ok(())
    }
}

/// What one port needs chunks for.
#[derive(Clone, Copy, Debug)]
pub struct PortNeed {
    /// RX queues that are bound.
    pub queues: u32,
    /// Its rings.
    pub rings: RingSizes,
}

/// Chunks that data frames need: one for each cell, because a frame has at least one cell for
/// each chunk it takes; the flood budget; and for each RX queue a full RX ring and the burst in
/// hand. Frames in TX rings are still charged, so their cells count for them; chunks of MAC
/// control frames come on top in [`crate::Memory::new`].
pub fn chunks_needed(cells: Cells, flood_limit: Cells, ports: &[PortNeed]) -> u64 {
    let rings = ports.iter().map(|p| u64::from(p.queues) * (u64::from(p.rings.rx) + BURST as u64));
    u64::from(cells.0) + u64::from(flood_limit.0) + rings.sum::<u64>()
}

/// How many chunks are at home at each worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    homes: Vec<u32>,
}

impl Layout {
    /// `homes[w]` chunks for worker `w`.
    ///
    /// # Errors
    /// [`XskError::Layout`] without workers, with a worker without chunks, or with more chunks
    /// than a descriptor can name.
    pub fn new(homes: Vec<u32>) -> Result<Self, XskError> {
        let limit = MAX_CHUNKS - CONTROL_CHUNKS;
        let chunks: u64 = homes.iter().copied().map(u64::from).sum();
        if homes.is_empty() || homes.contains(&0) || chunks > u64::from(limit) {
            return Err(XskError::Layout { chunks, workers: homes.len(), limit });
        }
        Ok(Self { homes })
    }

    /// `chunks` in all, dealt out evenly; the first workers get what doesn't divide.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn even(chunks: u32, workers: usize) -> Result<Self, XskError> {
        let share = |w: usize| {
            let n = workers as u32;
            chunks / n + u32::from((w as u32) < chunks % n)
        };
        Self::new((0..workers).map(share).collect())
    }

    /// Chunks of all workers.
    pub fn chunks(&self) -> u32 {
        self.homes.iter().sum()
    }

    /// Checks that there are enough, at boot and before a port is added.
    ///
    /// # Errors
    /// [`XskError::MemoryShort`] with both numbers.
    pub fn check(&self, need: u64) -> Result<(), XskError> {
        let have = self.chunks();
        if u64::from(have) < need {
            return Err(XskError::MemoryShort { have, need });
        }
        Ok(())
    }

    /// The chunk numbers at home at each worker.
    pub(crate) fn homes(&self) -> Vec<Range<u32>> {
        let mut start = 0;
        let range = |&n: &u32| {
            let home = start..start + n;
            start += n;
            home
        };
        self.homes.iter().map(range).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_every_ring_and_the_flood_budget_have_chunks() {
        let rings = RingSizes { rx: 1024, fill: 1024, tx: 512, completion: 512 };
        let ports = [PortNeed { queues: 1, rings }, PortNeed { queues: 2, rings }];
        let need = chunks_needed(Cells(10_000), Cells(500), &ports);
        assert_eq!(need, 10_000 + 500 + 3 * (1024 + 64));
        let layout = Layout::even(need as u32, 3).unwrap();
        assert!(layout.check(need).is_ok());
        assert!(matches!(
            layout.check(need + 1),
            Err(XskError::MemoryShort { have, need: n }) if u64::from(have) + 1 == n
        ));
    }

    #[test]
    fn homes_are_disjoint_and_complete() {
        let homes = Layout::even(100, 3).unwrap().homes();
        assert_eq!(homes, vec![0..34, 34..67, 67..100]);
    }

    #[test]
    fn impossible_layouts_are_refused() {
        assert!(Layout::even(2, 3).is_err());
        assert!(Layout::new(vec![]).is_err());
        assert!(Layout::new(vec![MAX_CHUNKS]).is_err());
    }

    #[test]
    fn rings_must_fit_each_other() {
        let good = RingSizes::default();
        assert!(good.check("p").is_ok());
        let wrong = [
            RingSizes { rx: 1000, ..good },
            RingSizes { fill: 2048, ..good },
            RingSizes { tx: 16, ..good },
            RingSizes { completion: 1024, ..good },
            RingSizes { rx: 65_536, fill: 65_536, ..good },
        ];
        for sizes in wrong {
            assert!(matches!(sizes.check("p"), Err(XskError::RingSize { .. })), "{sizes:?}");
        }
    }
}
