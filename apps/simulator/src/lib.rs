//! The native venue, its clients, feed handlers and traders in one thread under virtual time, with faults, and checkers that
//! stand outside them. The Deribit front end and the gateway are not part of it.
//!
//! A run fills [`Observed`]: what went over the wires at both ends, what was found on the disk, what the venue came to.
//! [`check`] says what of it breaks a promise.

mod additions;
mod checks;
mod client;
mod copies;
mod faults;
mod feed;
mod flow;
mod hosts;
mod net;
mod observed;
mod profile;
mod recovery;
mod simulation;
mod site;
mod strategy;
mod trader;
mod trader_profile;
mod venue;
mod wiretap;

pub use checks::{Violation, check};
pub use faults::FaultLevel;
pub use net::SimNetwork;
pub use observed::*;
pub use simulation::{Outcome, Simulation};
pub use tickpath_simnet::Death;
