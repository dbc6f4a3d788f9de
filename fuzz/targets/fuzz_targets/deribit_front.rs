//! Runs [`tickpath_fuzz::deribit_front`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::deribit_front(data));
