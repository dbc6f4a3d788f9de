//! The selection of messages and symbols of a recording.

use serde::Serialize;
use tickpath_types::{Date, Zone};

use crate::TimeBase;
use crate::error::{Error, Result};
use crate::moment::{Calendar, Moment};
use crate::protocol_name::Protocol;

/// The selection of a file's messages and symbols, and of the output of its replay.
///
/// The books are always built from the first message. The window, `from` to `to`, selects the messages that
/// are counted, passed to the listener and part of the statistics; a recording ends at `to`. `symbols`
/// selects the symbols passed to the listener and shown in the report; messages are counted for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Symbols in the venue's notation; empty for all.
    pub symbols: Vec<String>,
    /// Start of the window.
    pub from: Option<Moment>,
    /// End of the window, exclusive.
    pub to: Option<Moment>,
    /// Maximum number of messages to read, in all recordings together.
    pub limit: Option<u64>,
    /// Number of messages between comparisons with the reference model; `None` for no comparisons.
    pub check_every: Option<u64>,
    /// Number of levels of each side in the report's books.
    pub depth: usize,
    /// True to decode messages without building books.
    pub decode_only: bool,
    /// Capacity of the books in open orders; derived from the file's length when `None`.
    pub orders_max: Option<u32>,
    /// Time zone of `from`, `to` and the report; the exchange's when `None`.
    pub zone: Option<Zone>,
    /// The day of the session, if known.
    pub date: Option<Date>,
    /// The protocol to use for all packets that fit it; detected from packet contents when `None`.
    pub protocol: Option<Protocol>,
    /// The requested tables.
    pub tables: Tables<bool>,
}

/// A value for each kind of table of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tables<T> {
    /// Best bid and ask of a symbol after each message that changed them.
    pub bbo: T,
    /// Every trade that the recording reports.
    pub trades: T,
    /// Each of the best levels of a symbol after each message that changed it.
    pub depth: T,
    /// Every change of an order, in recordings with orders.
    pub orders: T,
}

impl<T> Tables<T> {
    /// The values in the order of the fields.
    pub fn values(self) -> [T; 4] {
        [self.bbo, self.trades, self.depth, self.orders]
    }
}

impl<T> From<[T; 4]> for Tables<T> {
    fn from([bbo, trades, depth, orders]: [T; 4]) -> Tables<T> {
        Tables { bbo, trades, depth, orders }
    }
}

impl Selection {
    /// Returns the calendar for times that count from `base`. Uses `zone`, the exchange's time zone, if none
    /// was selected.
    #[must_use]
    pub fn calendar(&self, base: TimeBase, zone: Zone) -> Calendar {
        Calendar { base, zone: self.zone.unwrap_or(zone), midnight: Zone::EASTERN, date: self.date }
    }

    pub(crate) fn is_chosen(&self, symbol: &str) -> bool {
        self.symbols.is_empty() || self.symbols.iter().any(|chosen| chosen == symbol)
    }

    /// Returns the window in the time of a recording whose first message is at `first_ns`.
    pub(crate) fn window(&self, calendar: &Calendar, first_ns: u64) -> Result<Window> {
        let resolve = |moment: Option<Moment>, default| match moment {
            Some(moment) => moment.in_recording(calendar, first_ns).ok_or(Error::NoDates),
            None => Ok(default),
        };
        let window = Window { from_ns: resolve(self.from, 0)?, to_ns: resolve(self.to, u64::MAX)? };
        if window.from_ns < window.to_ns { Ok(window) } else { Err(Error::EmptyWindow) }
    }
}

/// The window of messages that are counted, in the recording's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl Window {
    /// The window that contains everything.
    pub(crate) const WHOLE: Window = Window { from_ns: 0, to_ns: u64::MAX };

    pub(crate) const fn contains(self, ts_ns: u64) -> bool {
        self.from_ns <= ts_ns && ts_ns < self.to_ns
    }
}
