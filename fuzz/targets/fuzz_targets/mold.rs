//! Runs [`tickpath_fuzz::mold`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::mold(data));
