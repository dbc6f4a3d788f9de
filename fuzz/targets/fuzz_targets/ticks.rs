//! Runs [`tickpath_fuzz::ticks`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::ticks(data));
