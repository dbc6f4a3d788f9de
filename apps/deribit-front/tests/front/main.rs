//! The front without sockets: what clients ask and are told.
#![allow(clippy::unwrap_used)]

mod config;
mod faults;
mod fix;
mod fix_client;
mod fix_faults;
mod fix_hostile;
mod fix_quotes;
mod fix_session;
mod fix_settlement;
mod hostile;
mod linked;
mod market;
mod protection;
mod settlement;
mod support;
mod trading;
mod triggers;
