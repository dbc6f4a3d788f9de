//! Runs [`tickpath_fuzz::fix_door`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::fix_door(data));
