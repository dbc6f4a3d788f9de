//! The engine's bounds, its counters, and what it refuses to start with.

use tickpath_types::{Instrument, InstrumentId};

/// How large the engine's state may become; all memory is taken at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineLimits {
    /// Open orders of all sessions. At the bound an order that may rest is rejected with `BookFull`,
    /// even if it would trade at once; an IOC order is not affected.
    pub max_open_orders: u32,
    /// Open orders of one session; as above.
    pub max_open_orders_per_session: u32,
    /// Sessions, with ids below this number. Requests of others are rejected with `NotAuthorised`.
    pub max_sessions: u16,
    /// Pages of 1024 order numbers in the look-up of open orders, 4 KiB each. At the bound an order that
    /// may rest is rejected with `BookFull`. A page serves neighbouring numbers of one session and is
    /// in use while one of its orders is open.
    pub max_index_pages: u32,
    /// Pages of one session: what a client that scatters its numbers can take from the others.
    pub max_index_pages_per_session: u32,
}

impl Default for EngineLimits {
    /// A laptop's: about 70 MB.
    fn default() -> Self {
        EngineLimits {
            max_open_orders: 1 << 18,
            max_open_orders_per_session: 1 << 17,
            max_sessions: 64,
            max_index_pages: 1 << 13,
            max_index_pages_per_session: 1 << 11,
        }
    }
}

impl EngineLimits {
    /// The most events that one command can cause, of either kind: an order that trades with everything
    /// there is, told to both sides, and its own acceptance and end.
    #[must_use]
    pub const fn max_events_per_command(&self) -> u64 {
        2 * self.max_open_orders as u64 + 3
    }
}

/// What the engine has done so far, for observation: nothing depends on these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounters {
    /// Commands applied.
    pub commands: u64,
    /// Requests answered by `Rejected`.
    pub rejected: u64,
    /// New orders and replacements whose number the session had already used; ignored without answer.
    pub duplicates: u64,
    /// Commands without effect: cancels of orders that are not open, to a size that is not smaller or not
    /// in lots; states of unknown instruments.
    pub ignored: u64,
    /// Executions.
    pub executions: u64,
}

/// The engine cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Give every instrument an id of its own from 1, small, for tables are indexed by it.
    #[error("instrument {instrument} is there twice or has id 0: give each its own id from 1")]
    InstrumentId {
        /// The id.
        instrument: InstrumentId,
    },
    /// Set tick size and lot size to at least 1, and the collar to a range of positive prices.
    #[error(
        "instrument {instrument}: tick and lot size must be at least 1, and 0 < collar_low <= collar_high"
    )]
    InstrumentTerms {
        /// The id.
        instrument: InstrumentId,
    },
    /// Lower the instrument's largest quantity or the number of open orders.
    #[error("instrument {instrument}: max_qty times max_open_orders must stay below 2^64")]
    QtyRange {
        /// The id.
        instrument: InstrumentId,
    },
}

/// Checks one definition.
///
/// # Errors
/// [`EngineError`] when the engine could not compute with it.
pub(crate) fn check_instrument(instrument: &Instrument, limits: &EngineLimits) -> Result<(), EngineError> {
    let Instrument { id, tick_size, lot_size, max_qty, collar_low, collar_high, .. } = *instrument;
    if tick_size.0 < 1 || lot_size.is_zero() || collar_low.0 < 1 || collar_high < collar_low {
        return Err(EngineError::InstrumentTerms { instrument: id });
    }
    // So the sum of any level fits in 64 bits.
    match max_qty.0.checked_mul(u64::from(limits.max_open_orders)) {
        Some(_) => Ok(()),
        None => Err(EngineError::QtyRange { instrument: id }),
    }
}
