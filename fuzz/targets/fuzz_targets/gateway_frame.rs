//! Runs [`tickpath_fuzz::gateway_frame`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::gateway_frame(data));
