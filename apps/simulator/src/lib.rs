//! The native venue, its clients, feed handlers and traders in one thread under virtual time, with faults and
//! independent checkers. The Deribit front end and the gateway are not part of it.
//!
//! A run fills [`Observed`]: the bytes on the wires at both ends, the contents of the disk, and the venue's
//! final state. [`check`] returns the violated guarantees.

mod additions;
mod checks;
mod client;
mod copies;
mod faults;
mod feed;
mod flow;
mod hosts;
mod net;
mod node;
mod observed;
mod profile;
mod recovery;
mod simulation;
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
pub use tickpath_simnet::HostFailure;
