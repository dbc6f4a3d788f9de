//! A link at the venue's own front, with each fault that the front can make, and names that are looked up.
#![allow(clippy::unwrap_used)]

mod faults;
mod fix;
mod names;
mod story;
mod trader;
