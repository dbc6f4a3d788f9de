//! What to replay, and how.

use std::path::PathBuf;

pub use tickpath_config::Speed;

use tickpath_config::{Date, Zone};
use tickpath_recording::{Moment, Protocol, Selection, Tables};

/// Messages between two comparisons with the reference model, unless another number is given.
pub const CHECK_EVERY_DEFAULT: u64 = 100_000;
/// Levels of each side that are shown and exported, unless another number is given.
pub const DEPTH_DEFAULT: usize = 5;
/// Most levels of each side that can be shown and exported.
pub const DEPTH_MAX: usize = 100;

/// Files to export to; a name ends in `.csv` or `.parquet`.
pub type Exports = Tables<Option<PathBuf>>;

/// What to replay, and how.
///
/// The books are always built from the first message. The window - `from`, `to` - chooses the messages that
/// are counted, exported and part of the statistics; reading ends at `to`, so the books that are shown are
/// those of that moment. `symbols` chooses whose statistics, books and exports are wanted; messages are
/// counted for all. `limit` counts messages from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Symbols as the venue writes them; none for all.
    pub symbols: Vec<String>,
    /// Start of the window.
    pub from: Option<Moment>,
    /// End of the window, not part of it.
    pub to: Option<Moment>,
    /// Messages to read at most.
    pub limit: Option<u64>,
    /// How fast.
    pub speed: Speed,
    /// Whether and after how many messages the reference model is compared.
    pub check_every: Option<u64>,
    /// The order book file to hold a LOBSTER message file against; without it the one beside the message
    /// file is used when there is one.
    pub order_book: Option<PathBuf>,
    /// Levels of each side that are shown and exported, at most [`DEPTH_MAX`].
    pub depth: usize,
    /// Files to export to.
    pub exports: Exports,
    /// Only decode: no books, no judgement of them.
    pub decode_only: bool,
    /// Room in the books for open orders, [`ORDERS_MAX_DEFAULT`](crate::ORDERS_MAX_DEFAULT) or what a small file can hold unless another
    /// number is asked for. An order that does not fit is refused and counted.
    pub orders_max: Option<u32>,
    /// Whose clocks `from`, `to` and the report are by; without it the exchange's: Eastern Time, of DBN UTC.
    pub zone: Option<Zone>,
    /// The day of the session, for times without a date; without it that of the first packet or message, where that
    /// has one.
    pub date: Option<Date>,
    /// The protocol of all packets of a capture that can be it; without it found by what is in them.
    pub protocol: Option<Protocol>,
}

impl ReplayOptions {
    /// The selection that they make.
    pub(crate) fn selection(&self) -> Selection {
        Selection {
            symbols: self.symbols.clone(),
            from: self.from,
            to: self.to,
            limit: self.limit,
            check_every: self.check_every,
            depth: self.depth,
            decode_only: self.decode_only,
            orders_max: self.orders_max,
            zone: self.zone,
            date: self.date,
            protocol: self.protocol,
            tables: self.exports.clone().values().map(|path| path.is_some()).into(),
        }
    }
}

impl Default for ReplayOptions {
    fn default() -> Self {
        ReplayOptions {
            symbols: Vec::new(),
            from: None,
            to: None,
            limit: None,
            speed: Speed::Max,
            check_every: None,
            order_book: None,
            depth: DEPTH_DEFAULT,
            exports: Exports::default(),
            decode_only: false,
            orders_max: None,
            zone: None,
            date: None,
            protocol: None,
        }
    }
}
