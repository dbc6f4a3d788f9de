//! Tests of the front without sockets.
#![allow(clippy::unwrap_used)]

mod access;
mod bounds;
mod compatibility;
mod config;
mod edits;
mod faults;
mod fix;
mod fix_client;
mod fix_details;
mod fix_dictionary;
mod fix_faults;
mod fix_hostile;
mod fix_limits;
mod fix_quotes;
mod fix_session;
mod fix_settlement;
mod hostile;
mod in_order;
mod linked;
mod loss;
mod margin;
mod market;
mod money_terms;
mod options;
mod params;
mod protection;
mod settlement;
mod shown;
mod support;
mod trading;
mod triggers;
