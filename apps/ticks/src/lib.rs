//! Ticks over TCP, as specified in `docs/protocols/ticks.md`.
//!
//! | module | content |
//! |---|---|
//! | [`server`] | generates ticks and sends them to any number of subscribers |
//! | [`client`] | connects, subscribes, verifies, fills the symbol cache, and reconnects |
//! | [`view`] | shows a client's data on a full screen or as lines of text |
//! | [`watch`] | runs a client and shows its data until the user stops it |

pub mod client;
pub mod server;
pub mod view;
pub mod watch;
