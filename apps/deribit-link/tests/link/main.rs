//! A link to the venue's own front, with each fault that the front can inject, and with name lookups.
#![allow(clippy::unwrap_used)]

mod faults;
mod fix;
mod names;
mod story;
mod trader;
