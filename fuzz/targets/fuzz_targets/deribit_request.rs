//! Runs [`tickpath_fuzz::deribit_request`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::deribit_request(data));
