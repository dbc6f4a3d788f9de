//! Runs [`tickpath_fuzz::fix_session`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::fix_session(data));
