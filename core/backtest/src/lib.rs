//! A strategy on a recorded market, in virtual time.
//!
//! A [`Backtest`] connects a [`TradeEngine`](tickpath_trading::TradeEngine) with a fill model. Requests, answers and
//! market data take time on their way ([`Latencies`]), so the strategy decides on a market that has moved on. The
//! fill model [`QueuePosition`] queues own orders among the recorded ones; the recorded market does not react.
//! This crate performs no IO and reads no clock.

mod backtest;
mod latency;
mod queue_position;
#[cfg(test)]
mod tests;

pub use backtest::{Backtest, BacktestConfig, BacktestFill, Fees, Outcome, PnlPoint};
pub use latency::{Latencies, Latency};
pub use queue_position::{QueuePosition, RecordedChange};
