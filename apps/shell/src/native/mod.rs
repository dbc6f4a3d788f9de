//! The native venue behind the shell's commands: OUCH 5.0 for orders, drop copies for their outcomes, GLIMPSE
//! and the multicast feed for the market.
//!
//! The shell issues Deribit's methods, and [`NativeLink`] answers with the same messages: each command is
//! written once, and scripts read the same results from both. Missing functions are refused with a message.
//!
//! Orders, trades and positions come only from the drop copies, read from the first one: these cover all
//! programs and earlier times. A command that needs them first marks a position in the venue's log by an
//! account query, and answers once the copies have reached it. So it covers all earlier events.

mod account;
mod answers;
mod board;
mod link;
mod live;
mod plan;
mod request;
mod settings;
mod snapshot;
mod soup;
mod words;

pub use link::NativeLink;
pub use settings::{NativeConfig, NativeSettings, NativeUrl};
