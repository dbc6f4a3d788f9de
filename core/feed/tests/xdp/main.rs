//! Books from NYSE's Integrated Feed.
#![allow(clippy::unwrap_used)]

mod arbitration;
mod day;
mod stories;
mod support;
mod twin;
