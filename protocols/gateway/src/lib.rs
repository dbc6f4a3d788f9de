//! The protocol between a gateway and its local clients: [events](Event) to the client, [requests](Request)
//! to the gateway, and the [frames](frame) of the handshake that precedes them.
//!
//! Events and requests are items of fixed length for rings in shared memory: with the ring's own word an
//! event takes three cache lines and a request two. Both are a header and a body whose layout depends on the
//! header's kind. Numbers are in the host's byte order, little-endian. Prices and quantities are [`Fixed`],
//! whole numbers of 10^-8; money is [`Money`], whole numbers of 10^-18. There are no floats.
//!
//! | ring | items | clients |
//! |---|---|---|
//! | to the gateway | [`Request`] | one |
//! | to the client | [`Event`] of accounts, orders, states, answers | one |
//! | broadcast | [`Event`] of market data and of states common to all clients | all |
//!
//! ```
//! use tickpath_gateway_protocol::{Event, EventKind, Fixed, TopOfBook};
//!
//! let mut event = Event::of(&TopOfBook {
//!     bid_price: "64250.5".parse()?,
//!     bid_quantity: "10".parse()?,
//!     ..TopOfBook::default()
//! });
//! event.header.symbol = 3;
//! assert_eq!(event.header.kind, EventKind::TOP_OF_BOOK);
//! let top: TopOfBook = event.body().ok_or("another kind")?;
//! assert_eq!(top.bid_price, Fixed(6_425_050_000_000));
//! assert!(event.to_string().starts_with("top_of_book symbol=3 "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Not supported
//!
//! No order-by-order book: Deribit publishes none. No client-defined matrices: a
//! [custom message](CustomMessage) carries a payload that its two ends have agreed upon.

mod code;
mod event;
mod field;
pub mod frame;
mod number;
mod request;
mod text;

pub use code::{
    AckStatus, AckType, BookUpdate, ConnectionStatus, ErrorCode, EventKind, ExecutionFlags, GatewayState,
    InstrumentKind, Liquidity, MarketState, OptionType, OrderStatus, OrderType, Origin, RateLimitKind,
    RateLimitReason, ReadyScope, RequestKind, Side, StatisticKind, TickDirection, TimeInForce, Transport,
    Trigger, UpdateKind,
};
pub use event::{
    AccountReference, BODY_LEN, Body, Connected, CustomMessage, Disconnected, DownloadBegin, DownloadEnd,
    Event, EventHeader, ExternalLatency, FundsUpdate, GatewayStatus, LEVELS_MAX, Lapped, Level,
    MarketByPrice, MarketStatus, OrderAck, OrderUpdate, Ping, PositionUpdate, QuoteAck, RateLimitTrigger,
    RateLimitsUpdate, Ready, ReferenceData, RiskLimits, STATISTICS_MAX, STEPS_MAX, SessionId, Start,
    Statistic, Statistics, Stop, StreamStatus, TickSizeSteps, TimeSeries, Timer, TopOfBook, TradeSummary,
    TradeUpdate, body_fields, flags,
};
pub use field::{Field, FieldKind, Fields, Reserved};
pub use number::{FIXED_PLACES, Fixed, MONEY_PLACES, Money, NumberError};
pub use request::{
    CancelAll, CancelOrder, CancelQuotes, CreateOrder, CustomRequest, DownloadMarketData, MassQuote,
    ModifyOrder, ORDER_ID_MAX, Pong, REQUEST_BODY_LEN, Request, RequestBody, RequestHeader, SetRiskLimits,
    request_fields,
};
pub use text::Text;
