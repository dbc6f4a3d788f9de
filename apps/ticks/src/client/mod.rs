//! The subscriber: a thread that connects, subscribes, checks checksums and numbers, fills the symbol cache, and connects
//! again when the connection is lost.
//!
//! [`Client::start`] starts the thread. Whoever watches it reads [`Shared`]: counters, latencies, and the [`Market`], none of
//! which the thread waits for.

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
pub use market::{Market, MarketRow, MarketWriter, SymbolTerms};
pub use shared::{Count, Counts, LinkState, Shared};
