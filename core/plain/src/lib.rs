//! The matching engine's plain twin: the same rules in the simplest words, to be compared with.
//!
//! [`PlainEngine`] keeps a list of orders and searches it from end to end for whatever is asked. It shares the vocabulary of
//! `tickpath-matching` - commands, limits, the listener - and no code of its engine, so that a mistake would have to be
//! made twice to go unseen. Tests and the simulator's checkers use it; it is far too slow for anything else.
//!
//! ```
//! use tickpath_matching::{Command, CommandKind, EngineLimits, EventListener};
//! use tickpath_plain::PlainEngine;
//! use tickpath_types::{MarketEvent, Nanos, OrderEvent, Sequence, SessionId, SystemEventCode};
//!
//! #[derive(Default)]
//! struct Public(Vec<MarketEvent>);
//!
//! impl EventListener for Public {
//!     fn on_order_event(&mut self, _: &OrderEvent) {}
//!     fn on_market_event(&mut self, event: &MarketEvent) {
//!         self.0.push(*event);
//!     }
//! }
//!
//! let mut engine = PlainEngine::new(&[], EngineLimits::default());
//! let kind = CommandKind::System(SystemEventCode::StartOfMessages);
//! let mut public = Public::default();
//! let command = Command { sequence: Sequence(1), session: SessionId(0), ts: Nanos(5), kind };
//! engine.apply(&command, &mut public);
//! assert_eq!(public.0[0].sequence, Sequence(1));
//! ```

mod engine;

pub use engine::{PlainEngine, PlainOrder};
