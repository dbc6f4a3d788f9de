//! Runs [`tickpath_fuzz::itch`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::itch(data));
