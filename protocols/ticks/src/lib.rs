//! The ticks protocol, for servers and clients: quotes, trades and trading states of many symbols over TCP,
//! with loss detection.
//!
//! `docs/protocols/ticks.md` specifies the protocol. This crate opens no sockets, reads no clock and does not
//! allocate while it reads or writes ticks: bytes and times are arguments. Invalid data from a peer is
//! refused and never causes a panic.
//!
//! | module | description |
//! |---|---|
//! | [`message`] | one structure for each message, with its wire layout |
//! | [`checksum`] | checksums of one message, and of many in parallel |
//! | [`parser`] | the subscriber's end: parses a stream with any fragmentation, and detects losses |
//! | [`request`] | the server's end: parses a client's messages; also encodes requests for clients |
//!
//! ```
//! use tickpath_ticks::message::{Hello, Place, Quote, Tick};
//! use tickpath_ticks::parser::{TickListener, TickParser};
//! use tickpath_ticks::checksum::{with_checksum, fill_checksums};
//! use tickpath_types::{InstrumentId, Nanos, Price};
//! use zerocopy::IntoBytes;
//!
//! // The server writes ticks and fills their checksums together ...
//! let place = |sequence| Place { instrument: InstrumentId(1), symbol_sequence: sequence as u32, sequence };
//! let quote = |sequence| {
//!     Quote::new(place(sequence), Nanos(5), (Price(1_000_000), 300), (Price(1_000_100), 200), 0)
//! };
//! let mut ticks: [Tick; 2] = [quote(1).into(), quote(2).into()];
//! fill_checksums(&mut ticks);
//! let hello = with_checksum(Hello::server(1, 7, 1_000, 1, Nanos(4)));
//!
//! // ... and a subscriber reads them, however they are fragmented.
//! struct Count(usize);
//! impl TickListener for Count {
//!     fn on_ticks(&mut self, ticks: &[Tick]) {
//!         self.0 += ticks.len();
//!     }
//! }
//! let (mut parser, mut count) = (TickParser::new(), Count(0));
//! for piece in [hello.as_bytes(), ticks.as_bytes()].concat().chunks(50) {
//!     parser.feed(piece, &mut count).unwrap();
//! }
//! assert_eq!((count.0, parser.stats().lost), (2, 0));
//! ```

pub mod checksum;
pub mod message;
pub mod parser;
pub mod request;
