//! Waiting for something to be so, with an end.

use crate::LabError;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often is looked.
const LOOK: Duration = Duration::from_millis(5);

/// Looks until `ready` gives something; `what` says what didn't happen if it never does.
///
/// # Errors
/// What `ready` failed with, or [`LabError::Late`].
pub fn wait_for<T>(
    what: &str,
    within: Duration,
    mut ready: impl FnMut() -> Result<Option<T>, LabError>,
) -> Result<T, LabError> {
    let end = Instant::now() + within;
    loop {
        if let Some(value) = ready()? {
            return Ok(value);
        }
        if Instant::now() >= end {
            return Err(LabError::Late { what: what.to_owned(), within });
        }
        sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_with_the_value_or_says_what_is_late() {
        let mut looks = 0;
        let value = wait_for("third look", Duration::from_secs(10), || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        });
        assert_eq!(value.unwrap(), 3);
        let late = wait_for::<()>("never", Duration::ZERO, || Ok(None));
        assert_eq!(late.unwrap_err().to_string(), "after 0ns: never");
    }
}
