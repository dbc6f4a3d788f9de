//! Runs [`tickpath_fuzz::deribit_inbound`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::deribit_inbound(data));
