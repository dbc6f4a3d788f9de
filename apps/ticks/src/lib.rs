//! Ticks over TCP, as specified in `docs/protocols/ticks.md`.
//!
//! | module | content |
//! |---|---|
//! | [`server`] | generates ticks and sends them to any number of subscribers |
//! | [`client`] | connects, subscribes, verifies, fills the symbol cache, and reconnects |
//! | [`view`] | shows a client on a terminal or as lines |
//! | [`watch`] | runs a client and shows it until the user stops it |

pub mod client;
pub mod server;
pub mod view;
pub mod watch;
