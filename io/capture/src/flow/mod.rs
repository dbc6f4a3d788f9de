//! Turns a recording into order requests that recreate the recorded book at a live venue.
//!
//! A [`Survey`] is the result of a first reading: it defines the instruments, and finds the orders that a
//! recording of the best levels never announces. A [`Mapper`] then reads the recording again and yields
//! requests of two sessions. The *maker* enters, reduces, replaces and cancels the resting orders. For each
//! recorded execution the *taker* sends an immediate-or-cancel order for the executed quantity at the resting
//! order's price.
//!
//! The mapper keeps a shadow of the venue's book. It sends a taking order only where price-time priority will
//! select the order that was executed in the recording: that order must be at the front of the best level.
//! The venue's answer is then known in advance and stated as [`Expected`], so that every eligible execution
//! checks the venue against the recording. All other executions are excluded, each with an [`Exclusion`]; the
//! mapper reduces their orders by a cancel instead.
//!
//! Prices of an instrument that need more than four decimals are multiplied by a power of ten, so that the
//! venue can represent them exactly.
//!
//! Assumptions of the mapper:
//!
//! - *Transactions.* Within one transaction the fills are reported in no particular order, so the mapper
//!   takes them in price-time order. An order ahead of the filled one excludes the fill only if it has no
//!   fill in the transaction. In a transaction with fills, a `Delete` of an order without a fill is mapped
//!   before them: it is assumed to be self-match prevention, which the recording does not mark.
//! - *Icebergs.* A fill that exceeds the displayed quantity is assumed to include replenished slices. The
//!   mapper enters each slice as a separate order at the tail of the level.
//! - *Crossed orders.* The maker's orders are post-only. An add that would cross the shadow book is held back
//!   and entered once it no longer crosses, as happens around an auction.
//! - *Partial depth.* A best-levels recording never announces orders that are entered at deeper levels, and
//!   lacks the cancels of orders that sank to deeper levels. The mapper enters unannounced orders
//!   (*synthesised*) between the recorded adds, in the sequence of the order references. It cancels sunk
//!   orders (*evicted*) when an event shows that they no longer rest and no later event concerns them. Both
//!   are counted separately, and so are executions of synthesised orders.

mod book;
mod counts;
mod fills;
mod mapper;
mod partial;
mod request_queue;
mod survey;

use tickpath_types::{OrderRequest, Price, Qty, UserRefNum};

pub use counts::{Exclusion, ExecutionCounts, FlowCounts};
pub use mapper::{FlowLimits, Mapper};
pub use survey::{Survey, SurveyBuilder, survey};

/// Largest quantity of one order that OUCH accepts.
pub const ORDER_QTY_MAX: Qty = Qty(999_999);
/// Highest price of one order that OUCH accepts.
pub const ORDER_PRICE_MAX: Price = Price(1_999_999_900);

/// The session that sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Enters, reduces, replaces and cancels the resting orders.
    Maker,
    /// Sends the orders that execute resting orders.
    Taker,
}

/// One request to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStep {
    /// Time of the recorded transaction that caused the request, in the recording's time base.
    pub ts_ns: u64,
    /// The sending session.
    pub role: Role,
    /// The request. The UserRefNums of a role's new orders and replacements ascend from 1.
    pub request: OrderRequest,
    /// The execution that a request of the taker must cause; `None` for the maker.
    pub expected: Option<Expected>,
}

/// The one execution that a request of the taker must cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// UserRefNum of the maker's order that trades.
    pub resting: UserRefNum,
    /// Price of the maker's order.
    pub price: Price,
    /// Quantity of the taker's order, which executes in full.
    pub qty: Qty,
}
