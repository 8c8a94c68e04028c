//! Amounts of a document in cells, and what percentages are of.

use holdfast_api::amount::CellAmount;
use holdfast_api::doc::Finding;
use holdfast_core::profile::Limit;
use holdfast_core::units::{Alpha, CellSize, Cells};

/// Where one borrower alone settles: the static limit, or alpha * size / (1 + alpha) (AC5P).
/// A pool can't lend more than it has.
pub(crate) fn q_limit(limit: Limit, pool: Cells) -> Cells {
    match limit {
        Limit::Static(cells) => cells.min(pool),
        Limit::Dynamic(alpha) => {
            let size = u64::from(pool.0);
            let shift = u32::from(alpha.log2().unsigned_abs());
            let settled = if alpha.log2() >= 0 {
                (size << shift) / (1 + (1 << shift))
            } else {
                size / ((1 << shift) + 1)
            };
            // It is less than the pool, which fits.
            Cells(u32::try_from(settled).unwrap_or(u32::MAX))
        }
    }
}

/// A limit from the two keys that exclude each other; `None` if neither is there.
pub(crate) fn limit(
    key: &str,
    fixed: Option<CellAmount>,
    alpha: Option<i8>,
    cell: CellSize,
) -> Result<Option<Limit>, Finding> {
    match (fixed, alpha) {
        (Some(_), Some(_)) => Err(Finding::new(
            format!("{key}.limit"),
            "limit and alpha exclude each other",
            "remove one of the two",
        )),
        (Some(amount), None) => cells(&format!("{key}.limit"), amount, cell, None)
            .map(|cells| Some(Limit::Static(cells))),
        (None, Some(log2)) => {
            let finding = || {
                let key = format!("{key}.alpha");
                let fix = "use the exponent n of alpha = 2^n";
                Finding::new(key, "out of range", fix).numbers(log2, "-8..7")
            };
            Alpha::new(log2).map(|alpha| Some(Limit::Dynamic(alpha))).ok_or_else(finding)
        }
        (None, None) => Ok(None),
    }
}

/// An amount in cells; percentages are of `of`, where there is such a thing.
pub(crate) fn cells(
    key: &str,
    amount: CellAmount,
    cell: CellSize,
    of: Option<Cells>,
) -> Result<Cells, Finding> {
    amount.to_cells(cell, of).ok_or_else(|| {
        let message = format!("{amount} has no Q_limit to be of");
        Finding::new(key, message, "write cells, bytes or KiB")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_limit_is_where_one_pg_settles() {
        let dynamic = |log2| Limit::Dynamic(Alpha::new(log2).unwrap());
        // The numbers of AC5P.md for its 23,437 cells.
        assert_eq!(q_limit(dynamic(0), Cells(23_437)), Cells(11_718));
        assert_eq!(q_limit(dynamic(-2), Cells(23_437)), Cells(4_687));
        assert_eq!(q_limit(dynamic(-3), Cells(23_437)), Cells(2_604));
        assert_eq!(q_limit(dynamic(1), Cells(3_000)), Cells(2_000));
        assert_eq!(q_limit(Limit::Static(Cells(500)), Cells(400)), Cells(400));
    }
}
