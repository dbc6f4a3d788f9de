//! Latency measurement: stamps at the hops of messages, joined by id into histograms.
//!
//! An agent owns a [`Tracer`] and stamps each message at its hops: it writes *(hop, id, time-stamp counter)*,
//! 16 bytes, to a separate ring. One record can stamp a range of market data messages of the same packet.
//! When a message causes one with another id, the agent also writes a link. Off the hot path a [`Joiner`]
//! drains the rings, joins the stamps of one message by id and records the time of each pair of hops and of
//! each span, for its [`Report`]. [`Hop`] explains the codes and their suffixes.
//!
//! ```text
//! market data   T5 publisher takes -> T6w T6 UDP write ~~~ T7k T7 feed handler reads -> T8 to the ring -> T9 engine takes
//! order         T10 engine emits -> T11 gateway takes -> T12w T12 TCP write ~~~ T1k T1 order server reads
//! venue         T1 -> T2 sequenced -> T3 matcher takes -> T4 market event, T4t response emitted
//! response      T5t order server takes -> T6tw T6t TCP write ~~~ T7t gateway reads -> T8t to the ring -> T9t engine takes
//! ```
//!
//! ```
//! use tickpath_timing::{Calibration, Hop, Joiner, JoinerConfig, MarketId, Token, Trace, Tracer};
//! use tickpath_types::{Sequence, SessionId, UserRefNum};
//!
//! let (mut trace, ring) = Trace::new(1 << 10);
//! let read = MarketId::new(Sequence(7)).via_feed(0);
//! let taken = read.to_engine(0);
//! let order = Token::new(SessionId(1), UserRefNum(42), true);
//!
//! trace.stamp(Hop::T7, read);
//! trace.stamp(Hop::T8, read);
//! trace.stamp(Hop::T9, taken);
//! trace.link(order, taken);
//! for hop in [Hop::T10, Hop::T11, Hop::T12w, Hop::T12] {
//!     trace.stamp(hop, order);
//! }
//! trace.flush();
//!
//! // io/agent's clock knows the calibration; here a tick counts as a nanosecond.
//! let mut joiner = Joiner::new(JoinerConfig::default(), Calibration::identity());
//! joiner.drain(&mut [ring], 1 << 10, trace.now());
//! joiner.finish();
//!
//! let report = joiner.report();
//! assert_eq!(report.row("tick_to_trade").unwrap().summary.count, 1);
//! assert!(report.checks[0].holds() && report.checks[0].messages == 1);
//! assert!(report.to_string().contains("tick_to_trade               T7 to T12 "));
//! ```
//!
//! Negative times occur across cores and sockets, where a reader's call can return before the writer's does.
//! They are counted and included in every sum. Nothing is subtracted or trimmed; [`Counters`] counts dropped
//! records.

mod calibration;
mod counters;
mod entries;
mod finalise;
mod hop;
mod id;
mod joiner;
mod measure;
mod reconciliation;
mod render;
mod report;
mod series;
mod stamp;
mod table;
mod tracer;
mod trades;

pub use calibration::{Calibration, CalibrationError, ClockSample};
pub use counters::{Counters, EntryCounts};
pub use hop::{Function, Hop, IdSpace};
pub use id::{CommandId, ENGINES_MAX, FEEDS_MAX, MarketId, Token, TraceId};
pub use joiner::{Joiner, JoinerConfig};
pub use measure::{Group, Pair, Span};
pub use reconciliation::ReconciliationCheck;
pub use report::{LiveSpan, Report, Row, TimelineStep, TradeTimeline};
pub use series::{DURATION_NS_MAX, Summary};
pub use stamp::{RANGE_LEN_MAX, Stamp, StampKind};
pub use tracer::{NoTrace, Sampler, Trace, Tracer};
