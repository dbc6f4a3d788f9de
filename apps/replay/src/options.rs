//! The options of a replay.

use std::path::PathBuf;

pub use tickpath_config::Speed;

use tickpath_config::{Date, Zone};
use tickpath_recording::{Moment, Protocol, Selection, Tables};

/// Default number of messages between two comparisons with the reference model.
pub const CHECK_EVERY_DEFAULT: u64 = 100_000;
/// Default number of levels of each side that are shown and exported.
pub const DEPTH_DEFAULT: usize = 5;
/// Maximum number of levels of each side that can be shown and exported.
pub const DEPTH_MAX: usize = 100;

/// Files to export to; their names end in `.csv` or `.parquet`.
pub type Exports = Tables<Option<PathBuf>>;

/// The options of a replay.
///
/// The books are always built from the first message. The window, `from` to `to`, selects the messages that
/// are counted, exported and part of the statistics. Reading ends at `to`, so the books shown are those of
/// that moment. `symbols` selects the symbols for statistics, books and exports; messages are counted for
/// all. `limit` counts messages from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Symbols in the venue's notation; empty for all.
    pub symbols: Vec<String>,
    /// Start of the window.
    pub from: Option<Moment>,
    /// End of the window, exclusive.
    pub to: Option<Moment>,
    /// Maximum number of messages to read.
    pub limit: Option<u64>,
    /// Speed of the replay.
    pub speed: Speed,
    /// Number of messages between two comparisons with the reference model; `None` disables them.
    pub check_every: Option<u64>,
    /// The order book file to compare with a LOBSTER message file. By default, the one beside the message
    /// file is used if it exists.
    pub order_book: Option<PathBuf>,
    /// Levels of each side that are shown and exported, at most [`DEPTH_MAX`].
    pub depth: usize,
    /// Files to export to.
    pub exports: Exports,
    /// Only decode: build and check no books.
    pub decode_only: bool,
    /// Capacity of the books in open orders. The default is [`ORDERS_MAX_DEFAULT`](crate::ORDERS_MAX_DEFAULT)
    /// or the number that a small file can hold. An order beyond it is refused and counted.
    pub orders_max: Option<u32>,
    /// Time zone of `from`, `to` and the report. The default is Eastern Time, or UTC for DBN.
    pub zone: Option<Zone>,
    /// The day of the session, for times without a date. The default is the day of the first packet or
    /// message, if it has a date.
    pub date: Option<Date>,
    /// The protocol to assume for all packets of a capture that can belong to it. By default, packets are
    /// recognised by their contents.
    pub protocol: Option<Protocol>,
}

impl ReplayOptions {
    /// Returns the selection that the options define.
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
