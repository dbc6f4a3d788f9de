//! Runs [`tickpath_fuzz::segment`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::segment(data));
