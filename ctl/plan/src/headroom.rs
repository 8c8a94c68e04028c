//! Headroom formulas (facts of SPEC 10): what may be in flight once XOFF is decided, term by term.
//!
//! [`Formula::need`] names every term; [`cpu`], [`ac5p`] and [`exact`] are the bare formulas of the
//! same, for what else is computed by them.

mod ac5p;
mod cpu;
mod exact;
mod given;
mod ieee;
mod mlx5;
mod response;
mod sonic;
mod term;

pub use ac5p::{ac5p, FLAT_FROM_MTU};
pub use cpu::{cpu, CpuTerms};
pub use exact::{exact, exact_behind_a_frame, holds_above, REVERSE_FRAME};
pub use given::{t_loop, Given};
pub use holdfast_api::profile_doc::Share;
pub use term::{Amount, Need, Term};

use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::FormulaKind;
use holdfast_core::units::{Bytes, CellSize, Cells};

/// A PFC frame with its FCS.
const PFC_FRAME: Bytes = Bytes(64);

/// The formulas of `holdfast plan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Formula {
    /// The family's rule of thumb: rate x loop, two frames and a PFC frame.
    Ac5p,
    /// Frame by frame, from the smallest lossless frame.
    Exact,
    /// A switch on a CPU: what waits in its RX ring lands in Headroom too.
    Cpu,
    /// The delay value of 802.1Qbb annex O, in bit times.
    Ieee,
    /// What SONiC computes for a port of a Mellanox ASIC.
    Sonic,
    /// What the mlx5 driver computes for a NIC's receive buffer.
    Mlx5,
}

impl Formula {
    /// All of them, in the order of the comparison.
    pub const ALL: [Self; 6] =
        [Self::Ac5p, Self::Exact, Self::Cpu, Self::Ieee, Self::Sonic, Self::Mlx5];

    /// The name in documents and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ac5p => "ac5p",
            Self::Exact => "exact",
            Self::Cpu => "cpu",
            Self::Ieee => "ieee",
            Self::Sonic => "sonic",
            Self::Mlx5 => "mlx5",
        }
    }

    /// What the formula can't do without and isn't given; `None` if it has all.
    pub const fn lacks(self, given: &Given) -> Option<&'static str> {
        match self {
            Self::Cpu => None,
            Self::Ac5p | Self::Exact if given.t_loop.is_none() && given.cable.is_none() => {
                Some("the time of the loop, or the cable")
            }
            Self::Ieee | Self::Sonic | Self::Mlx5 if given.cable.is_none() => Some("the cable"),
            Self::Ac5p | Self::Exact | Self::Ieee | Self::Sonic | Self::Mlx5 => None,
        }
    }

    /// What may be in flight under these conditions.
    ///
    /// # Errors
    /// A [`Finding`], where something isn't given, a peer's response time at this speed isn't
    /// known (`ieee`, `sonic`), or the need is beyond what a PG can hold.
    pub fn need(self, given: &Given) -> Result<Need, Finding> {
        if let Some(what) = self.lacks(given) {
            let message = format!("formula {} needs {what}", self.name());
            return Err(Finding::new("formula", message, "give --loop 3us or --cable 40m"));
        }
        let need = match self {
            Self::Ac5p => ac5p::need(given),
            Self::Exact => exact::need(given),
            Self::Cpu => cpu::need(given),
            Self::Ieee => ieee::need(given)?,
            Self::Sonic => sonic::need(given)?,
            Self::Mlx5 => mlx5::need(given),
        };
        Ok(need)
    }
}

impl From<FormulaKind> for Formula {
    fn from(kind: FormulaKind) -> Self {
        match kind {
            FormulaKind::Ac5p => Self::Ac5p,
            FormulaKind::Exact => Self::Exact,
            FormulaKind::Cpu => Self::Cpu,
            FormulaKind::Ieee => Self::Ieee,
            FormulaKind::Sonic => Self::Sonic,
            FormulaKind::Mlx5 => Self::Mlx5,
        }
    }
}

const fn bytes_to_cells(bytes: u64, cell: CellSize) -> Cells {
    Bytes(bytes).to_cells(cell)
}

#[cfg(test)]
mod tests;
