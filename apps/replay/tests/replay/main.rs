//! Tests that replay whole files.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod at_once;
mod captured;
mod captured_exports;
mod captured_iex;
mod captured_out_of_band;
mod captured_xdp;
mod damaged;
mod databento;
mod exported;
mod options;
mod recorded;
mod support;
