//! Encoder and decoder of Nasdaq TotalView-ITCH 5.0.
//!
//! A message is one of 23 fixed big-endian structures without padding. [`decode`] checks a message's
//! type and length and passes the listener a reference into the received bytes. A publisher writes the same
//! structures: create one with `new` and send its [`as_bytes`](zerocopy::IntoBytes::as_bytes).
//!
//! ```
//! use tickpath_nasdaq::itch50::{self, AddOrder, BuySell};
//! use tickpath_nasdaq::wire::Stock;
//! use tickpath_types::{Nanos, Price, Qty, Side};
//! use zerocopy::IntoBytes;
//!
//! let stock = Stock::new("AAPL").unwrap();
//! let add = AddOrder::new(7, 3, Nanos(34_200_000_000_123), 1001, BuySell::BUY, 300, stock, 1_891_234);
//!
//! #[derive(Default)]
//! struct Bought(u64);
//! impl itch50::Listener for Bought {
//!     fn on_add_order(&mut self, message: &AddOrder) {
//!         assert_eq!(message.price.get(), Price(1_891_234));
//!         if message.side.side() == Some(Side::Buy) {
//!             self.0 += message.shares.get().0;
//!         }
//!     }
//! }
//! let mut bought = Bought::default();
//! itch50::decode(add.as_bytes(), &mut bought).unwrap();
//! assert_eq!(bought.0, 300);
//! ```

mod codes;
pub mod framing;
mod messages;
mod publish;

pub use codes::*;
pub use messages::*;
pub use publish::{EncodeError, encode_market_event, market_event_len, market_event_message};

/// Length of the longest message of ITCH 5.0, in bytes.
pub const MESSAGE_LEN_MAX: usize = NetOrderImbalance::LEN;
