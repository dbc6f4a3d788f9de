//! Books from NYSE's Integrated Feed.
#![allow(clippy::unwrap_used)]

mod arbitration;
mod day;
mod scenarios;
mod support;
mod reference;
