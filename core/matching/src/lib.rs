//! Deterministic price-time matching: commands in, responses and market events out.
//!
//! [`Engine::apply`] takes one [`Command`] of the sequenced log and hands every event that it causes to
//! an [`EventListener`] before it returns. It performs no IO and reads no clock; time is in the command.
//!
//! ```
//! use tickpath_book::FastBooks;
//! use tickpath_matching::{Command, CommandKind, Engine, EngineLimits, EventListener};
//! use tickpath_types::*;
//!
//! #[derive(Default)]
//! struct Log(Vec<OrderEventKind>, Vec<MarketEventKind>);
//! impl EventListener for Log {
//!     fn on_order_event(&mut self, event: &OrderEvent) { self.0.push(event.kind) }
//!     fn on_market_event(&mut self, event: &MarketEvent) { self.1.push(event.kind) }
//! }
//!
//! let alpha = Symbol::new("ALPHA").unwrap();
//! let instrument = Instrument::in_cents(InstrumentId(1), alpha, Price(1_000_000));
//! let mut engine: Engine<FastBooks<_>> = Engine::new(&[instrument], EngineLimits::default()).unwrap();
//! let mut log = Log::default();
//! let order = |user_ref, side, qty| {
//!     let (user_ref, price) = (UserRefNum(user_ref), Price(1_000_000));
//!     OrderRequest::Enter(EnterOrder::limit(user_ref, InstrumentId(1), side, Qty(qty), price))
//! };
//! let kinds = [
//!     CommandKind::OpenInstrument { instrument: InstrumentId(1), state: TradingState::Trading },
//!     CommandKind::Order(order(1, Side::Sell, 100)),
//!     CommandKind::Order(order(2, Side::Buy, 30)),
//! ];
//! for (kind, sequence) in kinds.into_iter().zip(1..) {
//!     let command = Command { sequence: Sequence(sequence), session: SessionId(0), ts: Nanos(0), kind };
//!     engine.apply(&command, &mut log);
//! }
//! assert_eq!(
//!     log.1.last(),
//!     Some(&MarketEventKind::Executed { order_id: OrderId(1), qty: Qty(30), match_id: MatchId(1) })
//! );
//! assert_eq!(engine.books().best(InstrumentId(1), Side::Sell).unwrap().qty, Qty(70));
//! # use tickpath_book::OrderBooks;
//! ```
//!
//! # Responses
//!
//! - A new order is `Accepted` as live, then come its executions and, if it may not rest, `Canceled` for the
//!   remainder. So an order's quantity is always the sum of its executed, cancelled and resting quantities.
//!   A post-only order that would trade, or an order whose minimum quantity cannot trade, is `Accepted`, then
//!   `Canceled` whole.
//! - An execution goes to the incoming order's owner, then to the resting order's owner, then to the public.
//! - A request whose `UserRefNum` is not above the session's last is a duplicate and is ignored. A
//!   rejected request uses up its `UserRefNum`.
//! - `Cancel` is never rejected; one without effect is ignored, as is `Modify` of an order that is not open.
//!   `Replace` of such an order is rejected as `UnknownOrder`. A new intended size that is not above the
//!   executed quantity cancels the remainder.
//! - While an instrument is halted, orders and replacements are rejected as `Halted`, but cancels and
//!   modifications work. While it is quotation-only or paused, orders rest without trading until a cross.
//! - A stop order is `Accepted` and waits. A trade at its price or beyond makes it `Triggered`, under a new
//!   order id; from then on it is a regular order. The command that triggers stop orders also processes
//!   them, in the order of entry, then those that their trades trigger.
//! - When a displayed part is used up, the next one is published by `Add` under a new order id, and its owner
//!   gets `Restated`.
//! - Orders of one account trade with each other unless the incoming order's session has set a self-trade
//!   prevention: then each reduced order gets `SelfTradePrevented`. Crosses ignore this setting.
//! - At the end of the day GTC orders are `Replaced` under the first `UserRefNum`s of the new day.
//! - A cancel of all orders of a session is one command, whatever their number.

pub mod codec;
mod command;
mod engine;
mod limits;
mod listener;
mod snapshot;
pub mod workload;

pub use codec::CodecError;
pub use command::{COMMAND_LEN_MAX, Command, CommandKind};
pub use engine::{Engine, LOOK_AHEAD_LEN, Owner};
pub use limits::{EngineCounters, EngineError, EngineLimits};
pub use listener::EventListener;
pub use snapshot::SnapshotError;
