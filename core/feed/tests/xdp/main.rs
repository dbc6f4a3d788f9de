//! Tests of the books built from NYSE's Integrated Feed.
#![allow(clippy::unwrap_used)]

mod arbitration;
mod day;
mod reference;
mod scenarios;
mod support;
