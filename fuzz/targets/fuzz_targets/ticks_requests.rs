//! Runs [`tickpath_fuzz::ticks_requests`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::ticks_requests(data));
