//! Runs [`tickpath_fuzz::web`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::web(data));
