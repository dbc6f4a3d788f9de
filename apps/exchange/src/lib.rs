//! The venue: order server, sequencer, matcher, publisher and retransmission server.
//!
//! ```text
//! TCP -> order server -> sequencer -> [commands] -> matcher -> [market events] -> publisher -> lines A and B
//!              ^                                       |
//!              +---------------- [responses] <---------+
//! ```
//!
//! Each box is an agent that runs wherever the placement puts it; the brackets are bounded rings.
//! [`Venue::build`] opens the sockets and gives the agents.

mod config;
mod late;
mod matcher;
mod message_store;
mod order_server;
mod publisher;
mod sequencer;
mod session_log;
mod users;
mod venue;

pub use config::{ExchangeConfig, MarketDataConfig, MatchingConfig, OrderEntryConfig, UserConfig};
pub use matcher::{FinalEngine, Matcher, MatcherCounters, Response};
pub use message_store::MessageStore;
pub use order_server::{OrderServer, OrderServerCounters};
pub use publisher::{Publisher, PublisherConfig, PublisherCounters};
pub use session_log::SessionLog;
pub use users::Credentials;
pub use venue::{Endpoints, Venue, VenueSettings, VenueTracers, VenueView};
