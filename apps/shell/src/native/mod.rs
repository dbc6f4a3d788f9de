//! The native venue behind the shell's commands: OUCH 5.0 for orders, drop copies for what became of them, GLIMPSE and the
//! lines for the market.
//!
//! The shell asks in the words of Deribit's methods, and [`NativeLink`] answers in the same messages: so each command is
//! written once, and a script reads the same results from both venues. What the native venue has not is refused in words.
//!
//! Orders, trades and positions come from the drop copies alone, read from the first one: they hold whoever entered the
//! orders, and whenever. A command that needs them asks the venue's log for a place first (an account query), and answers
//! once the copies have come as far: so it never misses what the venue had done when it was asked.

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
