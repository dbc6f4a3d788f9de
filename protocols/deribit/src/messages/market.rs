//! Market data other than the book: ticker, quotes, trades, indices, states.

use crate::codes::{Direction, InstrumentState, Liquidity};
use crate::envelope::Id;
use crate::field::{List, message};
use crate::messages::{BookUpdateKind, PriceAmount};
use crate::number::{Decimal, Number};
use crate::text::Text;

message! {
    /// Statistics of an instrument over the last 24 hours.
    pub struct TickerStats<'a> {
        /// Highest price.
        pub high: Option<Number<'a>> = null,
        /// Lowest price.
        pub low: Option<Number<'a>> = null,
        /// Change of the price, in percent.
        pub price_change: Option<Number<'a>> = null,
        /// Volume in the base coin.
        pub volume: Option<Number<'a>>,
        /// Volume in USD.
        pub volume_usd: Option<Number<'a>>,
        /// Volume in the quote currency.
        pub volume_notional: Option<Number<'a>>,
    }
}

message! {
    /// Sensitivities of an option's price.
    pub struct Greeks<'a> {
        /// Sensitivity to the underlying's price.
        pub delta: Option<Number<'a>>,
        /// Sensitivity of delta to the underlying's price.
        pub gamma: Option<Number<'a>>,
        /// Sensitivity to the interest rate.
        pub rho: Option<Number<'a>>,
        /// Sensitivity to time.
        pub theta: Option<Number<'a>>,
        /// Sensitivity to volatility.
        pub vega: Option<Number<'a>>,
    }
}

message! {
    /// Result of `public/ticker` and data of `ticker.{instrument}.{interval}`. An empty side of the book has
    /// an amount of 0, or neither price nor amount.
    pub struct Ticker<'a> {
        /// In `incremental_ticker.{instrument}`: complete, or only changed members.
        pub kind as "type": Option<BookUpdateKind>,
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// Trading state.
        pub state: Option<InstrumentState>,
        /// Statistics of the last 24 hours.
        pub stats: Option<TickerStats<'a>>,
        /// Index price.
        pub index_price: Option<Number<'a>>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Price of the last trade, if any.
        pub last_price: Option<Decimal>,
        /// Last settlement price.
        pub settlement_price: Option<Number<'a>>,
        /// Lower end of the trading band.
        pub min_price: Option<Decimal>,
        /// Upper end of the trading band.
        pub max_price: Option<Decimal>,
        /// Open interest, in amount.
        pub open_interest: Option<Number<'a>>,
        /// Mark price.
        pub mark_price: Option<Number<'a>>,
        /// Perpetuals: cumulative funding per unit of the amount.
        pub interest_value: Option<Number<'a>>,
        /// Best ask.
        pub best_ask_price: Option<Decimal>,
        /// Best bid.
        pub best_bid_price: Option<Decimal>,
        /// Estimated delivery price.
        pub estimated_delivery_price: Option<Number<'a>>,
        /// Amount of the best ask.
        pub best_ask_amount: Option<Decimal>,
        /// Amount of the best bid.
        pub best_bid_amount: Option<Decimal>,
        /// Perpetuals: current funding rate.
        pub current_funding: Option<Number<'a>>,
        /// Perpetuals: funding rate of 8 hours.
        pub funding_8h: Option<Number<'a>>,
        /// Closed instruments: delivery price.
        pub delivery_price: Option<Number<'a>>,
        /// Options: price of the underlying.
        pub underlying_price: Option<Number<'a>>,
        /// Options: name of the underlying.
        pub underlying_index: Option<Text<'a>>,
        /// Options: volatility of the mark price, in percent.
        pub mark_iv: Option<Number<'a>>,
        /// Options: interest rate used.
        pub interest_rate: Option<Number<'a>>,
        /// Options: sensitivities.
        pub greeks: Option<Greeks<'a>>,
        /// Options: volatility of the best bid, in percent.
        pub bid_iv: Option<Number<'a>>,
        /// Options: volatility of the best ask, in percent.
        pub ask_iv: Option<Number<'a>>,
    }
}

impl<'a> Ticker<'a> {
    /// Creates a ticker without values, to be filled in.
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
    /// Result of `public/get_order_book`: the best levels, and the book's number for later updates.
    pub struct OrderBook<'a> {
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// Trading state.
        pub state: Option<InstrumentState>,
        /// Statistics of the last 24 hours.
        pub stats: Option<TickerStats<'a>>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Number of the book, as in its channels.
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
        /// Index price.
        pub index_price: Option<Number<'a>>,
        /// Mark price.
        pub mark_price: Option<Number<'a>>,
        /// Price of the last trade, if any.
        pub last_price: Option<Decimal>,
        /// Last settlement price.
        pub settlement_price: Option<Number<'a>>,
        /// Lower end of the trading band.
        pub min_price: Option<Decimal>,
        /// Upper end of the trading band.
        pub max_price: Option<Decimal>,
        /// Open interest, in amount.
        pub open_interest: Option<Number<'a>>,
        /// Perpetuals: cumulative funding per unit of the amount.
        pub interest_value: Option<Number<'a>>,
        /// Estimated delivery price.
        pub estimated_delivery_price: Option<Number<'a>>,
        /// Closed instruments: delivery price.
        pub delivery_price: Option<Number<'a>>,
        /// Perpetuals: current funding rate.
        pub current_funding: Option<Number<'a>>,
        /// Perpetuals: funding rate of the last 8 hours.
        pub funding_8h: Option<Number<'a>>,
        /// Options: price of the underlying.
        pub underlying_price: Option<Number<'a>>,
        /// Options: name of the underlying, or `index_price`.
        pub underlying_index: Option<Text<'a>>,
        /// Options: interest rate.
        pub interest_rate: Option<Number<'a>>,
        /// Options: volatility of the best bid, in percent.
        pub bid_iv: Option<Number<'a>>,
        /// Options: volatility of the best ask, in percent.
        pub ask_iv: Option<Number<'a>>,
        /// Options: volatility of the mark price, in percent.
        pub mark_iv: Option<Number<'a>>,
        /// Options: sensitivities.
        pub greeks: Option<Greeks<'a>>,
    }
}

impl<'a> OrderBook<'a> {
    /// Creates a book from the best levels and the ticker.
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
    /// A public trade: an element of `trades.*` and of `public/get_last_trades_by_*`.
    pub struct PublicTrade<'a> {
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The price.
        pub price: Decimal,
        /// The amount.
        pub amount: Decimal,
        /// Side of the taker.
        pub direction: Direction,
        /// Index price at the time of the trade.
        pub index_price: Option<Number<'a>>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Number of the trade within its instrument, consecutive.
        pub trade_seq: u64,
        /// Mark price at the time of the trade.
        pub mark_price: Option<Number<'a>>,
        /// Tick direction: 0 up, 1 unchanged after up, 2 down, 3 unchanged after down.
        pub tick_direction: Option<u8>,
        /// Amount in contracts; only from newer servers.
        pub contracts: Option<Number<'a>>,
        /// Trade id of the combination.
        pub combo_trade_id: Option<Id<'a>>,
        /// Combination that the trade belongs to.
        pub combo_id: Option<Text<'a>>,
        /// Id of the trade.
        pub trade_id: Text<'a>,
        /// Options: volatility, in percent.
        pub iv: Option<Number<'a>>,
        /// Side that was liquidated, if any.
        pub liquidation: Option<Liquidity>,
        /// Block trade that the trade belongs to.
        pub block_trade_id: Option<Text<'a>>,
        /// Number of trades in the block trade.
        pub block_trade_leg_count: Option<u32>,
        /// Number of the block request for quotes that led to the trade.
        pub block_rfq_id: Option<u64>,
    }
}

message! {
    /// Result of `public/get_last_trades_by_*`.
    pub struct PublicTrades<'a> {
        /// The trades.
        pub trades: List<'a, PublicTrade<'a>>,
        /// True if the range has more trades.
        pub has_more: bool,
    }
}

message! {
    /// Data of `deribit_price_index.{index}`, and in other members the result of `public/get_index_price`.
    pub struct IndexPrice<'a> {
        /// Milliseconds since 1970; only in the channel.
        pub timestamp: Option<u64>,
        /// Price; only in the channel.
        pub price: Option<Decimal>,
        /// Index; only in the channel.
        pub index_name: Option<Text<'a>>,
        /// Price; only in the reply.
        pub index_price: Option<Decimal>,
        /// Estimated delivery price; only in the reply.
        pub estimated_delivery_price: Option<Decimal>,
    }
}

message! {
    /// Data of `instrument.state.{kind}.{currency}`.
    pub struct InstrumentStateChange<'a> {
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// New state.
        pub state: InstrumentState,
        /// The instrument.
        pub instrument_name: Text<'a>,
    }
}

message! {
    /// Data of `platform_state`.
    pub struct PlatformState<'a> {
        /// Index of the instruments concerned.
        pub price_index: Option<Text<'a>>,
        /// True while their trading is locked.
        pub locked: bool,
        /// True during maintenance; only from older servers.
        pub maintenance: bool,
    }
}
