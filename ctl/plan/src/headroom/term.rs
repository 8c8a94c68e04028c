//! A formula's result with the terms it is made of.

use super::Formula;
use holdfast_core::units::{Bytes, Cells};
use std::fmt;

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Bytes of a formula that is computed in floating point.
    RealBytes(f64),
    /// MMU cells.
    Cells(u64),
    /// Bit times at the port's speed.
    BitTimes(u64),
    /// Frames.
    Frames(u64),
    /// A plain factor.
    Factor(f64),
}

impl Amount {
    /// The unit's name; empty for a factor.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Bytes(_) | Self::RealBytes(_) => "B",
            Self::Cells(_) => "cells",
            Self::BitTimes(_) => "bit times",
            Self::Frames(_) => "frames",
            Self::Factor(_) => "",
        }
    }

    /// The number, where it is a whole one.
    pub const fn whole(self) -> Option<u64> {
        match self {
            Self::Bytes(n) | Self::Cells(n) | Self::BitTimes(n) | Self::Frames(n) => Some(n),
            Self::RealBytes(_) | Self::Factor(_) => None,
        }
    }

    /// The number, where it isn't a whole one.
    pub const fn real(self) -> Option<f64> {
        match self {
            Self::RealBytes(x) | Self::Factor(x) => Some(x),
            Self::Bytes(_) | Self::Cells(_) | Self::BitTimes(_) | Self::Frames(_) => None,
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Factor(x) => write!(f, "x {x}"),
            Self::RealBytes(x) => write!(f, "{x:.1} B"),
            Self::Bytes(n) | Self::Cells(n) | Self::BitTimes(n) | Self::Frames(n) => {
                write!(f, "{n} {}", self.unit())
            }
        }
    }
}

/// One term of a formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// What it is.
    pub name: &'static str,
    /// How much.
    pub amount: Amount,
    /// Where the number comes from.
    pub how: String,
}

impl Term {
    pub(super) fn new(name: &'static str, amount: Amount, how: impl Into<String>) -> Self {
        Self { name, amount, how: how.into() }
    }
}

/// What a formula asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// Which formula.
    pub formula: Formula,
    /// What it is made of.
    pub terms: Vec<Term>,
    /// The need in bytes.
    pub bytes: Bytes,
    /// The need in cells, rounded up.
    pub cells: Cells,
    /// What the formula says besides: no part of the need.
    pub beside: Vec<Term>,
}
