//! Market data beside the book: ticker, quotes, trades, indices, states.

use crate::codes::{Direction, InstrumentState, Liquidity};
use crate::envelope::Id;
use crate::field::{List, message};
use crate::messages::PriceAmount;
use crate::number::{Decimal, Number};
use crate::text::Text;

message! {
    /// The last 24 hours of an instrument.
    pub struct TickerStats<'a> {
        /// Highest price.
        pub high: Option<Number<'a>>,
        /// Lowest price.
        pub low: Option<Number<'a>>,
        /// Change of the price, in percent.
        pub price_change: Option<Number<'a>>,
        /// Traded, in the base coin.
        pub volume: Option<Number<'a>>,
        /// Traded, in USD.
        pub volume_usd: Option<Number<'a>>,
        /// Traded, in the quote currency.
        pub volume_notional: Option<Number<'a>>,
    }
}

message! {
    /// Sensitivities of an option's price.
    pub struct Greeks<'a> {
        /// To the underlying's price.
        pub delta: Option<Number<'a>>,
        /// Of delta to the underlying's price.
        pub gamma: Option<Number<'a>>,
        /// To the interest rate.
        pub rho: Option<Number<'a>>,
        /// To time.
        pub theta: Option<Number<'a>>,
        /// To volatility.
        pub vega: Option<Number<'a>>,
    }
}

message! {
    /// Result of `public/ticker` and data of `ticker.{instrument}.{interval}`. An empty side of the book has an amount of
    /// 0, or no price and no amount.
    pub struct Ticker<'a> {
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// Whether it can be traded.
        pub state: Option<InstrumentState>,
        /// The last 24 hours.
        pub stats: Option<TickerStats<'a>>,
        /// Price of the index.
        pub index_price: Option<Decimal>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Last trade, if there was one.
        pub last_price: Option<Decimal>,
        /// Price of the last settlement.
        pub settlement_price: Option<Decimal>,
        /// Lower end of the trading band.
        pub min_price: Option<Decimal>,
        /// Upper end of the trading band.
        pub max_price: Option<Decimal>,
        /// Open positions, in amount.
        pub open_interest: Option<Number<'a>>,
        /// The price that profit is reckoned at.
        pub mark_price: Option<Decimal>,
        /// Of perpetuals: the value of the funding.
        pub interest_value: Option<Number<'a>>,
        /// Best ask.
        pub best_ask_price: Option<Decimal>,
        /// Best bid.
        pub best_bid_price: Option<Decimal>,
        /// Price at which it would be delivered now.
        pub estimated_delivery_price: Option<Decimal>,
        /// Amount of the best ask.
        pub best_ask_amount: Option<Decimal>,
        /// Amount of the best bid.
        pub best_bid_amount: Option<Decimal>,
        /// Of perpetuals: the funding rate now.
        pub current_funding: Option<Number<'a>>,
        /// Of perpetuals: the funding rate of 8 hours.
        pub funding_8h: Option<Number<'a>>,
        /// Of closed instruments: the price at which it was delivered.
        pub delivery_price: Option<Decimal>,
        /// Of options: price of the underlying.
        pub underlying_price: Option<Number<'a>>,
        /// Of options: name of the underlying.
        pub underlying_index: Option<Text<'a>>,
        /// Of options: volatility of the mark price, in percent.
        pub mark_iv: Option<Number<'a>>,
        /// Of options: interest rate used.
        pub interest_rate: Option<Number<'a>>,
        /// Of options: sensitivities.
        pub greeks: Option<Greeks<'a>>,
        /// Of options: volatility of the best bid, in percent.
        pub bid_iv: Option<Number<'a>>,
        /// Of options: volatility of the best ask, in percent.
        pub ask_iv: Option<Number<'a>>,
    }
}

message! {
    /// Result of `public/get_order_book`: the best levels, and what a client needs to go on from there.
    pub struct OrderBook<'a> {
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// Whether it can be traded.
        pub state: Option<InstrumentState>,
        /// The last 24 hours.
        pub stats: Option<TickerStats<'a>>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// The number of the book, as in its channels.
        pub change_id: u64,
        /// Bids, best first.
        pub bids: List<'a, PriceAmount>,
        /// Asks, best first.
        pub asks: List<'a, PriceAmount>,
        /// Best bid.
        pub best_bid_price: Option<Decimal>,
        /// Amount of the best bid.
        pub best_bid_amount: Option<Decimal>,
        /// Best ask.
        pub best_ask_price: Option<Decimal>,
        /// Amount of the best ask.
        pub best_ask_amount: Option<Decimal>,
        /// Price of the index.
        pub index_price: Option<Decimal>,
        /// The price that profit is reckoned at.
        pub mark_price: Option<Decimal>,
        /// Last trade, if there was one.
        pub last_price: Option<Decimal>,
        /// Price of the last settlement.
        pub settlement_price: Option<Decimal>,
        /// Lower end of the trading band.
        pub min_price: Option<Decimal>,
        /// Upper end of the trading band.
        pub max_price: Option<Decimal>,
        /// Open positions, in amount.
        pub open_interest: Option<Number<'a>>,
    }
}

message! {
    /// Data of `quote.{instrument}`. An empty side has no price, or an amount of 0.
    pub struct Quote<'a> {
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Best ask.
        pub best_ask_price: Option<Decimal>,
        /// Best bid.
        pub best_bid_price: Option<Decimal>,
        /// Amount of the best ask.
        pub best_ask_amount: Option<Decimal>,
        /// Amount of the best bid.
        pub best_bid_amount: Option<Decimal>,
    }
}

message! {
    /// A trade of anyone: an element of `trades.*` and of `public/get_last_trades_by_*`.
    pub struct PublicTrade<'a> {
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The price.
        pub price: Decimal,
        /// The amount.
        pub amount: Decimal,
        /// The incoming side.
        pub direction: Direction,
        /// Price of the index then.
        pub index_price: Option<Decimal>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Number of the trade within its instrument, one more each.
        pub trade_seq: u64,
        /// The mark price then.
        pub mark_price: Option<Decimal>,
        /// 0 up, 1 the same after up, 2 down, 3 the same after down.
        pub tick_direction: Option<u8>,
        /// The amount in contracts; of newer servers.
        pub contracts: Option<Decimal>,
        /// Number of the combination's trade.
        pub combo_trade_id: Option<Id<'a>>,
        /// The combination that it is a part of.
        pub combo_id: Option<Text<'a>>,
        /// Its id.
        pub trade_id: Text<'a>,
        /// Of options: volatility, in percent.
        pub iv: Option<Number<'a>>,
        /// Which side was liquidated, if one was.
        pub liquidation: Option<Liquidity>,
        /// The trade arranged elsewhere that it is a part of.
        pub block_trade_id: Option<Text<'a>>,
    }
}

message! {
    /// Result of `public/get_last_trades_by_*`.
    pub struct PublicTrades<'a> {
        /// The trades.
        pub trades: List<'a, PublicTrade<'a>>,
        /// True when there are more in the range.
        pub has_more: bool,
    }
}

message! {
    /// Data of `deribit_price_index.{index}`, and with other names the result of `public/get_index_price`.
    pub struct IndexPrice<'a> {
        /// Milliseconds since 1970; of the channel.
        pub timestamp: Option<u64>,
        /// The price; of the channel.
        pub price: Option<Decimal>,
        /// The index; of the channel.
        pub index_name: Option<Text<'a>>,
        /// The price; of the reply.
        pub index_price: Option<Decimal>,
        /// Price at which would be delivered now; of the reply.
        pub estimated_delivery_price: Option<Decimal>,
    }
}

message! {
    /// Data of `instrument.state.{kind}.{currency}`.
    pub struct InstrumentStateChange<'a> {
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The state from now on.
        pub state: InstrumentState,
        /// The instrument.
        pub instrument_name: Text<'a>,
    }
}

message! {
    /// Data of `platform_state`.
    pub struct PlatformState<'a> {
        /// The index whose instruments are meant.
        pub price_index: Option<Text<'a>>,
        /// True when trading of them is locked.
        pub locked: bool,
        /// True during maintenance; of older servers.
        pub maintenance: bool,
    }
}
