//! Deribit's dialect: its messages in both directions, logon, and quantities.
//!
//! Source: Deribit "FIX API" (production), 2025, with its changelog up to 2025-10-07, and recordings by its
//! users. Messages implement [`Body`](crate::Body); Deribit's extensions of FIX 4.4 have tags from 5000.
//!
//! - Sequence numbers start at 1 with each connection, and nothing is resent
//!   ([`SessionConfig::deribit_client`](crate::session::SessionConfig::deribit_client)).
//! - Quantities are contracts unless `QtyType` says otherwise: [`to_units`].
//! - In an [`ExecutionReport`], `ClOrdID` is the venue's id and `OrigClOrdID` is the client's.

mod account;
mod codes;
mod logon;
mod market_data;
mod orders;
mod quantity;
mod quotes;
mod reference;
mod trades;

pub use account::{
    OrderMassStatusRequest, Position, PositionReport, RequestForPositions, UserRequest, UserResponse,
};
pub use codes::{
    ExecType, FillLiquidity, MdEntryType, MdUpdateAction, MdUpdateType, OrdStatus, OrdType, PegPriceType,
    PutOrCall, QtyType, SideCode, SubscriptionRequestType, TimeInForceCode, Trigger,
};
pub use logon::{
    Credentials, LogonClock, NONCE_LEN_MAX, NONCE_LEN_MIN, NonceError, PASSWORD_LEN, RAW_DATA_LEN_MAX,
    password, raw_data, timestamp_of, verify,
};
pub use market_data::{
    EntryType, MarketDataIncremental, MarketDataReject, MarketDataRequest, MarketDataSnapshot, MdChange,
    MdEntry, RequestedSymbol,
};
pub use orders::{
    AffectedOrder, ExecutionReport, Fill, NewOrderSingle, OrderCancelReject, OrderCancelReplaceRequest,
    OrderCancelRequest, OrderMassCancelReport, OrderMassCancelRequest,
};
pub use quantity::to_units;
pub use quotes::{
    MassQuote, MassQuoteAck, ProtectionLimits, ProtectionReset, ProtectionResult, QuoteCancel, QuoteEntry,
    QuoteResult, QuoteSet,
};
pub use reference::{
    Leg, Security, SecurityAltId, SecurityDefinition, SecurityDefinitionRequest, SecurityList,
    SecurityListRequest, SecurityStatus, SecurityStatusRequest, TickRule,
};
pub use trades::{TradeCaptureAck, TradeCaptureReport, TradeCaptureRequest, TradeSide};
