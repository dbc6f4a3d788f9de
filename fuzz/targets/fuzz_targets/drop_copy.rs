//! Runs [`tickpath_fuzz::drop_copy`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::drop_copy(data));
