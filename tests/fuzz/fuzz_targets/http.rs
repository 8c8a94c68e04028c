//! [`holdfast_fuzz::http`] under libFuzzer.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::http::target(data));
