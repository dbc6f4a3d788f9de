//! Books from the messages of IEX: price levels of DEEP, orders of DEEP+, quotes of TOPS.
//!
//! [`BookBuilder`] handles messages in sequence. With [`IexTp`](crate::IexTp), an [`Arbiter`](crate::Arbiter)
//! follows one line or joins two, and detects a restart of the numbering.
//!
//! ```
//! use tickpath_book::{BookLimits, BooksById, PackedBooks};
//! use tickpath_feed::{IgnoreUpdates, MessageBooks, iex};
//! use tickpath_iex::{Feed, PriceLevelUpdate, wire::Ticker};
//! use tickpath_types::{InstrumentId, Nanos, Price, Sequence, Side, Symbol};
//! use zerocopy::IntoBytes;
//!
//! let books = PackedBooks::new(BookLimits::new(InstrumentId(16), 1_000));
//! let mut builder = iex::BookBuilder::new(Feed::Deep10, books);
//! let level = |is_complete, size: u32, price: i64| {
//!     let ticker = Ticker::new("ZIEXT").unwrap();
//!     PriceLevelUpdate::of(Side::Buy, is_complete, Nanos(7), ticker, size, price)
//! };
//! builder.handle_message(Sequence(1), level(true, 400, 199_600).as_bytes(), &mut IgnoreUpdates);
//! builder.handle_message(Sequence(2), level(true, 100, 199_700).as_bytes(), &mut IgnoreUpdates);
//!
//! let id = builder.find(Symbol::new("ZIEXT").unwrap()).unwrap();
//! assert_eq!(builder.books().best_price(id, Side::Buy), Some(Price(199_700)));
//! ```

mod apply;
mod builder;
mod recovery;
mod state;

pub use builder::BookBuilder;
pub use recovery::IexRecovery;
pub use state::PRICE_MAX;
