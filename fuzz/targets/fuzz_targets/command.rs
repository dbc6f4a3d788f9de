//! Runs [`tickpath_fuzz::command`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::command(data));
