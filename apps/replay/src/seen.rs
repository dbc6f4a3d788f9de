//! One message as the counts, statistics and exports see it, whatever its protocol.

use tickpath_types::{MarketUpdate, Price, Qty, Side, SystemEventCode, TradingState};

/// A message, whatever its protocol.
#[derive(Clone, Debug)]
pub(crate) struct Seen<'a> {
    /// Its number in the file, from 1.
    pub(crate) number: u64,
    pub(crate) ts_ns: u64,
    /// Id in the books; 0 for the whole system.
    pub(crate) instrument: u16,
    /// The channel, in a recording of several: each has another clock.
    pub(crate) channel: u8,
    /// Its type, an index into the counts.
    pub(crate) code: u8,
    /// The symbol, where the message tells it, perhaps with blanks behind it.
    pub(crate) symbol: Option<&'a [u8]>,
    /// The state of trading that it publishes.
    pub(crate) state: Option<TradingState>,
    /// The stage of the session that it publishes.
    pub(crate) stage: Option<SystemEventCode>,
    pub(crate) is_malformed: bool,
    /// A part of a snapshot: it builds the book and is in no statistics.
    pub(crate) is_snapshot: bool,
    pub(crate) order: SeenOrder,
    /// A trade; without a price it is at the price of the resting order.
    pub(crate) trade: Option<SeenTrade>,
}

/// The effect of a message on an order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenOrder {
    /// True when it is about an order that must rest.
    pub(crate) must_rest: bool,
    /// The price of an add or replacement, or what the prices of levels are multiples of: it shows the tick.
    pub(crate) price: Option<Price>,
    pub(crate) is_add: bool,
    /// An execution of a resting order.
    pub(crate) is_execution: bool,
    /// The order whose place this message's order takes; 0 for none.
    pub(crate) replaced: u64,
}

impl Seen<'_> {
    /// A message of a type about an instrument, of which nothing more is known.
    pub(crate) const fn new(number: u64, ts_ns: u64, instrument: u16, code: u8) -> Self {
        Seen {
            number,
            ts_ns,
            instrument,
            channel: 0,
            code,
            symbol: None,
            state: None,
            stage: None,
            is_malformed: false,
            is_snapshot: false,
            order: SeenOrder {
                must_rest: false,
                price: None,
                is_add: false,
                is_execution: false,
                replaced: 0,
            },
            trade: None,
        }
    }

    /// The message executes a resting order.
    pub(crate) fn execute(&mut self, trade: SeenTrade) {
        self.order.must_rest = true;
        self.order.is_execution = true;
        self.trade = Some(trade);
    }
}

/// A trade as a message reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenTrade {
    pub(crate) price: Option<Price>,
    pub(crate) qty: Qty,
    /// Side of the incoming order, where the message tells it.
    pub(crate) aggressor: Option<Side>,
    /// Against what, in a word.
    pub(crate) kind: &'static str,
    /// False when it is reported once more elsewhere.
    pub(crate) counts: bool,
    pub(crate) order_id: u64,
}

impl SeenTrade {
    /// A trade of which no more is known.
    pub(crate) const fn new(price: Option<Price>, qty: Qty, kind: &'static str) -> SeenTrade {
        SeenTrade { price, qty, aggressor: None, kind, counts: true, order_id: 0 }
    }
}

/// The best bid and ask with their quantities; a quantity of 0 means there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bbo {
    pub(crate) bid: (i64, u64),
    pub(crate) ask: (i64, u64),
}

impl Bbo {
    pub(crate) fn of(update: &MarketUpdate) -> Bbo {
        Bbo { bid: (update.bid_price, update.bid_qty), ask: (update.ask_price, update.ask_qty) }
    }

    pub(crate) const fn has_both(self) -> bool {
        self.bid.1 > 0 && self.ask.1 > 0
    }
}
