//! Runs [`tickpath_fuzz::journal`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::journal(data));
