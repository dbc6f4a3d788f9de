//! Encodes and decodes the packets and messages of NYSE's Pillar Integrated Feed (protocol XDP).
//!
//! A packet is a header of 16 bytes and whole messages; all integers are little-endian. Each message states
//! its length. A later version may append fields to a message: [`decode`] ignores them, and passes messages
//! of unknown types to [`Listener::on_unknown`]. No code here opens a socket, reads a clock or allocates.
//! Invalid input from a peer is refused and never causes a panic.
//!
//! Source: NYSE XDP Common Client Specification 2.3c and XDP Integrated Feed Client Specification 2.3a.
//! Layouts that Pillar 2.5 changed follow Pillar 2.5.
//!
//! ```
//! use tickpath_nyse::{AddOrder, DeliveryFlag, Firm, Listener, Packet, PacketBuilder, SendTime, Side, decode};
//!
//! // The venue publishes an order ...
//! let add = AddOrder::new(5, 4242, 1, 0x0001_0100_0000_a6e9_u64, 2756, 300, Side::BUY, Firm::NONE, 0);
//! let mut builder = PacketBuilder::new([0; tickpath_nyse::PACKET_LEN_MAX], 100);
//! builder.push(&add).unwrap();
//! let bytes = builder.finish(DeliveryFlag::ORIGINAL, SendTime { secs: 1_700_000_000, nanos: 5 });
//!
//! // ... and a subscriber decodes it.
//! struct Volume(u32);
//! impl Listener for Volume {
//!     fn on_add_order(&mut self, message: &AddOrder) {
//!         self.0 += message.volume.get();
//!     }
//! }
//! let mut volume = Volume(0);
//! let packet = Packet::parse(bytes).unwrap();
//! for (sequence, message) in packet.messages() {
//!     assert_eq!(sequence, 100);
//!     decode(message, &mut volume).unwrap();
//! }
//! assert_eq!(volume.0, 300);
//! ```

mod builder;
mod codes;
mod messages;
mod packet;
mod price;
mod symbol;

pub use builder::{PacketBuilder, PushError};
pub use codes::*;
pub use messages::*;
pub use packet::*;
pub use price::{PRICE_DECIMALS, PriceScale};
pub use symbol::{Firm, SourceId, XdpSymbol};
