//! Runs [`tickpath_fuzz::compressed`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::compressed(data));
