//! Runs [`tickpath_fuzz::lobster_book`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::lobster_book(data));
