//! Runs [`tickpath_fuzz::itch_books`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tickpath_fuzz::itch_books(data));
