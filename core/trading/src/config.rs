//! Settings of a trade engine.

use tickpath_types::{ClientOrderId, InstrumentId, Nanos, UserRefNum};

use crate::MarkTo;

/// Settings of a [`TradeEngine`](crate::TradeEngine) that hold for all its instruments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// UserRefNum of the first order: one more than the last that the session used.
    pub first_user_ref: UserRefNum,
    /// Client order id that every order carries.
    pub client_order_id: ClientOrderId,
    /// Maximum number of open orders in all instruments; further orders are refused. At most
    /// [`EngineConfig::MAX_OPEN_ORDERS`].
    pub max_open_orders: usize,
    /// Maximum average number of new orders and replacements per second; the excess is refused. Cancels are
    /// not limited.
    pub orders_per_second: u32,
    /// Maximum number of new orders and replacements in one burst, after a quiet time.
    pub order_burst: u32,
    /// The engine cancels all orders and stops after this time without market data; never if `None`.
    pub silence_stop: Option<Nanos>,
    /// The engine stops if the first login, or a reconnection to the venue, takes this long; never if `None`.
    /// Open orders then stay open at the venue, and are cancelled after a reconnection.
    pub disconnect_stop: Option<Nanos>,
    /// Price at which open positions are valued.
    pub mark_to: MarkTo,
}

impl EngineConfig {
    /// Maximum valid `max_open_orders`.
    pub const MAX_OPEN_ORDERS: usize = 1 << 20;
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            first_user_ref: UserRefNum(1),
            client_order_id: ClientOrderId::default(),
            max_open_orders: 1_024,
            orders_per_second: 2_000,
            order_burst: 64,
            silence_stop: None,
            disconnect_stop: Some(Nanos::from_secs(10)),
            mark_to: MarkTo::Mid,
        }
    }
}

/// The settings of a trade engine are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Instrument ids must be 1, 2, 3 and so on: sort the instrument file.
    #[error("instrument {found} is at position {expected}: list instruments by id, dense from 1")]
    InstrumentsNotDense {
        /// The id required at this position.
        expected: usize,
        /// The id found there.
        found: InstrumentId,
    },
    /// Tick and lot sizes must be above zero.
    #[error("instrument {0} has a tick or lot size of zero")]
    NoTickOrLot(InstrumentId),
    /// The numbers of limits and instruments differ: give limits for each instrument.
    #[error("{limits} sets of limits for {instruments} instruments: give one for each")]
    LimitsMissing {
        /// Number of sets of limits.
        limits: usize,
        /// Number of instruments.
        instruments: usize,
    },
    /// `max_open_orders` must be from 1 to [`EngineConfig::MAX_OPEN_ORDERS`].
    #[error("max_open_orders is {0}: choose 1 to {max}", max = EngineConfig::MAX_OPEN_ORDERS)]
    MaxOpenOrders(usize),
}
