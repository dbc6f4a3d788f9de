//! Runs [`tickpath_fuzz::binaryfile`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::binaryfile(data));
