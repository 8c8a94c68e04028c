//! The arithmetic of SPEC 3.2 and 3.3: limit, XOFF_eff, window and R. Pure functions.

use crate::profile::{Limit, PgSpec, Xoff, Xon};
use crate::units::{Cells, MAX_SEGMENT_CELLS};

/// The levels of one PG at one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The limit of now on Service.
    pub limit: Cells,
    /// XOFF_eff: where the PG pauses.
    pub xoff: Cells,
    /// R: where it resumes.
    pub resume: Cells,
}

impl Levels {
    /// The levels while `free` cells of the pool are free.
    #[inline]
    pub fn at(spec: &PgSpec, free: Cells) -> Self {
        Self::of_limit(spec, limit(spec.limit, free))
    }

    #[inline]
    fn of_limit(spec: &PgSpec, limit: Cells) -> Self {
        let xoff = effective_xoff(spec.xoff, limit);
        Self { limit, xoff, resume: resume(spec, xoff) }
    }

    /// Whether a charge that leaves `service` cells pauses the PG: Service >= max(XOFF_eff, 1).
    #[inline]
    pub fn pauses(&self, service: Cells) -> bool {
        service >= self.xoff.max(Cells(1))
    }
}

/// What may be borrowed while `free` cells of the pool are free: static, or alpha * free, which
/// saturates at 0 and never wraps (SPEC 3.2).
#[inline]
pub fn limit(limit: Limit, free: Cells) -> Cells {
    let cells = match limit {
        Limit::Static(cells) => cells,
        Limit::Dynamic(alpha) => alpha.of(free),
    };
    cells.min(Cells(MAX_SEGMENT_CELLS))
}

/// XOFF_eff = min(XOFF, limit now), or the limit itself (SPEC 3.3).
#[inline]
fn effective_xoff(xoff: Xoff, limit: Cells) -> Cells {
    match xoff {
        Xoff::At(cells) => cells.min(limit),
        Xoff::AtLimit => limit,
    }
}

/// window_eff: the distance from XOFF_eff down to R (SPEC 3.3).
///
/// A fixed XOFF that the limit has pushed down takes its window with it in proportion, or a limit
/// that shrinks under load would drain the PG dry. At `xoff = "limit"` it is unscaled.
#[inline]
fn effective_window(spec: &PgSpec, xoff_eff: Cells) -> Cells {
    let base = match spec.xoff {
        Xoff::At(cells) => cells,
        Xoff::AtLimit => xoff_eff,
    };
    let window = match spec.xon {
        Xon::Offset(cells) => cells,
        Xon::Absolute(level) => base.saturating_sub(level),
    };
    match spec.xoff {
        Xoff::At(xoff) if xoff_eff < xoff => {
            let scaled = u64::from(window.0) * u64::from(xoff_eff.0) / u64::from(xoff.0);
            Cells(u32::try_from(scaled).unwrap_or(u32::MAX))
        }
        Xoff::At(_) | Xoff::AtLimit => window,
    }
}

/// R = min(max(XOFF_eff - window_eff, xon_floor), XOFF_eff - 1), saturating at 0 (SPEC 3.3).
#[inline]
fn resume(spec: &PgSpec, xoff_eff: Cells) -> Cells {
    let below = xoff_eff.saturating_sub(effective_window(spec, xoff_eff));
    below.max(spec.xon_floor).min(xoff_eff.saturating_sub(Cells(1)))
}

/// The highest R that any state of a pool of this size can give: above it no pool needs reading.
#[inline]
pub(super) fn highest_resume(spec: &PgSpec, pool_size: Cells) -> Cells {
    Levels::at(spec, pool_size).resume
}

#[cfg(test)]
#[cfg(not(loom))] // Loom's atomics live in its models only.
mod tests {
    use super::*;
    use crate::ids::{PoolId, PrioritySet};
    use crate::units::Alpha;
    use proptest::prelude::*;

    fn spec(limit: Limit, xoff: Xoff, xon: Xon, floor: u32) -> PgSpec {
        PgSpec {
            lossless: true,
            guaranteed: Cells(4),
            headroom: Cells(8),
            headroom_pool: false,
            pool: PoolId::default(),
            limit,
            xoff,
            xon,
            xon_floor: Cells(floor),
            priorities: PrioritySet(8),
        }
    }

    fn levels(limit: u32, xoff: Xoff, xon: Xon, floor: u32) -> (u32, u32) {
        let of = Levels::at(&spec(Limit::Static(Cells(limit)), xoff, xon, floor), Cells::ZERO);
        (of.xoff.0, of.resume.0)
    }

    fn at(cells: u32) -> Xoff {
        Xoff::At(Cells(cells))
    }

    fn offset(cells: u32) -> Xon {
        Xon::Offset(Cells(cells))
    }

    #[test]
    fn offset_mode_resumes_below_xoff_by_xon() {
        assert_eq!(levels(20_000, at(10_000), offset(2_000), 0), (10_000, 8_000));
    }

    #[test]
    fn absolute_mode_resumes_at_xon() {
        assert_eq!(levels(20_000, at(10_000), Xon::Absolute(Cells(7_000)), 0), (10_000, 7_000));
    }

    #[test]
    fn a_lower_limit_scales_the_window_rounded_down() {
        assert_eq!(levels(5_000, at(10_000), offset(2_000), 0), (5_000, 4_000));
        // 3 * 7 / 10 = 2.1, so 2.
        assert_eq!(levels(7, at(10), offset(3), 0), (7, 5));
        // Absolute: the window is 10 - 4 = 6, and 6 * 5 / 10 = 3.
        assert_eq!(levels(5, at(10), Xon::Absolute(Cells(4)), 0), (5, 2));
    }

    #[test]
    fn xoff_at_the_limit_leaves_the_window_unscaled() {
        assert_eq!(levels(50, Xoff::AtLimit, offset(20), 0), (50, 30));
        assert_eq!(levels(15, Xoff::AtLimit, offset(20), 0), (15, 0));
        assert_eq!(levels(50, Xoff::AtLimit, Xon::Absolute(Cells(12)), 0), (50, 12));
        assert_eq!(levels(10, Xoff::AtLimit, Xon::Absolute(Cells(12)), 0), (10, 9));
    }

    #[test]
    fn the_floor_lifts_resume_but_stays_below_xoff() {
        assert_eq!(levels(100, at(40), offset(30), 25), (40, 25));
        assert_eq!(levels(20, at(40), offset(30), 25), (20, 19));
    }

    #[test]
    fn nothing_wraps_at_an_exhausted_pool() {
        assert_eq!(levels(0, at(10), offset(3), 5), (0, 0));
        assert_eq!(levels(1, at(10), offset(3), 5), (1, 0));
        assert_eq!(levels(0, Xoff::AtLimit, offset(3), 0), (0, 0));
        assert_eq!(levels(1, at(1), offset(1), 0), (1, 0));
    }

    #[test]
    fn the_first_borrowed_cell_pauses_at_a_limit_of_nothing() {
        let none = spec(Limit::Static(Cells::ZERO), at(10), offset(3), 0);
        let levels = Levels::at(&none, Cells(99));
        assert!(levels.pauses(Cells(1)) && !levels.pauses(Cells::ZERO));
    }

    fn any_spec() -> impl Strategy<Value = PgSpec> {
        let amount = 0u32..=MAX_SEGMENT_CELLS;
        let limit = prop_oneof![
            amount.clone().prop_map(|c| Limit::Static(Cells(c))),
            (-8i8..=7).prop_map(|a| Limit::Dynamic(Alpha::new(a).unwrap())),
        ];
        let xoff = prop_oneof![
            (1..=MAX_SEGMENT_CELLS).prop_map(|c| Xoff::At(Cells(c))),
            Just(Xoff::AtLimit)
        ];
        (limit, xoff, amount.clone(), any::<bool>(), amount).prop_map(
            |(limit, xoff, xon, absolute, floor)| {
                let xon = match xoff {
                    Xoff::At(at) => xon % at.0,
                    Xoff::AtLimit => xon,
                };
                let xon =
                    if absolute { Xon::Absolute(Cells(xon)) } else { Xon::Offset(Cells(xon)) };
                spec(limit, xoff, xon, floor)
            },
        )
    }

    proptest! {
        // Fault 3: thresholds saturate at 0 and never grow while usage grows.
        #[test]
        fn a_dynamic_limit_is_bounded_and_monotone(
            log2 in -8i8..=7, size in 0u32..=600, lent in 0u32..=700, more in 0u32..=100,
        ) {
            let alpha = Limit::Dynamic(Alpha::new(log2).unwrap());
            let free = Cells(size).saturating_sub(Cells(lent));
            let less = free.saturating_sub(Cells(more));
            let now = limit(alpha, free);
            let factor = 2f64.powi(i32::from(log2));
            prop_assert!(f64::from(now.0) <= factor * f64::from(free.0));
            prop_assert!(f64::from(now.0) > factor * f64::from(free.0) - 1.0);
            prop_assert!(limit(alpha, less) <= now);
        }

        #[test]
        fn levels_are_ordered_and_grow_with_the_pool(
            spec in any_spec(), free in 0u32..=MAX_SEGMENT_CELLS, more in 0u32..=5_000,
        ) {
            let low = Levels::at(&spec, Cells(free));
            let high = Levels::at(&spec, Cells(free + more));
            prop_assert!(low.xoff <= low.limit);
            prop_assert!(low.resume < low.xoff || low.resume == Cells::ZERO);
            prop_assert!(low.limit <= high.limit && low.xoff <= high.xoff);
            prop_assert!(low.resume <= high.resume, "{low:?} {high:?}");
            prop_assert!(high.resume <= highest_resume(&spec, Cells(free + more)));
        }
    }
}
