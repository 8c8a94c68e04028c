//! [`holdfast_fuzz::state`] under libFuzzer.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::state::target(data));
