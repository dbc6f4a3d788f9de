//! Runs [`tickpath_fuzz::iex_recovery`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::iex_recovery(data));
