//! Runs [`tickpath_fuzz::dbn`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::dbn(data));
