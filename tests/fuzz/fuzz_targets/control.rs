//! [`holdfast_fuzz::control`] under libFuzzer.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::control::target(data));
