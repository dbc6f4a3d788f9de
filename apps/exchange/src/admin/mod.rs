//! Commands to a running venue.

mod client;
mod drain;
mod protocol;
mod socket;

pub use client::{AdminAnswer, AdminClient, AdminCommand, AdminOutcome};
pub(crate) use client::{AdminPort, channel};
pub use drain::DrainWatch;
pub use socket::{AdminError, AdminSocket};
