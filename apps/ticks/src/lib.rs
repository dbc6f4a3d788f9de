//! Ticks over TCP, as `docs/protocols/ticks.md` has them.
//!
//! | module | what it is |
//! |---|---|
//! | [`server`] | makes ticks and sends them to any number of subscribers |
//! | [`client`] | connects, subscribes, checks, fills the symbol cache, and connects again |
//! | [`view`] | the picture of a client, on a terminal or as lines |
//! | [`watch`] | a client that is watched until somebody ends it |

pub mod client;
pub mod server;
pub mod view;
pub mod watch;
