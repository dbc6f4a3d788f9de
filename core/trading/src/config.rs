//! Settings of a trade engine.

use tickpath_types::{ClientOrderId, InstrumentId, Nanos, UserRefNum};

use crate::MarkTo;

/// Settings of a [`TradeEngine`](crate::TradeEngine) that hold for all its instruments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Number of the first order: one more than the last that the session used.
    pub first_user_ref: UserRefNum,
    /// Text sent with every order.
    pub client_order_id: ClientOrderId,
    /// Orders open at once in all instruments; beyond it orders are refused. At most
    /// [`EngineConfig::MAX_OPEN_ORDERS`].
    pub max_open_orders: usize,
    /// New orders and replacements per second, on average; beyond it they are refused. Cancels always go.
    pub orders_per_second: u32,
    /// New orders and replacements at once after a quiet time.
    pub order_burst: u32,
    /// Cancel everything and stop when no market data came for so long; `None` never.
    pub silence_stop: Option<Nanos>,
    /// Stop when the connection to the venue is lost for so long, or the first login takes so long; `None` never.
    /// Orders that are open then stay open at the venue, and are cancelled should it come back.
    pub disconnect_stop: Option<Nanos>,
    /// Where open positions are valued.
    pub mark_to: MarkTo,
}

impl EngineConfig {
    /// The largest `max_open_orders` that is accepted.
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

/// A trade engine cannot be made of these settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Ids must be 1, 2, 3 and so on: sort the instrument file.
    #[error("instrument {found} stands at place {expected}: list instruments by id, dense from 1")]
    InstrumentsNotDense {
        /// The id that the place asks for.
        expected: usize,
        /// The id that is there.
        found: InstrumentId,
    },
    /// Tick and lot must be above zero.
    #[error("instrument {0} has a tick or lot size of zero")]
    NoTickOrLot(InstrumentId),
    /// Give limits for each instrument.
    #[error("{limits} sets of limits for {instruments} instruments: give one for each")]
    LimitsMissing {
        /// Sets of limits.
        limits: usize,
        /// Instruments.
        instruments: usize,
    },
    /// Choose `max_open_orders` from 1 to [`EngineConfig::MAX_OPEN_ORDERS`].
    #[error("max_open_orders is {0}: choose 1 to {max}", max = EngineConfig::MAX_OPEN_ORDERS)]
    MaxOpenOrders(usize),
}
