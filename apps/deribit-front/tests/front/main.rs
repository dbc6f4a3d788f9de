//! The front without sockets: what clients ask and are told.
#![allow(clippy::unwrap_used)]

mod config;
mod fix;
mod hostile;
mod market;
mod support;
mod trading;
mod triggers;
