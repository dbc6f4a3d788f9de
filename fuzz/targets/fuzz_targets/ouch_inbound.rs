//! Runs [`tickpath_fuzz::ouch_inbound`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::ouch_inbound(data));
