//! Runs [`tickpath_fuzz::soup_server`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::soup_server(data));
