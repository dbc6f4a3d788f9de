//! Market data beside the book: ticker, quotes, trades, indices, states.

use crate::codes::{Direction, InstrumentState, Liquidity};
use crate::envelope::Id;
use crate::field::{List, message};
use crate::messages::{BookUpdateKind, PriceAmount};
use crate::number::{Decimal, Number};
use crate::text::Text;

message! {
    /// The last 24 hours of an instrument.
    pub struct TickerStats<'a> {
        /// Highest price.
        pub high: Option<Number<'a>> = null,
        /// Lowest price.
        pub low: Option<Number<'a>> = null,
        /// Change of the price, in percent.
        pub price_change: Option<Number<'a>> = null,
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
        /// Of `incremental_ticker.{instrument}`: all of it, or the members that changed.
        pub kind as "type": Option<BookUpdateKind>,
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// Whether it can be traded.
        pub state: Option<InstrumentState>,
        /// The last 24 hours.
        pub stats: Option<TickerStats<'a>>,
        /// Price of the index.
        pub index_price: Option<Number<'a>>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Last trade, if there was one.
        pub last_price: Option<Decimal>,
        /// Price of the last settlement.
        pub settlement_price: Option<Number<'a>>,
        /// Lower end of the trading band.
        pub min_price: Option<Decimal>,
        /// Upper end of the trading band.
        pub max_price: Option<Decimal>,
        /// Open positions, in amount.
        pub open_interest: Option<Number<'a>>,
        /// The price that profit is reckoned at.
        pub mark_price: Option<Number<'a>>,
        /// Of perpetuals: what a unit of the amount has paid of funding since the beginning.
        pub interest_value: Option<Number<'a>>,
        /// Best ask.
        pub best_ask_price: Option<Decimal>,
        /// Best bid.
        pub best_bid_price: Option<Decimal>,
        /// Price at which it would be delivered now.
        pub estimated_delivery_price: Option<Number<'a>>,
        /// Amount of the best ask.
        pub best_ask_amount: Option<Decimal>,
        /// Amount of the best bid.
        pub best_bid_amount: Option<Decimal>,
        /// Of perpetuals: the funding rate now.
        pub current_funding: Option<Number<'a>>,
        /// Of perpetuals: the funding rate of 8 hours.
        pub funding_8h: Option<Number<'a>>,
        /// Of closed instruments: the price at which it was delivered.
        pub delivery_price: Option<Number<'a>>,
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

impl<'a> Ticker<'a> {
    /// Of an instrument that nothing is known of, to be filled in.
    #[must_use]
    pub const fn empty(instrument_name: &'a str, timestamp: u64) -> Ticker<'a> {
        Ticker {
            kind: None,
            timestamp,
            state: None,
            stats: None,
            index_price: None,
            instrument_name: Text::new(instrument_name),
            last_price: None,
            settlement_price: None,
            min_price: None,
            max_price: None,
            open_interest: None,
            mark_price: None,
            interest_value: None,
            best_ask_price: None,
            best_bid_price: None,
            estimated_delivery_price: None,
            best_ask_amount: None,
            best_bid_amount: None,
            current_funding: None,
            funding_8h: None,
            delivery_price: None,
            underlying_price: None,
            underlying_index: None,
            mark_iv: None,
            interest_rate: None,
            greeks: None,
            bid_iv: None,
            ask_iv: None,
        }
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
        pub index_price: Option<Number<'a>>,
        /// The price that profit is reckoned at.
        pub mark_price: Option<Number<'a>>,
        /// Last trade, if there was one.
        pub last_price: Option<Decimal>,
        /// Price of the last settlement.
        pub settlement_price: Option<Number<'a>>,
        /// Lower end of the trading band.
        pub min_price: Option<Decimal>,
        /// Upper end of the trading band.
        pub max_price: Option<Decimal>,
        /// Open positions, in amount.
        pub open_interest: Option<Number<'a>>,
        /// Of perpetuals: what a unit of the amount has paid of funding since the beginning.
        pub interest_value: Option<Number<'a>>,
        /// Price at which would be delivered now.
        pub estimated_delivery_price: Option<Number<'a>>,
        /// Price of the delivery; of closed instruments.
        pub delivery_price: Option<Number<'a>>,
        /// Of perpetuals: the funding now.
        pub current_funding: Option<Number<'a>>,
        /// Of perpetuals: the funding of the last eight hours.
        pub funding_8h: Option<Number<'a>>,
        /// Of options: price of the underlying.
        pub underlying_price: Option<Number<'a>>,
        /// Of options: the underlying, or `index_price`.
        pub underlying_index: Option<Text<'a>>,
        /// Of options: the interest rate.
        pub interest_rate: Option<Number<'a>>,
        /// Of options: volatility of the best bid, in percent.
        pub bid_iv: Option<Number<'a>>,
        /// Of options: volatility of the best ask, in percent.
        pub ask_iv: Option<Number<'a>>,
        /// Of options: volatility of the mark price, in percent.
        pub mark_iv: Option<Number<'a>>,
        /// Of options: the sensitivities.
        pub greeks: Option<Greeks<'a>>,
    }
}

impl<'a> OrderBook<'a> {
    /// The best levels, with what the ticker says.
    #[must_use]
    pub fn of(
        ticker: Ticker<'a>,
        change_id: u64,
        bids: List<'a, PriceAmount>,
        asks: List<'a, PriceAmount>,
    ) -> OrderBook<'a> {
        OrderBook {
            timestamp: ticker.timestamp,
            state: ticker.state,
            stats: ticker.stats,
            instrument_name: ticker.instrument_name,
            change_id,
            bids,
            asks,
            best_bid_price: ticker.best_bid_price,
            best_bid_amount: ticker.best_bid_amount,
            best_ask_price: ticker.best_ask_price,
            best_ask_amount: ticker.best_ask_amount,
            index_price: ticker.index_price,
            mark_price: ticker.mark_price,
            last_price: ticker.last_price,
            settlement_price: ticker.settlement_price,
            min_price: ticker.min_price,
            max_price: ticker.max_price,
            open_interest: ticker.open_interest,
            interest_value: ticker.interest_value,
            estimated_delivery_price: ticker.estimated_delivery_price,
            delivery_price: ticker.delivery_price,
            current_funding: ticker.current_funding,
            funding_8h: ticker.funding_8h,
            underlying_price: ticker.underlying_price,
            underlying_index: ticker.underlying_index,
            interest_rate: ticker.interest_rate,
            bid_iv: ticker.bid_iv,
            ask_iv: ticker.ask_iv,
            mark_iv: ticker.mark_iv,
            greeks: ticker.greeks,
        }
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
        pub index_price: Option<Number<'a>>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Number of the trade within its instrument, one more each.
        pub trade_seq: u64,
        /// The mark price then.
        pub mark_price: Option<Number<'a>>,
        /// 0 up, 1 the same after up, 2 down, 3 the same after down.
        pub tick_direction: Option<u8>,
        /// The amount in contracts; of newer servers.
        pub contracts: Option<Number<'a>>,
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
        /// How many trades that one has.
        pub block_trade_leg_count: Option<u32>,
        /// Number of the request for quotes that it came of.
        pub block_rfq_id: Option<u64>,
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
