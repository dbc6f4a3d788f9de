//! NYSE's Integrated Feed: its packets for an [`Arbiter`](crate::Arbiter), and books from its messages.
//!
//! ```
//! use tickpath_book::{BookLimits, BooksById, PackedBooks};
//! use tickpath_feed::xdp::{BookBuilder, Channel};
//! use tickpath_feed::{IgnoreUpdates, MessageBooks};
//! use tickpath_nyse::Packet;
//! use tickpath_flowgen::{ItchDayConfig, XdpDay, XdpDayConfig};
//! use tickpath_types::{InstrumentId, Nanos};
//!
//! let flow = ItchDayConfig::itch_500().scaled(1_000);
//! let mut day = XdpDay::new(XdpDayConfig { flow, ..XdpDayConfig::xdp_500() }).unwrap();
//! let limits = BookLimits::new(InstrumentId(1), 10_000);
//! let mut builder = BookBuilder::new(PackedBooks::new(limits), Nanos::from_secs(1_795_150_800));
//! while let Some(packet) = day.next_packet() {
//!     let messages = Packet::parse(packet.bytes()).unwrap();
//!     builder.handle_packet(Channel(packet.channel), &messages, &mut IgnoreUpdates);
//! }
//! assert_eq!(builder.instruments().contradictions(), 0);
//! assert_eq!(builder.instruments().counters().messages, day.counters().messages);
//! ```

mod apply;
mod builder;
mod clock;
mod message;
mod orders;
mod packets;
mod recovery;
mod refresh;
mod state;

pub use apply::trading_state;
pub use builder::BookBuilder;
pub use message::{Channel, Message};
pub use packets::{Missing, Packets, widened};
pub use recovery::{RequestSource, XdpRecovery};
pub use state::order_key;
