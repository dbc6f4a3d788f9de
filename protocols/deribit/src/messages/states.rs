//! States of the venue, of indices and of an account, and candles.

use crate::field::{List, plain_message};
use crate::number::{Decimal, Number};
use crate::scan::Value;
use crate::text::{Secret, Text};

plain_message! {
    /// Params of `public/exchange_token`: a token for another account.
    pub struct ExchangeToken<'a> {
        /// The token of an earlier reply.
        pub refresh_token: Secret<'a>,
        /// The account.
        pub subject_id: u64,
        /// Requested scope of the token.
        pub scope: Option<Text<'a>>,
    }
}

plain_message! {
    /// Params of `public/fork_token`: a token for a separate session.
    pub struct ForkToken<'a> {
        /// Refresh token of an earlier reply with a session.
        pub refresh_token: Secret<'a>,
        /// Name of the new session.
        pub session_name: Text<'a>,
    }
}

plain_message! {
    /// Result of `public/status`.
    pub struct Status<'a> {
        /// `true`, `partial` or `false`, either as text or as JSON literal.
        pub locked: Value<'a>,
        /// Indices with locked instruments.
        pub locked_indices: Option<List<'a, Text<'a>>>,
    }
}

plain_message! {
    /// Params of `public/get_order_book_by_instrument_id`.
    #[derive(Copy)]
    pub struct GetOrderBookByInstrumentId {
        /// The venue's number of the instrument.
        pub instrument_id: u64,
        /// Levels per side: 1, 5, 10, 20, 50, 100, 1000 or 10000.
        pub depth: Option<u32>,
    }
}

plain_message! {
    /// Data of `perpetual.{instrument}.{interval}`.
    pub struct PerpetualState<'a> {
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// Current funding rate.
        pub interest: Number<'a>,
        /// Index price.
        pub index_price: Option<Number<'a>>,
    }
}

plain_message! {
    /// Data of `chart.trades.{instrument}.{resolution}`: the current state of a candle.
    pub struct Candle<'a> {
        /// Start of the candle, in milliseconds since 1970.
        pub tick: u64,
        /// Opening price.
        pub open: Decimal,
        /// Highest price.
        pub high: Decimal,
        /// Lowest price.
        pub low: Decimal,
        /// Closing price.
        pub close: Decimal,
        /// Volume in the base coin.
        pub volume: Number<'a>,
        /// Volume in the quote currency.
        pub cost: Number<'a>,
    }
}

plain_message! {
    /// Params of `public/get_tradingview_chart_data`.
    #[derive(Copy)]
    pub struct GetTradingviewChartData<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Earliest start of a candle, in milliseconds since 1970.
        pub start_timestamp: u64,
        /// Latest start of a candle, in milliseconds since 1970.
        pub end_timestamp: u64,
        /// Length of the candles in minutes, or `1D`.
        pub resolution: Text<'a>,
    }
}

plain_message! {
    /// Result of `public/get_tradingview_chart_data`. Elements at the same position of all lists belong to
    /// the same candle, earliest first.
    pub struct ChartData<'a> {
        /// `ok`, or `no_data`.
        pub status: Text<'a>,
        /// Starts of the candles, in milliseconds since 1970.
        pub ticks: List<'a, u64>,
        /// Opening prices.
        pub open: List<'a, Decimal>,
        /// Highest prices.
        pub high: List<'a, Decimal>,
        /// Lowest prices.
        pub low: List<'a, Decimal>,
        /// Closing prices.
        pub close: List<'a, Decimal>,
        /// Volumes in the base coin.
        pub volume: List<'a, Number<'a>>,
        /// Volumes in the quote currency.
        pub cost: List<'a, Number<'a>>,
    }
}

plain_message! {
    /// Data of `estimated_expiration_price.{index}`.
    pub struct EstimatedExpirationPrice<'a> {
        /// True during the half hour over which the price is averaged.
        pub is_estimated: bool,
        /// The price.
        pub price: Number<'a>,
        /// Seconds until the next expiry.
        pub seconds: u64,
    }
}

plain_message! {
    /// Element of the data of `markprice.options.{index}`.
    pub struct OptionMarkPrice<'a> {
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The option.
        pub instrument_name: Text<'a>,
        /// Mark price.
        pub mark_price: Number<'a>,
        /// Implied volatility, as a fraction.
        pub iv: Option<Number<'a>>,
    }
}

plain_message! {
    /// Data of `platform_state.public_methods_state`.
    #[derive(Copy)]
    pub struct PublicMethodsState {
        /// Whether unauthenticated clients may call public methods.
        pub allow_unauthenticated_public_requests: bool,
    }
}

plain_message! {
    /// Data of `user.lock`.
    pub struct UserLock<'a> {
        /// True while the account cannot trade.
        pub locked: bool,
        /// Currency of the lock; `ALL` for all currencies.
        pub currency: Option<Text<'a>>,
    }
}

plain_message! {
    /// Data of `user.access_log`.
    pub struct AccessLog<'a> {
        /// Number of the entry.
        pub id: Option<u64>,
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// Address of the client.
        pub ip: Option<Text<'a>>,
        /// Result of the event, such as `success` or `failure`.
        pub result: Option<Text<'a>>,
        /// Description of the event.
        pub log: Option<Text<'a>>,
        /// Country of the address.
        pub country: Option<Text<'a>>,
        /// City of the address.
        pub city: Option<Text<'a>>,
        /// Additional members of the event.
        pub data: Option<Value<'a>>,
    }
}
