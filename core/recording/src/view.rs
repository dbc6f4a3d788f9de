//! A message in a protocol-independent form, for counts, statistics and listeners.

use tickpath_types::{MarketUpdate, Price, Qty, Side, SystemEventCode, TradingState};

/// A message in a protocol-independent form.
#[derive(Clone, Debug, Default)]
pub struct MessageView<'a> {
    /// Number of the message in the file, from 1.
    pub number: u64,
    /// Time of the message, in nanoseconds since the recording's epoch (its `TimeBase`).
    pub ts_ns: u64,
    /// Id of the instrument in the books; 0 for the whole system.
    pub instrument: u16,
    /// Channel of the message; 0 if the recording has only one. Each channel has a separate clock.
    pub channel: u8,
    /// Type of the message, as an index into the recording's counts of messages by type.
    pub code: u8,
    /// The symbol, if the message has one, possibly with trailing blanks.
    pub symbol: Option<&'a [u8]>,
    /// Trading state that the message publishes.
    pub state: Option<TradingState>,
    /// System event that the message publishes.
    pub stage: Option<SystemEventCode>,
    /// True when the content of the message is invalid for its type.
    pub is_malformed: bool,
    /// True for a message of a snapshot: it builds the book and is excluded from statistics.
    pub is_snapshot: bool,
    /// Effect of the message on an order.
    pub order: OrderEffect,
    /// Trade that the message reports. If it has no price, the price is that of the resting order.
    pub trade: Option<TradeInfo>,
}

/// The effect of a message on an order.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderEffect {
    /// True when the message changes or removes an order, which must therefore be in the book.
    pub must_rest: bool,
    /// Price from which the tick size is derived: that of the added or changed order, or the greatest common
    /// divisor of all level prices in the message.
    pub price: Option<Price>,
    /// True when the message adds an order.
    pub is_add: bool,
    /// True when the message executes a resting order.
    pub is_execution: bool,
    /// Id of the order that the message replaces; 0 for none.
    pub replaced: u64,
}

impl MessageView<'_> {
    /// Creates the view of a message with these fields; all other fields are empty.
    #[inline]
    pub(crate) fn new(number: u64, ts_ns: u64, instrument: u16, code: u8) -> Self {
        MessageView { number, ts_ns, instrument, code, ..MessageView::default() }
    }

    /// Marks the message as an execution of a resting order.
    #[inline]
    pub(crate) fn execute(&mut self, trade: TradeInfo) {
        self.order.must_rest = true;
        self.order.is_execution = true;
        self.trade = Some(trade);
    }
}

/// A trade as reported by a message.
#[derive(Clone, Copy, Debug)]
pub struct TradeInfo {
    /// Price of the trade, if the message has it.
    pub price: Option<Price>,
    /// Quantity of the trade.
    pub qty: Qty,
    /// Side of the incoming order, if the message has it.
    pub aggressor: Option<Side>,
    /// Kind of the trade, such as `executed` or `cross`.
    pub kind: &'static str,
    /// False when another message also reports the trade, so that statistics skip this one.
    pub counts: bool,
    /// Id of the resting order for an execution, or else of the incoming order; 0 for none.
    pub order_id: u64,
}

impl TradeInfo {
    /// Creates a trade with these fields; all other fields have their defaults.
    #[inline]
    pub(crate) const fn new(price: Option<Price>, qty: Qty, kind: &'static str) -> TradeInfo {
        TradeInfo { price, qty, aggressor: None, kind, counts: true, order_id: 0 }
    }
}

/// The best bid and ask with their quantities; a quantity of 0 means that the side is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bbo {
    /// Price and quantity of the best bid.
    pub bid: (i64, u64),
    /// Price and quantity of the best ask.
    pub ask: (i64, u64),
}

impl Bbo {
    #[inline]
    pub(crate) fn of(update: &MarketUpdate) -> Bbo {
        Bbo { bid: (update.bid.price, update.bid.qty), ask: (update.ask.price, update.ask.qty) }
    }

    #[inline]
    pub(crate) const fn has_both(self) -> bool {
        self.bid.1 > 0 && self.ask.1 > 0
    }
}
