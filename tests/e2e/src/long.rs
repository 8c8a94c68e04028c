//! How long a test runs: a slice of some seconds, or its full length with `HOLDFAST_LONG=1`.

use std::env;

/// Set to 1, tests of storms, floods and reloads take their full length.
pub const VARIABLE: &str = "HOLDFAST_LONG";

/// `long` where the full length is asked for, else `slice`.
pub fn slice_or<T>(slice: T, long: T) -> T {
    if env::var(VARIABLE).is_ok_and(|value| value == "1") {
        long
    } else {
        slice
    }
}
