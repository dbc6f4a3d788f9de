//! The state of the reference engine: instruments, sessions and orders.

use tickpath_types::*;

/// The last sequence numbers and ids assigned; 0 if none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastNumbers {
    pub(super) market: u64,
    pub(super) order_id: u64,
    /// Last entry number; orders entered later get greater ones.
    pub(super) entry: u64,
    /// Last arrival number; parts of orders that arrive at their levels later get greater ones.
    pub(super) arrival: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Order(OrderEvent),
    Market(MarketEvent),
    NextUserRef(UserRefNum),
    SessionPhase(SystemEventCode),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Listing {
    pub(super) instrument: Instrument,
    pub(super) state: TradingState,
    pub(super) last_price: Price,
    pub(super) band_reference: Price,
    pub(super) band_width: Price,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    pub(super) last_user_ref: UserRefNum,
    pub(super) max_open_orders: u32,
    pub(super) max_qty: Qty,
    pub(super) max_notional: u64,
    pub(super) prevention: SelfTradePrevention,
    pub(super) account: u16,
    pub(super) is_killed: bool,
    pub(super) is_disabled: bool,
}

/// An open order.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceOrder {
    /// The order as entered.
    pub order: EnterOrder,
    /// The session that entered the order.
    pub session: SessionId,
    /// Entry number; orders entered later have greater ones.
    pub(super) entry: u64,
    /// Executed quantity, including that of the orders that it replaced.
    pub executed: u64,
    /// Displayed part of the open quantity.
    pub shown: u64,
    /// Order id under which the displayed part is published.
    pub id: OrderId,
    /// Arrival number of the displayed part: parts of a level that arrived earlier have smaller ones.
    pub(super) shown_at: u64,
    /// Hidden part of the open quantity; `hidden_at` is its arrival number.
    pub(super) hidden: u64,
    pub(super) hidden_at: u64,
    /// True for a stop order until it is triggered and processed.
    pub(super) is_waiting: bool,
    /// True once a trade has reached the order's stop price.
    pub(super) is_reached: bool,
    pub(super) parts: u64,
}

impl ReferenceOrder {
    /// Open quantity.
    #[must_use]
    pub fn leaves(&self) -> u64 {
        self.shown + self.hidden
    }

    /// The time of day at which the order expires; `None` if it does not expire within the day.
    #[must_use]
    pub fn expires_at(&self) -> Option<Nanos> {
        let seconds = self.order.special.unwrap_or_default().expire_at;
        (self.order.time_in_force == TimeInForce::Gtt).then(|| Nanos::from_secs(seconds.into()))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Execution {
    pub(super) orders: [(SessionId, UserRefNum); 2],
    pub(super) instrument: InstrumentId,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    pub(super) order: EnterOrder,
    pub(super) session: SessionId,
    pub(super) id: OrderId,
    pub(super) limit: Price,
    pub(super) leaves: u64,
    pub(super) executed: u64,
    pub(super) replaced: Option<OrderId>,
    /// Entry number of a triggered stop order; `None` for other orders.
    pub(super) entry: Option<u64>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum MatchOutcome {
    Matched,
    Paused,
    Prevented,
}

impl Listing {
    pub(super) fn new(instrument: Instrument) -> Listing {
        let (state, zero) = (TradingState::Halted, Price(0));
        Listing { instrument, state, last_price: zero, band_reference: zero, band_width: zero }
    }

    pub(super) fn band(&self) -> (Price, Price) {
        let Listing { band_reference: Price(middle), band_width: Price(width), .. } = *self;
        let Instrument { collar_low, collar_high, .. } = self.instrument;
        match width {
            0 => (collar_low, collar_high),
            _ => (
                collar_low.max(Price(middle.saturating_sub(width))),
                collar_high.min(Price(middle.saturating_add(width))),
            ),
        }
    }
}
