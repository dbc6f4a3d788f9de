//! Runs [`tickpath_fuzz::replay_file`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::replay_file(data));
