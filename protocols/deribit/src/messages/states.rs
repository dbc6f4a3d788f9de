//! States of the venue, of indices and of an account; candles.

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
        /// What the token is to allow.
        pub scope: Option<Text<'a>>,
    }
}

plain_message! {
    /// Params of `public/fork_token`: a token for a session of its own.
    pub struct ForkToken<'a> {
        /// The token of an earlier reply, of a session.
        pub refresh_token: Secret<'a>,
        /// The new session.
        pub session_name: Text<'a>,
    }
}

plain_message! {
    /// Result of `public/status`.
    pub struct Status<'a> {
        /// `true`, `partial` or `false`, as a text or not.
        pub locked: Value<'a>,
        /// The indices whose instruments cannot be traded.
        pub locked_indices: Option<List<'a, Text<'a>>>,
    }
}

plain_message! {
    /// Params of `public/get_order_book_by_instrument_id`.
    #[derive(Copy)]
    pub struct GetOrderBookByInstrumentId {
        /// The instrument's number.
        pub instrument_id: u64,
        /// Levels of each side: 1, 5, 10, 20, 50, 100, 1000 or 10000.
        pub depth: Option<u32>,
    }
}

plain_message! {
    /// Data of `perpetual.{instrument}.{interval}`.
    pub struct PerpetualState<'a> {
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The funding rate now.
        pub interest: Number<'a>,
        /// Price of the index.
        pub index_price: Option<Number<'a>>,
    }
}

plain_message! {
    /// Data of `chart.trades.{instrument}.{resolution}`: a candle as it is now.
    pub struct Candle<'a> {
        /// Its begin, in milliseconds since 1970.
        pub tick: u64,
        /// First price.
        pub open: Decimal,
        /// Highest price.
        pub high: Decimal,
        /// Lowest price.
        pub low: Decimal,
        /// Last price.
        pub close: Decimal,
        /// Traded, in the base coin.
        pub volume: Number<'a>,
        /// Traded, in the quote currency.
        pub cost: Number<'a>,
    }
}

plain_message! {
    /// Params of `public/get_tradingview_chart_data`.
    #[derive(Copy)]
    pub struct GetTradingviewChartData<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// From when on candles begin, in milliseconds since 1970.
        pub start_timestamp: u64,
        /// Until when they do, in milliseconds since 1970.
        pub end_timestamp: u64,
        /// Their length in minutes, or `1D`.
        pub resolution: Text<'a>,
    }
}

plain_message! {
    /// Result of `public/get_tradingview_chart_data`: of each list the element at one place is of the same candle, the
    /// earliest first.
    pub struct ChartData<'a> {
        /// `ok`, or `no_data`.
        pub status: Text<'a>,
        /// Their begins, in milliseconds since 1970.
        pub ticks: List<'a, u64>,
        /// First prices.
        pub open: List<'a, Decimal>,
        /// Highest prices.
        pub high: List<'a, Decimal>,
        /// Lowest prices.
        pub low: List<'a, Decimal>,
        /// Last prices.
        pub close: List<'a, Decimal>,
        /// Traded, in the base coin.
        pub volume: List<'a, Number<'a>>,
        /// Traded, in the quote currency.
        pub cost: List<'a, Number<'a>>,
    }
}

plain_message! {
    /// Data of `estimated_expiration_price.{index}`.
    pub struct EstimatedExpirationPrice<'a> {
        /// True in the half hour that the price is the mean of.
        pub is_estimated: bool,
        /// The price.
        pub price: Number<'a>,
        /// Until the next expiry.
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
        /// The price that profit is reckoned at.
        pub mark_price: Number<'a>,
        /// Its volatility, as a part of one.
        pub iv: Option<Number<'a>>,
    }
}

plain_message! {
    /// Data of `platform_state.public_methods_state`.
    #[derive(Copy)]
    pub struct PublicMethodsState {
        /// Whether clients who are not authenticated may ask.
        pub allow_unauthenticated_public_requests: bool,
    }
}

plain_message! {
    /// Data of `user.lock`.
    pub struct UserLock<'a> {
        /// True while the account cannot trade.
        pub locked: bool,
        /// In which currency; `ALL` for any.
        pub currency: Option<Text<'a>>,
    }
}

plain_message! {
    /// Data of `user.access_log`.
    pub struct AccessLog<'a> {
        /// Its number.
        pub id: Option<u64>,
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// Address of the client.
        pub ip: Option<Text<'a>>,
        /// What happened, as `success` or `failure`.
        pub result: Option<Text<'a>>,
        /// More about it.
        pub log: Option<Text<'a>>,
        /// Where the address is.
        pub country: Option<Text<'a>>,
        /// Where the address is.
        pub city: Option<Text<'a>>,
        /// Further members of what happened.
        pub data: Option<Value<'a>>,
    }
}
