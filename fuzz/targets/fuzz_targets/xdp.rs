//! Runs [`tickpath_fuzz::xdp`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::xdp(data));
