//! Runs [`tickpath_fuzz::packets`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::packets(data));
