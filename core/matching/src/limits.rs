//! The engine's limits, its counters, and its start-up errors.

use tickpath_types::{Instrument, InstrumentId};

/// Bounds of the engine's state; all memory is allocated at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineLimits {
    /// Maximum number of orders of all sessions that are displayed, in whole or in part. At the bound, an
    /// order that may rest, displayed or not, is rejected with `BookFull`, even if it would trade at once.
    /// IOC orders and replacements are not affected.
    pub max_open_orders: u32,
    /// Maximum number of open orders of one session, displayed or not. At the bound, orders are rejected
    /// as for `max_open_orders`.
    pub max_open_orders_per_session: u32,
    /// Number of sessions; their ids are below it. Requests of others are rejected as `NotAuthorised`.
    pub max_sessions: u16,
    /// Maximum number of index pages in use: 1024 `UserRefNum`s in 4,160 bytes each. At the bound an order that
    /// may rest is rejected with `BookFull`. A page serves neighbouring `UserRefNum`s of one session and is
    /// in use while one of its orders is open.
    pub max_index_pages: u32,
    /// Maximum number of index pages of one session, since a client may scatter its `UserRefNum`s.
    pub max_index_pages_per_session: u32,
    /// Maximum number of special orders: hidden, displayed in parts, stop, GTT or GTC. An order displayed in
    /// parts counts once for each part that it can display, and once more. At the bound, a special order is
    /// rejected with `BookFull`.
    pub max_special_orders: u32,
    /// Number of latest executions that can be busted, rounded up to a power of two. Older ones are final.
    pub max_recent_executions: u32,
    /// Highest allowed id of instruments added during the day, raised to the highest initial id if lower.
    pub max_instruments: u16,
}

impl Default for EngineLimits {
    /// Limits for a laptop: about 70 MB when all memory is touched.
    fn default() -> Self {
        EngineLimits {
            max_open_orders: 1 << 18,
            max_open_orders_per_session: 1 << 17,
            max_sessions: 64,
            max_index_pages: 1 << 13,
            max_index_pages_per_session: 1 << 11,
            max_special_orders: 1 << 13,
            max_recent_executions: 1 << 15,
            max_instruments: 0,
        }
    }
}

impl EngineLimits {
    /// Bound on the number of order events, and on that of market events, that one command can cause. The
    /// order is accepted, can trade with every resting order (two order events each), and ends. In addition,
    /// all parts of special orders and all triggered orders can enter, rest and trade once.
    #[must_use]
    pub const fn max_events_per_command(&self) -> u64 {
        2 * self.max_open_orders as u64 + 14 * self.max_special_orders as u64 + 8
    }

    /// Capacity for displayed orders and parts, including stop orders that trigger and rest during a command.
    #[must_use]
    pub(crate) const fn max_resting(&self) -> u32 {
        self.max_open_orders.saturating_add(self.max_special_orders)
    }
}

/// Counters for observation: nothing depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounters {
    /// Number of commands applied, plus log commands that only the venue interprets.
    pub commands: u64,
    /// Number of requests answered by `Rejected`.
    pub rejected: u64,
    /// Number of requests ignored without a response, as their `UserRefNum` is not above the session's last.
    pub duplicates: u64,
    /// Commands without effect: cancels and modifications of orders that are not open, cancels to a size that
    /// is not smaller or not in lots, and the venue's commands about unknown instruments, sessions and
    /// executions.
    pub ignored: u64,
    /// Number of executions.
    pub executions: u64,
}

/// The engine cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The id is 0 or a duplicate: give every instrument a unique id from 1. Tables grow with the highest id.
    #[error("instrument {0} is a duplicate or has id 0: give each a unique id from 1")]
    InstrumentId(InstrumentId),
    /// The tick size or lot size is below 1, or the collar is not a range of positive prices.
    #[error("instrument {0}: tick and lot size must be at least 1, and 0 < collar_low <= collar_high")]
    InstrumentDefinition(InstrumentId),
    /// Level totals could exceed 64 bits: lower the instrument's `max_qty` or the limits on open orders.
    #[error("instrument {0}: max_qty times max_open_orders and max_special_orders must stay below 2^64")]
    QtyRange(InstrumentId),
}

/// Checks an instrument's definition.
///
/// # Errors
/// [`EngineError`] when the definition is invalid or does not fit the limits.
pub(crate) fn check_instrument(instrument: &Instrument, limits: &EngineLimits) -> Result<(), EngineError> {
    let Instrument { id, tick_size, lot_size, max_qty, collar_low, collar_high, .. } = *instrument;
    if tick_size.0 < 1 || lot_size.is_zero() || collar_low.0 < 1 || collar_high < collar_low {
        return Err(EngineError::InstrumentDefinition(id));
    }
    // This bounds the total quantity of any level to 64 bits.
    match max_qty.0.checked_mul(u64::from(limits.max_resting()) + u64::from(limits.max_special_orders)) {
        Some(_) => Ok(()),
        None => Err(EngineError::QtyRange(id)),
    }
}
