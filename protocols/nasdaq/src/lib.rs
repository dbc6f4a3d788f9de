//! Nasdaq's protocols, for venues and clients: ITCH 5.0 market data in MoldUDP64 packets, OUCH 5.0 order
//! entry in SoupBinTCP sessions.
//!
//! No code here opens a socket, reads a clock or allocates: bytes and times are arguments. Invalid input from
//! a peer causes an error and never a panic.
//!
//! ```
//! use tickpath_nasdaq::{itch50, moldudp64};
//! use tickpath_types::{
//!     InstrumentId, MarketEvent, MarketEventKind, MatchId, Nanos, OrderId, Qty, Sequence,
//! };
//!
//! // The venue publishes an execution ...
//! let event = MarketEvent {
//!     sequence: Sequence(1),
//!     command: Sequence(1),
//!     ts: Nanos::from_secs(34_200),
//!     instrument: InstrumentId(7),
//!     kind: MarketEventKind::Executed { order_id: OrderId(1001), qty: Qty(100), match_id: MatchId(5) },
//! };
//! let session = moldudp64::Session::new("SESSION001").unwrap();
//! let datagram = [0; moldudp64::DATAGRAM_LEN_MAX];
//! let mut packet = moldudp64::PacketBuilder::new(datagram, session, event.sequence);
//! packet.push_with(|space| itch50::encode_market_event(&event, None, space)).unwrap();
//!
//! // ... and a subscriber decodes it.
//! struct Traded(Qty);
//! impl itch50::Listener for Traded {
//!     fn on_order_executed(&mut self, message: &itch50::OrderExecuted) {
//!         self.0 = message.executed_shares.get();
//!     }
//! }
//! let mut traded = Traded(Qty::ZERO);
//! for (_, message) in moldudp64::Packet::parse(packet.finish()).unwrap().messages() {
//!     itch50::decode(message, &mut traded).unwrap();
//! }
//! assert_eq!(traded.0, Qty(100));
//! ```

pub mod drop_copy;
pub mod glimpse;
pub mod itch50;
pub mod moldudp64;
pub mod ouch50;
mod session;
pub mod soupbintcp;
pub mod wire;
