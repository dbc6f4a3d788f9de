//! The subscriber: a thread that connects, subscribes, verifies checksums and sequence numbers, fills the
//! symbol cache, and reconnects when the connection is lost.
//!
//! [`Client::start`] starts the thread. Other threads read the client's counters, latencies and
//! [`Market`] from [`Shared`]. The client's thread does not wait for them.

mod backoff;
mod csv;
mod feed;
mod latency;
mod link;
mod market;
mod shared;

pub use backoff::{Backoff, DELAY_MAX, DELAY_MIN};
pub use csv::{CSV_HEADER, CsvFile};
pub use feed::{Feed, SegmentPlace};
pub use latency::{Latencies, Percentiles, Span};
pub use link::{Client, ClientConfig, ClientError};
pub use market::{Market, MarketRow, MarketWriter, SymbolAttributes};
pub use shared::{Count, Counts, LinkState, Shared};
