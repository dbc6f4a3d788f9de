//! Commands to a running venue.

mod client;
mod drain;
mod parse;
mod protocol;
mod refusal;
mod reload;
mod socket;

pub use client::{AdminAnswer, AdminClient, AdminCommand, AdminOutcome};
pub(crate) use client::{AdminPort, UserBasis, Work, channel};
pub use drain::DrainWatch;
pub use refusal::{AdminRefusal, LimitsChange};
pub use socket::AdminSocket;
