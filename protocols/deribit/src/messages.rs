//! The messages: params of requests, results of replies, data of channels. Each is a structure that is
//! decoded from a frame and encoded into a buffer.
//!
//! Prices and amounts are [`Decimal`](crate::number::Decimal)s. Other figures may have more digits than these
//! hold (funding, greeks, profit, margins, mark and index prices). They are
//! [`Number`](crate::number::Number)s: the server's text, with an exact value on demand. Members that older
//! or newer servers may omit are optional.

mod account;
mod book;
mod instrument;
mod market;
mod order;
mod quotes;
mod requests;
mod session;
mod statements;
mod states;

pub use account::{AccountSummary, Position};
pub use book::{
    Book, BookLevel, BookLevels, BookUpdate, BookUpdateKind, GroupedBook, LEVELS_MAX, LevelAction,
    PriceAmount,
};
pub use instrument::{GetInstrument, GetInstruments, Instrument, TickSizeStep};
pub use market::{
    Greeks, IndexPrice, InstrumentStateChange, OrderBook, PlatformState, PublicTrade, PublicTrades, Quote,
    Ticker, TickerStats,
};
pub use order::{Order, OrderPrice, OrderReply, UserChanges, UserTrade, UserTrades};
pub use quotes::{
    CancelQuotes, GetMmp, MassQuote, MassQuoteResult, MmpConfig, MmpStatus, QuoteEntry, QuoteRefusal,
    QuoteSide, ResetMmp, SetMmpConfig, SetSelfTradingConfig,
};
pub use requests::{
    CancelAll, CancelAllByCurrency, CancelAllByCurrencyPair, CancelAllByInstrument, CancelAllByKindOrType,
    CancelByLabel, CancelOrder, ClosePosition, EditByLabel, EditOrder, GetAccountSummary, GetIndexPrice,
    GetLastTradesByInstrument, GetOpenOrders, GetOpenOrdersByCurrency, GetOpenOrdersByInstrument,
    GetOpenOrdersByLabel, GetOrderBook, GetOrderState, GetOrderStateByLabel, GetPosition, GetPositions,
    GetTicker, GetUserTradesByCurrency, GetUserTradesByInstrument, GetUserTradesByOrder, PlaceOrder,
};
pub use session::{
    Auth, AuthResult, CancelOnDisconnect, Hello, Logout, NoParams, PrivateSubscribe, SetCancelOnDisconnect,
    SetHeartbeat, Subscribe, Test, Version,
};
pub use statements::{
    AccountSummaries, BookSummary, CancelReport, ContractSize, Currency, DeliveryPrice, DeliveryPrices,
    FundingRate, GetAccountSummaries, GetBookSummaryByCurrency, GetBookSummaryByInstrument,
    GetDeliveryPrices, GetFundingRate, GetLastTradesByCurrency, GetMargins, GetOrderHistoryByCurrency,
    GetOrderHistoryByInstrument, GetSettlementsByCurrency, GetSettlementsByInstrument, GetTransactionLog,
    LinkedOrder, Links, Margins, OrderHistory, Settlement, Settlements, Transaction, TransactionLog,
};
pub use states::{
    AccessLog, Candle, ChartData, EstimatedExpirationPrice, ExchangeToken, ForkToken,
    GetOrderBookByInstrumentId, GetTradingviewChartData, OptionMarkPrice, PerpetualState, PublicMethodsState,
    Status, UserLock,
};
