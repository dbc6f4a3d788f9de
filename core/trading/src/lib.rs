//! Components that trade on one venue: market features, the order manager, pre-trade risk, positions, and the
//! [`Strategy`] trait with its implementations.
//!
//! A [`TradeEngine`] handles market updates, answers of the venue and time through `handle_*`. Requests leave
//! through a [`RequestSink`] as soon as the strategy makes them. The strategy decides once for each packet and
//! changed instrument, after all messages of the packet were applied. The engine performs no IO and reads no
//! clock, so the same inputs give the same requests, live, simulated or replayed.
//!
//! ```
//! use tickpath_timing::NoTrace;
//! use tickpath_trading::{Context, EngineConfig, Limits, Strategy, TradeEngine};
//! use tickpath_types::{
//!     BookHealth, Instrument, InstrumentId, MarketUpdate, Nanos, OrderRequest, Price, PriceLevel, Qty, Symbol,
//!     UpdateKind,
//! };
//!
//! /// Bids one tick below the best bid, once.
//! struct OneBid;
//!
//! impl Strategy for OneBid {
//!     fn name(&self) -> &str {
//!         "one-bid"
//!     }
//!
//!     fn on_market(&mut self, instrument: InstrumentId, cx: &mut Context<'_>) {
//!         if let Some((bid, _)) = cx.bbo(instrument).bid
//!             && cx.open_count(instrument) == 0
//!         {
//!             // A refusal is counted by the engine; there is nothing else to do about it here.
//!             let _ = cx.buy(instrument, Qty(100), Price(bid.0 - 100));
//!         }
//!     }
//! }
//!
//! let alpha = Instrument::in_cents(InstrumentId(1), Symbol::new("ALPHA").unwrap(), Price(1_000_000));
//! let mut engine =
//!     TradeEngine::new(&EngineConfig::default(), &[alpha], &[Limits::default()], OneBid, NoTrace).unwrap();
//! let update = MarketUpdate {
//!     sequence: 1, ts_event: 1, order_id: 1, price: 999_900, qty: 5, bid: PriceLevel { price: 999_900, qty: 5 },
//!     ask: PriceLevel { price: 1_000_100, qty: 5 }, instrument: 1, kind: UpdateKind::Add as u8, side: 0,
//!     health: BookHealth::Live as u8, ..MarketUpdate::default()
//! };
//! let mut requests = Vec::new();
//! engine.handle_market(&update, Nanos(1), &mut requests);
//! let OrderRequest::Enter(order) = requests[0] else { panic!() };
//! assert_eq!((order.price, order.qty), (Price(999_800), Qty(100)));
//! ```

mod config;
mod context;
mod desk;
mod engine;
mod features;
mod fills;
mod money;
mod order;
mod orders;
mod position;
mod rate;
mod requests;
mod risk;
mod session;
mod sink;
mod snapshot;
mod strategies;
mod strategy;
mod table;
mod warm_up;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use config::{ConfigError, EngineConfig};
pub use context::{Context, Refusal};
pub use desk::{Desk, EngineCounters, KillSwitch, StopReason};
pub use engine::TradeEngine;
pub use features::{AggressiveTrade, Bbo, Features, PPM};
pub use money::Money;
pub use order::{OrderChange, OrderUpdate, OwnOrder, OwnState};
pub use orders::{OpenOrders, OrderCounters, OrderError, OrderManager};
pub use position::{MarkTo, Position, Positions, Totals, TradedTotals};
pub use rate::OrderRate;
pub use requests::NewOrder;
pub use risk::{Exposure, LimitBelowLot, Limits, ProposedOrder, Risk, RiskResult};
pub use session::{GatewayEvent, OrderSession, RECONCILE_AFTER};
pub use sink::{QueueFull, RequestSink};
pub use snapshot::{GatewayCounters, SnapshotWriter, TraderSnapshot, TraderView};
pub use strategies::{LiquidityTaker, MakerConfig, MarketMaker, RandomConfig, RandomStrategy};
pub use strategy::Strategy;
pub use warm_up::{WarmUp, WarmUpEngine};
