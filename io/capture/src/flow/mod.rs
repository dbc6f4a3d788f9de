//! Turns a recording into order requests that drive a live venue through the same book.
//!
//! A [`Survey`] reads the recording once: it defines the instruments and, where the recording covers
//! only the best levels, learns which orders it never announces. A [`Mapper`] then reads it again and
//! yields requests of two sessions: the *maker* enters, reduces, replaces and cancels what rested; for
//! each recorded execution the *taker* sends an immediate-or-cancel order for the executed quantity at
//! the resting order's price.
//!
//! The mapper keeps a shadow of the venue's book. It sends a taking order only where price-time
//! priority will give it the order that was executed in the recording: that order must stand at the
//! front of the best level. The venue's answer is then known beforehand and stated as [`Expected`],
//! so that every eligible execution checks the venue against what really happened. All other
//! executions are excluded, each with an [`Exclusion`], and leave the shadow as a cancel.
//!
//! Prices of an instrument that need more than four decimals are multiplied by a power of ten, so that the venue has all
//! of them exactly.
//!
//! What the mapper relies on:
//!
//! - *Transactions.* Within one transaction the fills are reported in no particular order, so the
//!   mapper takes them in price-time order; only an order that is not among them and stands ahead
//!   excludes one. A `Delete` without a fill beside fills is mapped before them: it is taken to be
//!   self-match prevention, which the recording does not mark.
//! - *Icebergs.* A fill that is larger than what the order showed is taken to have reached replenished
//!   slices. Each is an order of its own at the tail of the level.
//! - *Crossed orders.* Makers are post-only. An add that would cross the shadow is held back and
//!   entered once it no longer crosses, as happens around an auction.
//! - *Partial depth.* In a recording of the best levels, orders that came in deeper are never
//!   announced, and the cancels of orders that sank are missing. The former are entered
//!   (*synthesised*) at the place that their order number gives them between the recorded adds; the
//!   latter are cancelled (*evicted*) when the recording contradicts them and never speaks of them
//!   again. Both are counted apart, and so are executions of synthesised orders.

mod book;
mod counts;
mod desk;
mod fills;
mod mapper;
mod partial;
mod survey;

use tickpath_types::{OrderRequest, Price, Qty, UserRefNum};

pub use counts::{Exclusion, ExecutionCounts, FlowCounts};
pub use mapper::{FlowLimits, Mapper};
pub use survey::{Survey, SurveyBuilder, survey};

/// Largest quantity of one order that OUCH accepts.
pub const ORDER_QTY_MAX: Qty = Qty(999_999);
/// Highest price of one order that OUCH accepts.
pub const ORDER_PRICE_MAX: Price = Price(1_999_999_900);

/// Which of the two sessions sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Keeps the book.
    Maker,
    /// Executes.
    Taker,
}

/// One request to send, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStep {
    /// Time of the recorded event behind it, counted as the recording counts.
    pub ts_ns: u64,
    /// Who sends it.
    pub role: Role,
    /// The request. User reference numbers are strictly increasing per role, from 1.
    pub request: OrderRequest,
    /// What the venue must answer, for a request of the taker.
    pub expected: Option<Expected>,
}

/// The one execution that a request of the taker must cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The maker's order that trades.
    pub resting: UserRefNum,
    /// At its price.
    pub price: Price,
    /// The whole quantity of the taker's order.
    pub qty: Qty,
}
