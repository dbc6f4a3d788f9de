//! Commands to a running venue.

mod client;
mod parse;
mod protocol;
mod reload;
mod socket;

pub use client::{AddUserError, AdminClient};
pub(crate) use client::{AdminPort, NewUserContext, NewUserRequest, QueuedCommand, channel};
pub use protocol::status;
pub use socket::AdminSocket;
