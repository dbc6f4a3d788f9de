//! Ticks over TCP, as `docs/protocols/ticks.md` has them.
//!
//! | module | what it is |
//! |---|---|
//! | [`server`] | makes ticks and sends them to any number of subscribers |

pub mod server;
