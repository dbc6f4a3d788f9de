//! Runs [`tickpath_fuzz::glimpse`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::glimpse(data));
