//! The publisher's side of a recording: its packets on multicast lines in their own time, and the services by which
//! those recover who lost some or came late.
//!
//! [`Publication::open`] looks into a capture (or a file of ITCH messages, which it frames) and opens a channel for each
//! that is in it; [`Publication::feed_config`] is the configuration of a feed handler that hears them;
//! [`Publication::run`] publishes.
//!
//! | protocol | what is served |
//! |---|---|
//! | ITCH | MoldUDP64 requests over UDP, GLIMPSE over SoupBinTCP |
//! | XDP | the request server over TCP, with channels of retransmission and refresh |
//! | IEX | gap fill over UDP and TCP, SNAP over TCP |

mod addresses;
mod channel;
mod clients;
mod iex;
mod itch;
mod options;
mod packet;
mod publication;
mod report;
mod service;
mod source;
mod store;
mod survey;
mod xdp;

pub use options::{MAX_ORDERS_DEFAULT, PublishOptions, STORE_BYTES_DEFAULT};
pub use publication::{Publication, PublishProgress};
pub use report::{ChannelReport, LineReport, PublishReport};
pub use survey::CHANNELS_MAX;
