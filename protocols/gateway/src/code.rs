//! Codes: numbers that have names. Of another process any number may come; those without a name are shown as numbers.

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

                /// Those that this version knows.
                pub const ALL: &'static [$name] = &[$($name::$code),*];

                /// Its name; `None` when this version knows none.
                #[must_use]
                pub const fn name(self) -> Option<&'static str> {
                    match self.0 {
                        $($value => Some($text),)*
                        _ => None,
                    }
                }

                /// The code with this name.
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
    /// What an event's body is.
    EventKind: u16 {
        /// The client began; made by the client's library.
        START = 1 "start",
        /// The client ends; made by the client's library.
        STOP = 2 "stop",
        /// A period of the client's own has passed; made by the client's library.
        TIMER = 3 "timer",
        /// The gateway has let the client in; made by the client's library.
        CONNECTED = 4 "connected",
        /// The connection with the gateway is gone; made by the client's library.
        DISCONNECTED = 5 "disconnected",
        /// Broadcast events were overwritten before the client read them; made by the client's library.
        LAPPED = 6 "lapped",
        /// The gateway's sign of life, which the client's library answers.
        PING = 7 "ping",
        /// What follows is the state as it was, up to [`EventKind::DOWNLOAD_END`].
        DOWNLOAD_BEGIN = 10 "download_begin",
        /// The state is complete.
        DOWNLOAD_END = 11 "download_end",
        /// Market data, an account or an instrument can be worked with.
        READY = 12 "ready",
        /// How the gateway stands with its venue.
        GATEWAY_STATUS = 13 "gateway_status",
        /// How one of its connections stands.
        STREAM_STATUS = 14 "stream_status",
        /// How long the venue took to answer a ping.
        EXTERNAL_LATENCY = 15 "external_latency",
        /// What is left of a limit on requests.
        RATE_LIMITS_UPDATE = 16 "rate_limits_update",
        /// A limit on requests was hit.
        RATE_LIMIT_TRIGGER = 17 "rate_limit_trigger",
        /// The number of an account, with its name.
        ACCOUNT_REFERENCE = 18 "account_reference",
        /// The number of an instrument, with what is fixed about it.
        REFERENCE_DATA = 20 "reference_data",
        /// Tick sizes that depend on the price.
        TICK_SIZE_STEPS = 21 "tick_size_steps",
        /// Whether an instrument trades.
        MARKET_STATUS = 22 "market_status",
        /// Best bid and ask.
        TOP_OF_BOOK = 23 "top_of_book",
        /// Levels of a book, whole or changed.
        MARKET_BY_PRICE = 24 "market_by_price",
        /// One trade of the market.
        TRADE_SUMMARY = 25 "trade_summary",
        /// Figures of an instrument: mark price, open interest, funding, and so on.
        STATISTICS = 26 "statistics",
        /// One candle.
        TIME_SERIES = 27 "time_series",
        /// What became of a request: twice, from the gateway and from the venue.
        ORDER_ACK = 30 "order_ack",
        /// How an order stands.
        ORDER_UPDATE = 31 "order_update",
        /// One fill of an own order.
        TRADE_UPDATE = 32 "trade_update",
        /// A position.
        POSITION_UPDATE = 33 "position_update",
        /// What an account holds of a currency.
        FUNDS_UPDATE = 34 "funds_update",
        /// What became of a mass quote.
        MASS_QUOTE_ACK = 35 "mass_quote_ack",
        /// What became of a request to cancel quotes.
        CANCEL_QUOTES_ACK = 36 "cancel_quotes_ack",
        /// What became of a request to cancel all orders.
        CANCEL_ALL_ACK = 37 "cancel_all_ack",
        /// The caps that the gateway holds an account to.
        RISK_LIMITS = 38 "risk_limits",
        /// What another client said.
        CUSTOM_MESSAGE = 40 "custom_message",
    }

    /// What a request's body is.
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
        /// Send market data anew, after broadcast events were lost.
        DOWNLOAD_MARKET_DATA = 8 "download_market_data",
        /// Something for the other clients.
        CUSTOM_MESSAGE = 9 "custom_message",
        /// Publish the limits of an account: for risk managers.
        SET_RISK_LIMITS = 10 "set_risk_limits",
    }

    /// Which side of the market.
    Side: u8 {
        /// Buys; the bids.
        BUY = 1 "buy",
        /// Sells; the asks.
        SELL = 2 "sell",
    }

    /// How an order's price is set.
    OrderType: u8 {
        /// At its price or better.
        LIMIT = 1 "limit",
        /// At whatever price there is.
        MARKET = 2 "market",
        /// A limit order once the stop price is reached.
        STOP_LIMIT = 3 "stop_limit",
        /// A market order once the stop price is reached.
        STOP_MARKET = 4 "stop_market",
        /// A limit order once the stop price is reached, on the side of a profit.
        TAKE_LIMIT = 5 "take_limit",
        /// A market order once the stop price is reached, on the side of a profit.
        TAKE_MARKET = 6 "take_market",
        /// A market order whose rest stays as a limit order at the price of its last fill.
        MARKET_LIMIT = 7 "market_limit",
        /// A market order once the price has come back from its best by the stop price's distance.
        TRAILING_STOP = 8 "trailing_stop",
    }

    /// How long an order rests.
    TimeInForce: u8 {
        /// Until it is canceled.
        GTC = 1 "gtc",
        /// Until the venue's day ends.
        DAY = 2 "day",
        /// Not at all: what is not filled at once is canceled.
        IOC = 3 "ioc",
        /// Not at all, and all of it or nothing.
        FOK = 4 "fok",
    }

    /// Whose price wakes a stop.
    Trigger: u8 {
        /// The index.
        INDEX = 1 "index",
        /// The mark price.
        MARK = 2 "mark",
        /// The last trade.
        LAST = 3 "last",
    }

    /// What an order must or must not do; bits.
    ExecutionFlags: u16 {
        /// It never takes: its price is moved behind the other side.
        POST_ONLY = 1 "post_only",
        /// With [`ExecutionFlags::POST_ONLY`]: refused instead of moved.
        REJECT_POST_ONLY = 2 "reject_post_only",
        /// It only brings a position nearer to zero.
        REDUCE_ONLY = 4 "reduce_only",
        /// Market maker protection counts it.
        MMP = 8 "mmp",
    }

    /// How an order stands.
    OrderStatus: u8 {
        /// On its way to the venue.
        SENT = 1 "sent",
        /// It rests, or waits for its trigger.
        WORKING = 2 "working",
        /// Filled.
        COMPLETED = 3 "completed",
        /// Canceled.
        CANCELED = 4 "canceled",
        /// Refused.
        REJECTED = 5 "rejected",
        /// Its time was over.
        EXPIRED = 6 "expired",
        /// It waits for its trigger.
        UNTRIGGERED = 7 "untriggered",
        /// The gateway lost its trace and asks the venue.
        UNKNOWN = 8 "unknown",
    }

    /// Who says what became of a request.
    Origin: u8 {
        /// The client's library.
        CLIENT = 1 "client",
        /// The gateway.
        GATEWAY = 2 "gateway",
        /// The venue.
        EXCHANGE = 3 "exchange",
    }

    /// What became of a request.
    AckStatus: u8 {
        /// The gateway has checked the request and its connection takes it; it is encoded and queued right after.
        RECEIVED = 1 "received",
        /// The venue took it.
        ACCEPTED = 2 "accepted",
        /// It was refused, and has had no effect.
        REJECTED = 3 "rejected",
        /// The venue has not answered in time, or the connection was lost; an order update will say.
        TIMEOUT = 4 "timeout",
    }

    /// Which request an ack is about.
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
        /// [`RequestKind::CUSTOM_MESSAGE`]; acknowledged only where it is refused.
        CUSTOM_MESSAGE = 8 "custom_message",
        /// [`RequestKind::DOWNLOAD_MARKET_DATA`]; this gateway neither acknowledges nor refuses it.
        DOWNLOAD_MARKET_DATA = 9 "download_market_data",
    }

    /// Why a request was refused. Zero: it was not.
    ErrorCode: u16 {
        /// No request of this kind and layout is known.
        MALFORMED = 1 "malformed",
        /// The gateway has no connection to the venue that can take it.
        NOT_READY = 2 "not_ready",
        /// The user may not trade for this account.
        UNKNOWN_ACCOUNT = 3 "unknown_account",
        /// There is no such instrument, or the user may not trade it.
        UNKNOWN_SYMBOL = 4 "unknown_symbol",
        /// The user may only watch.
        NOT_PERMITTED = 5 "not_permitted",
        /// The user sends too much.
        RATE_LIMITED = 6 "rate_limited",
        /// The user has sent too much and is shut out for a while.
        BANNED = 7 "banned",
        /// There is no such order of this user, or it has ended.
        UNKNOWN_ORDER = 8 "unknown_order",
        /// The user has an order of this id that is open, or ended not long ago.
        DUPLICATE_ORDER = 9 "duplicate_order",
        /// The price is no price of the instrument.
        INVALID_PRICE = 10 "invalid_price",
        /// The quantity is none of the instrument.
        INVALID_QUANTITY = 11 "invalid_quantity",
        /// The side, type, time in force or flags are unknown, or do not fit each other.
        INVALID_TERMS = 12 "invalid_terms",
        /// More quantity than the gateway's cap.
        MAX_ORDER_QUANTITY = 13 "max_order_quantity",
        /// More notional than the gateway's cap.
        MAX_ORDER_NOTIONAL = 14 "max_order_notional",
        /// As many open orders as the gateway's cap.
        MAX_OPEN_ORDERS = 15 "max_open_orders",
        /// The kill switch is on: only cancels pass.
        KILLED = 16 "killed",
        /// A request of the same order is still on its way.
        TOO_LATE = 17 "too_late",
        /// The gateway's own table or buffer is full.
        BUSY = 18 "busy",
        /// The venue cannot do this, or the transport that trades cannot.
        NOT_SUPPORTED = 19 "not_supported",
        /// The venue refused it; the text says why.
        VENUE = 20 "venue",
        /// The venue's margin check refused it.
        INSUFFICIENT_FUNDS = 21 "insufficient_funds",
        /// The venue gave no answer in time.
        TIMEOUT = 22 "timeout",
        /// The connection to the venue was lost before an answer came.
        CONNECTION_LOST = 23 "connection_lost",
        /// The gateway only shows what it would do: a dry run.
        DRY_RUN = 24 "dry_run",
        /// The gateway is stopping.
        STOPPING = 25 "stopping",
        /// The venue's own limit on requests refused it.
        VENUE_RATE_LIMITED = 26 "venue_rate_limited",
        /// A post-only order would have taken.
        WOULD_TAKE = 27 "would_take",
        /// No notional follows from what is known, as for a market order without a mark price.
        NO_REFERENCE_PRICE = 28 "no_reference_price",
        /// No risk manager has published limits for the account yet.
        NO_RISK_LIMITS = 29 "no_risk_limits",
        /// The venue has an open order in the instrument that the gateway cannot read, and that may be its own.
        UNREADABLE_ORDER = 30 "unreadable_order",
        /// The client's id of the order is 0 or above 2^63 - 1.
        INVALID_ORDER_ID = 31 "invalid_order_id",
    }

    /// Whether a trade took or gave.
    Liquidity: u8 {
        /// It rested.
        MAKER = 1 "maker",
        /// It took what rested.
        TAKER = 2 "taker",
    }

    /// Whether an update is a state or a change of one.
    UpdateKind: u8 {
        /// The state as it is, in a download.
        SNAPSHOT = 1 "snapshot",
        /// Something has changed.
        INCREMENTAL = 2 "incremental",
        /// What was told before no longer holds, as the connection to the venue is lost.
        STALE = 3 "stale",
    }

    /// What the levels of a [`MarketByPrice`](crate::MarketByPrice) are.
    BookUpdate: u8 {
        /// The first levels of a whole book: forget what was before.
        SNAPSHOT = 1 "snapshot",
        /// More levels of the whole book, or changes; quantity 0 removes a level.
        INCREMENTAL = 2 "incremental",
        /// The book is not to be trusted until the next snapshot.
        STALE = 3 "stale",
    }

    /// What an instrument is.
    InstrumentKind: u8 {
        /// A future without end.
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

    /// Which right an option gives.
    OptionType: u8 {
        /// To buy.
        CALL = 1 "call",
        /// To sell.
        PUT = 2 "put",
    }

    /// Whether an instrument trades.
    MarketState: u8 {
        /// It trades.
        OPEN = 1 "open",
        /// It does not, for now.
        HALTED = 2 "halted",
        /// It has ended, or is being settled.
        CLOSED = 3 "closed",
        /// It is known and does not trade yet.
        PRE_OPEN = 4 "pre_open",
    }

    /// What the last price did, as the venue says it.
    TickDirection: u8 {
        /// Up.
        PLUS = 1 "plus",
        /// The same, up before.
        ZERO_PLUS = 2 "zero_plus",
        /// Down.
        MINUS = 3 "minus",
        /// The same, down before.
        ZERO_MINUS = 4 "zero_minus",
    }

    /// Which figure of an instrument. Ratios are numbers as such (0.01 is a hundredth), implied volatilities per cent.
    StatisticKind: u32 {
        /// Mark price.
        MARK_PRICE = 1 "mark_price",
        /// Index price.
        INDEX_PRICE = 2 "index_price",
        /// Price of the last trade.
        LAST_PRICE = 3 "last_price",
        /// Contracts that are open.
        OPEN_INTEREST = 4 "open_interest",
        /// Funding of the running interval.
        CURRENT_FUNDING = 5 "current_funding",
        /// Funding of eight hours.
        FUNDING_8H = 6 "funding_8h",
        /// Interest that the venue derives.
        INTEREST_VALUE = 7 "interest_value",
        /// Price at which it would be delivered now.
        ESTIMATED_DELIVERY_PRICE = 8 "estimated_delivery_price",
        /// Price at which it was delivered.
        DELIVERY_PRICE = 9 "delivery_price",
        /// Price of the last settlement.
        SETTLEMENT_PRICE = 10 "settlement_price",
        /// Lowest price that may be bid or asked.
        MIN_PRICE = 11 "min_price",
        /// Highest price that may be bid or asked.
        MAX_PRICE = 12 "max_price",
        /// Highest price of 24 hours.
        HIGH = 13 "high",
        /// Lowest price of 24 hours.
        LOW = 14 "low",
        /// Volume of 24 hours in the base currency.
        VOLUME = 15 "volume",
        /// Volume of 24 hours in US dollars.
        VOLUME_USD = 16 "volume_usd",
        /// Change of price in 24 hours, per cent.
        PRICE_CHANGE = 17 "price_change",
        /// Implied volatility of the bid.
        BID_IV = 18 "bid_iv",
        /// Implied volatility of the ask.
        ASK_IV = 19 "ask_iv",
        /// Implied volatility of the mark price.
        MARK_IV = 20 "mark_iv",
        /// Price of the underlying.
        UNDERLYING_PRICE = 21 "underlying_price",
        /// Change of the option's price with the underlying's.
        DELTA = 22 "delta",
        /// Change of delta with the underlying's price.
        GAMMA = 23 "gamma",
        /// Change of the option's price with a day.
        THETA = 24 "theta",
        /// Change of the option's price with a per cent of volatility.
        VEGA = 25 "vega",
        /// Change of the option's price with a per cent of interest.
        RHO = 26 "rho",
        /// Interest rate of the option's mark price.
        INTEREST_RATE = 27 "interest_rate",
        /// Volume of 24 hours in contracts' value.
        VOLUME_NOTIONAL = 28 "volume_notional",
    }

    /// How a connection stands.
    ConnectionStatus: u8 {
        /// There is none.
        DISCONNECTED = 1 "disconnected",
        /// It is being made.
        CONNECTING = 2 "connecting",
        /// The login is on its way.
        LOGIN_SENT = 3 "login_sent",
        /// State is being fetched.
        DOWNLOADING = 4 "downloading",
        /// It works.
        READY = 5 "ready",
        /// It waits before it tries again.
        WAITING = 6 "waiting",
    }

    /// How the gateway stands.
    GatewayState: u8 {
        /// It is not connected to its venue.
        DISCONNECTED = 1 "disconnected",
        /// It is connected and asks the venue for orders and positions.
        RECONCILING = 2 "reconciling",
        /// Market data comes; trading is not possible, or not wanted.
        MARKET_DATA = 3 "market_data",
        /// Orders can be sent.
        READY = 4 "ready",
        /// The kill switch is on.
        KILLED = 5 "killed",
        /// It is stopping.
        STOPPING = 6 "stopping",
    }

    /// By which transport the gateway trades.
    Transport: u8 {
        /// JSON-RPC over WebSocket.
        WEB_SOCKET = 1 "ws",
        /// FIX 4.4.
        FIX = 2 "fix",
    }

    /// What is ready.
    ReadyScope: u8 {
        /// Market data: all instruments have been told.
        MARKET_DATA = 1 "market_data",
        /// The account of the event: orders, positions and funds have been told, and requests are taken.
        ACCOUNT = 2 "account",
        /// The instrument of the event: its book is whole.
        INSTRUMENT = 3 "instrument",
    }

    /// Whose limit on requests.
    RateLimitKind: u8 {
        /// The gateway's limit of the user.
        USER = 1 "user",
        /// The venue's credits of the account.
        VENUE = 2 "venue",
    }

    /// What follows from a limit that was hit.
    RateLimitReason: u8 {
        /// The request was refused.
        REFUSED = 1 "refused",
        /// The user is shut out until the event's time.
        BANNED = 2 "banned",
        /// The venue refused the request.
        VENUE_REFUSED = 3 "venue_refused",
    }
}

impl ExecutionFlags {
    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: ExecutionFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[must_use]
    pub const fn with(self, other: ExecutionFlags) -> ExecutionFlags {
        ExecutionFlags(self.0 | other.0)
    }
}

impl OrderStatus {
    /// Whether the order can still trade, or may.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(
            self,
            OrderStatus::SENT | OrderStatus::WORKING | OrderStatus::UNTRIGGERED | OrderStatus::UNKNOWN
        )
    }
}

impl Side {
    /// The other one.
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
