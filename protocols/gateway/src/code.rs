//! Codes: named numbers. Another process may send any number; those without a name are shown as numbers.

use crate::field::{FieldKind, FieldType};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident: $raw:ty {
        $($(#[$code_doc:meta])* $code:ident = $value:literal $text:literal,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(
                Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, zerocopy::FromBytes,
                zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
            )]
            #[repr(transparent)]
            pub struct $name(pub $raw);

            impl $name {
                $($(#[$code_doc])* pub const $code: $name = $name($value);)*

                /// All codes that this version knows.
                pub const ALL: &'static [$name] = &[$($name::$code),*];

                /// Name of the code; `None` when this version knows none.
                #[must_use]
                pub const fn name(self) -> Option<&'static str> {
                    match self.0 {
                        $($value => Some($text),)*
                        _ => None,
                    }
                }

                /// Returns the code with this name.
                #[must_use]
                pub fn from_name(name: &str) -> Option<$name> {
                    $name::ALL.iter().copied().find(|code| code.name() == Some(name))
                }
            }

            impl std::fmt::Display for $name {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    match self.name() {
                        Some(name) => f.pad(name),
                        None => write!(f, "{}", self.0),
                    }
                }
            }

            impl std::fmt::Debug for $name {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    std::fmt::Display::fmt(self, f)
                }
            }

            impl FieldType for $name {
                const KIND: FieldKind = FieldKind::Code;

                fn show_field(&self, name: &str, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    if self.0 == 0 { Ok(()) } else { write!(f, " {name}={self}") }
                }
            }
        )*
    };
}

codes! {
    /// Kind of an event's body.
    EventKind: u16 {
        /// The client has started; created by the client's library.
        START = 1 "start",
        /// The client is stopping; created by the client's library.
        STOP = 2 "stop",
        /// A timer period that the client has set has elapsed; created by the client's library.
        TIMER = 3 "timer",
        /// The gateway has accepted the client; created by the client's library.
        CONNECTED = 4 "connected",
        /// The connection to the gateway is lost; created by the client's library.
        DISCONNECTED = 5 "disconnected",
        /// Broadcast events were overwritten before the client read them; created by the client's library.
        LAPPED = 6 "lapped",
        /// The gateway's heartbeat, which the client's library answers.
        PING = 7 "ping",
        /// Start of a snapshot, which continues up to [`EventKind::DOWNLOAD_END`].
        DOWNLOAD_BEGIN = 10 "download_begin",
        /// The snapshot is complete.
        DOWNLOAD_END = 11 "download_end",
        /// Market data, an account or an instrument is ready for use.
        READY = 12 "ready",
        /// State of the gateway and its venue connections.
        GATEWAY_STATUS = 13 "gateway_status",
        /// State of one of the gateway's connections.
        STREAM_STATUS = 14 "stream_status",
        /// Round-trip time of a ping to the venue.
        EXTERNAL_LATENCY = 15 "external_latency",
        /// Remaining capacity of a rate limit.
        RATE_LIMITS_UPDATE = 16 "rate_limits_update",
        /// A rate limit was exceeded.
        RATE_LIMIT_TRIGGER = 17 "rate_limit_trigger",
        /// The number of an account and its name.
        ACCOUNT_REFERENCE = 18 "account_reference",
        /// The number of an instrument and its static data.
        REFERENCE_DATA = 20 "reference_data",
        /// Tick sizes that depend on the price.
        TICK_SIZE_STEPS = 21 "tick_size_steps",
        /// Trading state of an instrument.
        MARKET_STATUS = 22 "market_status",
        /// Best bid and ask.
        TOP_OF_BOOK = 23 "top_of_book",
        /// Levels of a book: a snapshot or changes.
        MARKET_BY_PRICE = 24 "market_by_price",
        /// One trade of the market.
        TRADE_SUMMARY = 25 "trade_summary",
        /// Figures of an instrument: mark price, open interest, funding, and so on.
        STATISTICS = 26 "statistics",
        /// One candle.
        TIME_SERIES = 27 "time_series",
        /// State of a request: one ack from the gateway, one from the venue.
        ORDER_ACK = 30 "order_ack",
        /// State of an order.
        ORDER_UPDATE = 31 "order_update",
        /// One fill of the client's own order.
        TRADE_UPDATE = 32 "trade_update",
        /// A position.
        POSITION_UPDATE = 33 "position_update",
        /// Funds of an account in one currency.
        FUNDS_UPDATE = 34 "funds_update",
        /// Result of a mass quote.
        MASS_QUOTE_ACK = 35 "mass_quote_ack",
        /// Result of a request to cancel quotes.
        CANCEL_QUOTES_ACK = 36 "cancel_quotes_ack",
        /// Result of a request to cancel all orders.
        CANCEL_ALL_ACK = 37 "cancel_all_ack",
        /// The limits that the gateway enforces for an account.
        RISK_LIMITS = 38 "risk_limits",
        /// A message from another client.
        CUSTOM_MESSAGE = 40 "custom_message",
    }

    /// Kind of a request's body.
    RequestKind: u16 {
        /// Enter an order.
        CREATE_ORDER = 1 "create_order",
        /// Change price or quantity of an order.
        MODIFY_ORDER = 2 "modify_order",
        /// Cancel an order.
        CANCEL_ORDER = 3 "cancel_order",
        /// Cancel all orders of an account, or those of an instrument.
        CANCEL_ALL = 4 "cancel_all",
        /// Enter or replace a bid and an ask.
        MASS_QUOTE = 5 "mass_quote",
        /// Cancel quotes.
        CANCEL_QUOTES = 6 "cancel_quotes",
        /// The answer to [`EventKind::PING`].
        PONG = 7 "pong",
        /// Send all market data again, after broadcast events were lost.
        DOWNLOAD_MARKET_DATA = 8 "download_market_data",
        /// A message to the other clients.
        CUSTOM_MESSAGE = 9 "custom_message",
        /// Publish the limits of an account; for risk managers only.
        SET_RISK_LIMITS = 10 "set_risk_limits",
    }

    /// Side of the market.
    Side: u8 {
        /// Buy; the bids.
        BUY = 1 "buy",
        /// Sell; the asks.
        SELL = 2 "sell",
    }

    /// Order type.
    OrderType: u8 {
        /// A limit order: at its price or better.
        LIMIT = 1 "limit",
        /// A market order: at any price.
        MARKET = 2 "market",
        /// A limit order once the stop price is reached.
        STOP_LIMIT = 3 "stop_limit",
        /// A market order once the stop price is reached.
        STOP_MARKET = 4 "stop_market",
        /// A limit order once the stop price is reached, on the side of a profit.
        TAKE_LIMIT = 5 "take_limit",
        /// A market order once the stop price is reached, on the side of a profit.
        TAKE_MARKET = 6 "take_market",
        /// A market order whose unfilled rest stays as a limit order at the price of its last fill.
        MARKET_LIMIT = 7 "market_limit",
        /// A market order once the price has retreated from its best by the stop price's distance.
        TRAILING_STOP = 8 "trailing_stop",
    }

    /// Time in force.
    TimeInForce: u8 {
        /// Good until canceled.
        GTC = 1 "gtc",
        /// Good until the venue's day ends.
        DAY = 2 "day",
        /// Immediate or cancel: what is not filled at once is canceled.
        IOC = 3 "ioc",
        /// Fill or kill: filled completely at once, or canceled.
        FOK = 4 "fok",
    }

    /// Price that triggers a stop order.
    Trigger: u8 {
        /// The index.
        INDEX = 1 "index",
        /// The mark price.
        MARK = 2 "mark",
        /// The last trade.
        LAST = 3 "last",
    }

    /// Order instructions, as bits.
    ExecutionFlags: u16 {
        /// The order never takes liquidity: its price is moved behind the other side.
        POST_ONLY = 1 "post_only",
        /// With [`ExecutionFlags::POST_ONLY`]: rejected instead of moved.
        REJECT_POST_ONLY = 2 "reject_post_only",
        /// The order can only reduce a position.
        REDUCE_ONLY = 4 "reduce_only",
        /// Market maker protection counts the order.
        MMP = 8 "mmp",
    }

    /// Status of an order.
    OrderStatus: u8 {
        /// In flight to the venue.
        SENT = 1 "sent",
        /// Resting, or waiting for its trigger.
        WORKING = 2 "working",
        /// Filled.
        COMPLETED = 3 "completed",
        /// Canceled.
        CANCELED = 4 "canceled",
        /// Rejected.
        REJECTED = 5 "rejected",
        /// Expired.
        EXPIRED = 6 "expired",
        /// Waiting for its trigger.
        UNTRIGGERED = 7 "untriggered",
        /// The status is unknown, and the gateway queries the venue.
        UNKNOWN = 8 "unknown",
    }

    /// Source of an ack.
    Origin: u8 {
        /// The client's library.
        CLIENT = 1 "client",
        /// The gateway.
        GATEWAY = 2 "gateway",
        /// The venue.
        EXCHANGE = 3 "exchange",
    }

    /// Result of a request.
    AckStatus: u8 {
        /// The gateway has checked it, and its connection accepts it; it is encoded and queued right after.
        RECEIVED = 1 "received",
        /// The venue accepted the request.
        ACCEPTED = 2 "accepted",
        /// The request was rejected and has had no effect.
        REJECTED = 3 "rejected",
        /// The venue did not answer in time, or the connection was lost; an order update follows.
        TIMEOUT = 4 "timeout",
    }

    /// Kind of request that an ack belongs to.
    AckType: u8 {
        /// [`RequestKind::CREATE_ORDER`].
        CREATE = 1 "create",
        /// [`RequestKind::MODIFY_ORDER`].
        MODIFY = 2 "modify",
        /// [`RequestKind::CANCEL_ORDER`].
        CANCEL = 3 "cancel",
        /// [`RequestKind::CANCEL_ALL`].
        CANCEL_ALL = 4 "cancel_all",
        /// [`RequestKind::MASS_QUOTE`].
        MASS_QUOTE = 5 "mass_quote",
        /// [`RequestKind::CANCEL_QUOTES`].
        CANCEL_QUOTES = 6 "cancel_quotes",
        /// [`RequestKind::SET_RISK_LIMITS`].
        SET_RISK_LIMITS = 7 "set_risk_limits",
        /// [`RequestKind::CUSTOM_MESSAGE`]; acknowledged only if it is rejected.
        CUSTOM_MESSAGE = 8 "custom_message",
        /// [`RequestKind::DOWNLOAD_MARKET_DATA`]; this gateway neither acknowledges nor rejects it.
        DOWNLOAD_MARKET_DATA = 9 "download_market_data",
    }

    /// Reason of a rejection. Zero: not rejected.
    ErrorCode: u16 {
        /// The kind or the layout of the request is unknown.
        MALFORMED = 1 "malformed",
        /// The gateway has no connection to the venue that can accept the request.
        NOT_READY = 2 "not_ready",
        /// The user may not trade for this account.
        UNKNOWN_ACCOUNT = 3 "unknown_account",
        /// There is no such instrument, or the user may not trade it.
        UNKNOWN_SYMBOL = 4 "unknown_symbol",
        /// The user has no permission to trade, only to watch.
        NOT_PERMITTED = 5 "not_permitted",
        /// The user sends too many requests.
        RATE_LIMITED = 6 "rate_limited",
        /// The user has sent too many requests and is banned for a while.
        BANNED = 7 "banned",
        /// There is no such order of this user, or the order has ended.
        UNKNOWN_ORDER = 8 "unknown_order",
        /// The user has an order with this id that is open or ended recently.
        DUPLICATE_ORDER = 9 "duplicate_order",
        /// The price is not valid for the instrument.
        INVALID_PRICE = 10 "invalid_price",
        /// The quantity is not valid for the instrument.
        INVALID_QUANTITY = 11 "invalid_quantity",
        /// The side, type, time in force or flags are unknown or inconsistent.
        INVALID_TERMS = 12 "invalid_terms",
        /// The quantity exceeds the gateway's limit.
        MAX_ORDER_QUANTITY = 13 "max_order_quantity",
        /// The notional exceeds the gateway's limit.
        MAX_ORDER_NOTIONAL = 14 "max_order_notional",
        /// The number of open orders has reached the gateway's limit.
        MAX_OPEN_ORDERS = 15 "max_open_orders",
        /// The kill switch is on: only cancels pass.
        KILLED = 16 "killed",
        /// A request for the same order is still in flight.
        TOO_LATE = 17 "too_late",
        /// The gateway's own table or buffer is full.
        BUSY = 18 "busy",
        /// The venue or the trading transport does not support this.
        NOT_SUPPORTED = 19 "not_supported",
        /// The venue rejected the request; the text has the reason.
        VENUE = 20 "venue",
        /// The venue's margin check rejected the request.
        INSUFFICIENT_FUNDS = 21 "insufficient_funds",
        /// The venue did not answer in time.
        TIMEOUT = 22 "timeout",
        /// The connection to the venue was lost before an answer arrived.
        CONNECTION_LOST = 23 "connection_lost",
        /// The gateway runs in dry-run mode and only shows the effect.
        DRY_RUN = 24 "dry_run",
        /// The gateway is stopping.
        STOPPING = 25 "stopping",
        /// The venue's own rate limit rejected the request.
        VENUE_RATE_LIMITED = 26 "venue_rate_limited",
        /// A post-only order would have taken liquidity.
        WOULD_TAKE = 27 "would_take",
        /// The notional cannot be computed, for example for a market order without a mark price.
        NO_REFERENCE_PRICE = 28 "no_reference_price",
        /// No risk manager has published limits for the account yet.
        NO_RISK_LIMITS = 29 "no_risk_limits",
        /// The venue has an open order in the instrument that the gateway cannot decode and may own.
        UNREADABLE_ORDER = 30 "unreadable_order",
        /// The client's id of the order is 0 or above 2^63 - 1.
        INVALID_ORDER_ID = 31 "invalid_order_id",
    }

    /// Maker or taker.
    Liquidity: u8 {
        /// The order rested in the book.
        MAKER = 1 "maker",
        /// The order took resting liquidity.
        TAKER = 2 "taker",
    }

    /// Kind of update: snapshot or change.
    UpdateKind: u8 {
        /// The current state, as part of a download.
        SNAPSHOT = 1 "snapshot",
        /// A change.
        INCREMENTAL = 2 "incremental",
        /// Earlier updates no longer hold because the connection to the venue is lost.
        STALE = 3 "stale",
    }

    /// Kind of the levels in a [`MarketByPrice`](crate::MarketByPrice).
    BookUpdate: u8 {
        /// The first levels of a whole book: discard the earlier ones.
        SNAPSHOT = 1 "snapshot",
        /// More levels of the whole book, or changes; quantity 0 removes a level.
        INCREMENTAL = 2 "incremental",
        /// The book is unreliable until the next snapshot.
        STALE = 3 "stale",
    }

    /// Kind of instrument.
    InstrumentKind: u8 {
        /// A future without expiry.
        PERPETUAL = 1 "perpetual",
        /// A future.
        FUTURE = 2 "future",
        /// An option.
        OPTION = 3 "option",
        /// A pair of currencies.
        SPOT = 4 "spot",
        /// A combination of futures.
        FUTURE_COMBO = 5 "future_combo",
        /// A combination of options.
        OPTION_COMBO = 6 "option_combo",
    }

    /// Type of an option.
    OptionType: u8 {
        /// The right to buy.
        CALL = 1 "call",
        /// The right to sell.
        PUT = 2 "put",
    }

    /// Trading state of an instrument.
    MarketState: u8 {
        /// Trading.
        OPEN = 1 "open",
        /// Not trading for now.
        HALTED = 2 "halted",
        /// Expired, or in settlement.
        CLOSED = 3 "closed",
        /// Known, but not trading yet.
        PRE_OPEN = 4 "pre_open",
    }

    /// Price change relative to the previous trade, as the venue reports it.
    TickDirection: u8 {
        /// Up.
        PLUS = 1 "plus",
        /// Unchanged, after an up-tick.
        ZERO_PLUS = 2 "zero_plus",
        /// Down.
        MINUS = 3 "minus",
        /// Unchanged, after a down-tick.
        ZERO_MINUS = 4 "zero_minus",
    }

    /// Kind of figure. Ratios are plain numbers (0.01 is a hundredth), implied volatilities are in percent.
    StatisticKind: u32 {
        /// Mark price.
        MARK_PRICE = 1 "mark_price",
        /// Index price.
        INDEX_PRICE = 2 "index_price",
        /// Price of the last trade.
        LAST_PRICE = 3 "last_price",
        /// Number of open contracts.
        OPEN_INTEREST = 4 "open_interest",
        /// Funding of the current interval.
        CURRENT_FUNDING = 5 "current_funding",
        /// Funding over eight hours.
        FUNDING_8H = 6 "funding_8h",
        /// Interest derived by the venue.
        INTEREST_VALUE = 7 "interest_value",
        /// Estimated delivery price at present.
        ESTIMATED_DELIVERY_PRICE = 8 "estimated_delivery_price",
        /// Delivery price.
        DELIVERY_PRICE = 9 "delivery_price",
        /// Price of the last settlement.
        SETTLEMENT_PRICE = 10 "settlement_price",
        /// Lowest price that may be bid or asked.
        MIN_PRICE = 11 "min_price",
        /// Highest price that may be bid or asked.
        MAX_PRICE = 12 "max_price",
        /// Highest price in 24 hours.
        HIGH = 13 "high",
        /// Lowest price in 24 hours.
        LOW = 14 "low",
        /// Volume in 24 hours in the base currency.
        VOLUME = 15 "volume",
        /// Volume in 24 hours in US dollars.
        VOLUME_USD = 16 "volume_usd",
        /// Price change in 24 hours, in percent.
        PRICE_CHANGE = 17 "price_change",
        /// Implied volatility of the bid.
        BID_IV = 18 "bid_iv",
        /// Implied volatility of the ask.
        ASK_IV = 19 "ask_iv",
        /// Implied volatility of the mark price.
        MARK_IV = 20 "mark_iv",
        /// Price of the underlying.
        UNDERLYING_PRICE = 21 "underlying_price",
        /// Change of the option's price per unit change of the underlying's price.
        DELTA = 22 "delta",
        /// Change of delta per unit change of the underlying's price.
        GAMMA = 23 "gamma",
        /// Change of the option's price per day.
        THETA = 24 "theta",
        /// Change of the option's price per percent of volatility.
        VEGA = 25 "vega",
        /// Change of the option's price per percent of interest.
        RHO = 26 "rho",
        /// Interest rate used for the option's mark price.
        INTEREST_RATE = 27 "interest_rate",
        /// Volume in 24 hours as contract value.
        VOLUME_NOTIONAL = 28 "volume_notional",
    }

    /// State of a connection.
    ConnectionStatus: u8 {
        /// Not connected.
        DISCONNECTED = 1 "disconnected",
        /// Connecting.
        CONNECTING = 2 "connecting",
        /// The login was sent.
        LOGIN_SENT = 3 "login_sent",
        /// Fetching the state.
        DOWNLOADING = 4 "downloading",
        /// Ready for use.
        READY = 5 "ready",
        /// Waiting before the next attempt.
        WAITING = 6 "waiting",
    }

    /// State of the gateway.
    GatewayState: u8 {
        /// Not connected to its venue.
        DISCONNECTED = 1 "disconnected",
        /// Connected; fetching orders and positions from the venue.
        RECONCILING = 2 "reconciling",
        /// Market data only; trading is not possible or not wanted.
        MARKET_DATA = 3 "market_data",
        /// Ready to send orders.
        READY = 4 "ready",
        /// The kill switch is on.
        KILLED = 5 "killed",
        /// Stopping.
        STOPPING = 6 "stopping",
    }

    /// Transport that the gateway uses for trading.
    Transport: u8 {
        /// JSON-RPC over WebSocket.
        WEB_SOCKET = 1 "ws",
        /// FIX 4.4.
        FIX = 2 "fix",
    }

    /// Scope of a download and of readiness.
    ReadyScope: u8 {
        /// Market data: all instruments have been sent.
        MARKET_DATA = 1 "market_data",
        /// The event's account: its orders, positions and funds have been sent, and requests are accepted.
        ACCOUNT = 2 "account",
        /// The event's instrument: its book is complete.
        INSTRUMENT = 3 "instrument",
    }

    /// Owner of a rate limit.
    RateLimitKind: u8 {
        /// The gateway's limit for the user.
        USER = 1 "user",
        /// The venue's credits for the account.
        VENUE = 2 "venue",
    }

    /// Consequence of an exceeded rate limit.
    RateLimitReason: u8 {
        /// The gateway rejected the request.
        REFUSED = 1 "refused",
        /// The user is banned until the event's time.
        BANNED = 2 "banned",
        /// The venue rejected the request.
        VENUE_REFUSED = 3 "venue_refused",
    }
}

impl ExecutionFlags {
    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: ExecutionFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the bits of both.
    #[must_use]
    pub const fn with(self, other: ExecutionFlags) -> ExecutionFlags {
        ExecutionFlags(self.0 | other.0)
    }
}

impl OrderStatus {
    /// Whether the order can still trade, or might.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(
            self,
            OrderStatus::SENT | OrderStatus::WORKING | OrderStatus::UNTRIGGERED | OrderStatus::UNKNOWN
        )
    }
}

impl Side {
    /// Returns the other side.
    #[must_use]
    pub const fn opposite(self) -> Side {
        match self {
            Side::BUY => Side::SELL,
            Side::SELL => Side::BUY,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_name_and_one_number() {
        for (index, kind) in EventKind::ALL.iter().enumerate() {
            let name = kind.name().expect("all have names");
            assert_eq!(EventKind::from_name(name), Some(*kind));
            assert!(EventKind::ALL[..index].iter().all(|other| other.0 < kind.0));
        }
        assert_eq!((EventKind(999).name(), EventKind(999).to_string().as_str()), (None, "999"));
        assert_eq!(EventKind::from_name("nonsense"), None);
    }

    #[test]
    fn an_order_is_open_as_long_as_it_may_trade() {
        let open: Vec<_> = OrderStatus::ALL.iter().filter(|status| status.is_open()).collect();
        assert_eq!(
            open,
            [&OrderStatus::SENT, &OrderStatus::WORKING, &OrderStatus::UNTRIGGERED, &OrderStatus::UNKNOWN]
        );
    }
}
