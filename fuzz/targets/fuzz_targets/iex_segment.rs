//! Runs [`tickpath_fuzz::iex_segment`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::iex_segment(data));
