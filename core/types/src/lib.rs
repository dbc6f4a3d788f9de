//! Common types of all other crates: prices, quantities, sides, ids, time, instruments, orders, and
//! normalised market and order events.
//!
//! All types are plain data. Prices and quantities are exact integers; [`Price`] defines the scale of prices.
//!
//! ```
//! use tickpath_types::{Instrument, InstrumentId, Price, Symbol};
//!
//! let instrument = Instrument::in_cents(InstrumentId(1), Symbol::new("ALPHA").unwrap(), Price(1_000_000));
//! assert_eq!(Price::parse("100.25"), Ok(Price(1_002_500)));
//! assert_eq!(Price(1_002_500).to_string(), "100.2500");
//! assert!(instrument.is_on_tick(Price(1_002_500)));
//! ```

mod codes;
mod date;
mod decimal;
mod divisor;
mod enumerated;
mod ids;
mod instrument;
mod market;
mod order;
mod price;
mod rng;
mod sums;
mod time;
mod top_of_book;
mod zone;

pub use date::{Date, ParseDateError};
pub use decimal::Decimal;
pub use divisor::ExactDivisor;
pub use ids::{
    ClientOrderId, InstrumentId, MatchId, OrderId, Sequence, SessionId, Symbol, SymbolError, UserName,
    UserRefNum,
};
pub use instrument::{AddInstrumentError, Instrument, InstrumentTable};
pub use market::{
    BookHealth, CrossKind, Imbalance, MarketEvent, MarketEventKind, MarketUpdate, PriceLevel,
    SIDE_NOT_STATED, SuspectReason, SystemEventCode, TradingState, UpdateKind,
};
pub use order::{
    BrokenReason, CancelOrder, CancelReason, EnterOrder, Liquidity, MassCancel, ModifyOrder, OrderAttributes,
    OrderEvent, OrderEventKind, OrderInstructions, OrderRequest, OrderState, RejectReason, ReplaceOrder,
    SelfTradePrevention, SetOrderEntry, TimeInForce,
};
pub use price::{ParsePriceError, Price, Qty, Side};
pub use rng::Rng;
pub use time::Nanos;
pub use top_of_book::TopOfBook;
pub use zone::{ParseZoneError, Zone};
