//! Commands to a running venue.

mod client;
mod drain;
mod parse;
mod protocol;
mod reload;
mod socket;

pub use client::{AddUserError, AdminClient};
pub(crate) use client::{AdminPort, NewUserRequest, UserBasis, Work, channel};
pub use drain::DrainWatch;
pub use socket::AdminSocket;
