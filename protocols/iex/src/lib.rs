//! Encodes and decodes IEX's market data: IEX-TP segments with the messages of TOPS 1.5 and 1.6, DEEP 1.0 and
//! DEEP+ 1.0, gap fill requests, and the frames of the SNAP service.
//!
//! No code here opens a socket, reads a clock or allocates: bytes and times are arguments. Invalid input from
//! a peer is refused and never causes a panic.
//!
//! ```
//! use tickpath_iex::{Feed, PriceLevelUpdate, Listener, Segment, SegmentBuilder, decode};
//! use tickpath_iex::wire::Ticker;
//! use tickpath_types::{Nanos, Price, Qty, Side};
//! use zerocopy::IntoBytes;
//!
//! // The market publishes a level ...
//! let ticker = Ticker::new("ZIEXT").unwrap();
//! let level = PriceLevelUpdate::of(Side::Buy, true, Nanos(5), ticker, 400, 199_600);
//! let mut segment = SegmentBuilder::new([0; 256], Feed::Deep10, 1, 0x4381_0000);
//! segment.push(level.as_bytes()).unwrap();
//! let datagram = segment.finish(Nanos(6)).to_vec();
//!
//! // ... and a subscriber decodes it.
//! #[derive(Default)]
//! struct Levels(Vec<(u64, Option<Side>, Price, Qty)>);
//! impl Listener for Levels {
//!     fn on_price_level_update(&mut self, message: &PriceLevelUpdate) {
//!         assert!(message.event_flags.is_complete());
//!         self.0.push((message.timestamp.get().0, Some(message.side()), message.price.get(), message.size.get()));
//!     }
//! }
//! let mut levels = Levels::default();
//! let segment = Segment::parse(&datagram).unwrap();
//! assert_eq!((segment.feed(), segment.sequence().0), (Some(Feed::Deep10), 1));
//! for (_, message) in segment.messages() {
//!     decode(message, &mut levels).unwrap();
//! }
//! assert_eq!(levels.0, [(5, Some(Side::Buy), Price(199_600), Qty(400))]);
//! ```

mod codes;
mod feed;
pub mod gap_fill;
mod messages;
pub mod snap;
mod transport;
pub mod wire;

pub use codes::*;
pub use feed::Feed;
pub use messages::*;
pub use transport::*;

/// Length of the longest message of these feed versions, in bytes; later versions may have longer ones.
pub const MESSAGE_LEN_MAX: usize = AuctionInformation::LEN;
