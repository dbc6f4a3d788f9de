//! Publishes a recording: sends its packets on multicast lines in recorded time, and serves recovery to
//! clients that lost packets or joined late.
//!
//! [`Publication::open`] scans a capture (or a file of ITCH messages, which it packs into MoldUDP64 packets)
//! and opens every channel that it finds. [`Publication::feed_config`] returns the configuration of a feed
//! handler for these channels. [`Publication::run`] publishes.
//!
//! | protocol | services |
//! |---|---|
//! | ITCH | MoldUDP64 requests over UDP, GLIMPSE over SoupBinTCP |
//! | XDP | a request server over TCP, and multicast channels for retransmission and refresh |
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
