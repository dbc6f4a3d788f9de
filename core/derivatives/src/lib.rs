//! Valuation of futures, options and spot pairs: contracts, positions, profit, margin, funding, settlement,
//! delivery, and a simulated index.
//!
//! All arithmetic is on integers. A value is rounded once per trade, and both sides get the same rounded
//! value. Profits and losses over all accounts therefore cancel to the last digit.
//!
//! ```
//! use tickpath_derivatives::{Contract, Money, Position, Style};
//! use tickpath_types::{Price, Qty, Side};
//!
//! // 10 USD a contract, profit in BTC.
//! let perpetual = Contract { amount_step: 10, ..Contract::plain(Style::Inverse) };
//! let mut position = Position::default();
//! position.trade(&perpetual, Side::Buy, Qty(10_000), Price(500_000_000));
//! let closed = position.trade(&perpetual, Side::Sell, Qty(10_000), Price(625_000_000));
//! // 100 000 USD are 2 BTC at 50 000 and 1.6 BTC at 62 500.
//! assert_eq!(closed, Money::parse("0.4").unwrap());
//! assert!(position.is_flat());
//! ```

mod contract;
mod delivery;
mod funding;
mod index;
mod money;
mod position;

pub use contract::{Contract, Style};
pub use delivery::TimeMean;
pub use funding::{FundingMeter, funding_rate_ppb};
pub use index::IndexWalk;
pub use money::Money;
pub use position::Position;
