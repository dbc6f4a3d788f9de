//! A message in a protocol-independent form, for counts, statistics and listeners.

use tickpath_types::{MarketUpdate, Price, Qty, Side, SystemEventCode, TradingState};

/// A message in a protocol-independent form.
#[derive(Clone, Debug, Default)]
pub struct MessageView<'a> {
    /// Its number in the file, from 1.
    pub number: u64,
    /// Its time, in the recording's time base.
    pub ts_ns: u64,
    /// Id in the books; 0 for the whole system.
    pub instrument: u16,
    /// The channel, in a recording with several: each has another clock.
    pub channel: u8,
    /// Its type, an index into the counts.
    pub code: u8,
    /// The symbol, if the message has it, possibly with trailing blanks.
    pub symbol: Option<&'a [u8]>,
    /// The trading state that it publishes.
    pub state: Option<TradingState>,
    /// The system event that it publishes.
    pub stage: Option<SystemEventCode>,
    /// True when its content is invalid for its type.
    pub is_malformed: bool,
    /// True for a part of a snapshot: it builds the book and is excluded from statistics.
    pub is_snapshot: bool,
    /// Its effect on an order.
    pub order: OrderEffect,
    /// A trade; without a price it is at the price of the resting order.
    pub trade: Option<TradeInfo>,
}

/// The effect of a message on an order.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderEffect {
    /// True when it concerns an order that must rest.
    pub must_rest: bool,
    /// The price of an add or replacement, or the multiple of level prices: shows the tick.
    pub price: Option<Price>,
    /// A new order.
    pub is_add: bool,
    /// An execution of a resting order.
    pub is_execution: bool,
    /// The order that this message's order replaces; 0 for none.
    pub replaced: u64,
}

impl MessageView<'_> {
    /// A message of a type about an instrument, without further information.
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
    /// The price, if the message has it.
    pub price: Option<Price>,
    /// The quantity.
    pub qty: Qty,
    /// Side of the incoming order, if the message has it.
    pub aggressor: Option<Side>,
    /// Kind of the trade, in one word.
    pub kind: &'static str,
    /// False when it is reported again elsewhere.
    pub counts: bool,
    /// The resting order, or the incoming one; 0 for none.
    pub order_id: u64,
}

impl TradeInfo {
    /// A trade without further information.
    #[inline]
    pub(crate) const fn new(price: Option<Price>, qty: Qty, kind: &'static str) -> TradeInfo {
        TradeInfo { price, qty, aggressor: None, kind, counts: true, order_id: 0 }
    }
}

/// The best bid and ask with their quantities; a quantity of 0 means there is none.
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
