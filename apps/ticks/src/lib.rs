//! Ticks over TCP, as `docs/protocols/ticks.md` has them.
//!
//! | module | what it is |
//! |---|---|
//! | [`client`] | connects, subscribes, checks, fills the symbol cache, and connects again |
//! | [`view`] | the picture of a client, on a terminal or as lines |
//! | [`watch`] | a client that is watched until somebody ends it |

pub mod client;
pub mod view;
pub mod watch;
