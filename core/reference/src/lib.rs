//! Reference models of the matching engine and of the books: the same rules in simple code, for comparison.
//!
//! [`ReferenceBooks`] are books of ordered maps and queues. [`ReferenceEngine`] keeps a list of orders, and
//! every operation searches the whole list. This engine shares types with `tickpath-matching` (commands,
//! limits, the listener) but no code, so an error goes undetected only if both engines contain it. Tests and
//! the simulator's checkers use both models, which are far too slow for anything else.
//!
//! ```
//! use tickpath_matching::{Command, CommandKind, EngineLimits, EventListener};
//! use tickpath_reference::ReferenceEngine;
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
//! let mut engine = ReferenceEngine::new(&[], EngineLimits::default());
//! let kind = CommandKind::System(SystemEventCode::StartOfMessages);
//! let mut public = Public::default();
//! let command = Command { sequence: Sequence(1), session: SessionId(0), ts: Nanos(5), kind };
//! engine.apply(&command, &mut public);
//! assert_eq!(public.0[0].sequence, Sequence(1));
//! ```

mod books;
mod engine;

pub use books::ReferenceBooks;
pub use engine::{ReferenceEngine, ReferenceOrder};
