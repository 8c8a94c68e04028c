//! Export and import are each other's inverse for what both sides can say; the rest is named; and
//! no input makes either panic.
// A test fails by panicking, in its own functions too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod generated;
mod mutated;
mod shipped;
