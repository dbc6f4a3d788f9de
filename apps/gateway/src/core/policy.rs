//! What decides whether a client may do what it asks for.

use tickpath_gateway_protocol::{ErrorCode, OrderType, Side};
use tickpath_types::Nanos;

/// An order as whoever decides over it needs it; prices and quantities in units of 10^-8.
#[derive(Clone, Copy, Debug)]
pub struct OrderFacts {
    /// Whose it is.
    pub user: u16,
    /// The account that is to trade.
    pub account: u16,
    /// The instrument's number.
    pub symbol: u32,
    /// Bought or sold.
    pub side: Side,
    /// What it is.
    pub order_type: OrderType,
    /// Its price; 0 where it has none.
    pub price: i64,
    /// What it may still trade, all of it.
    pub quantity: i64,
    /// The mark price; 0 when it is not known.
    pub mark_price: i64,
    /// The index; 0 when it is not known.
    pub index_price: i64,
    /// Quantities are in the quote currency.
    pub is_inverse: bool,
    /// It is an option whose price is in the base currency.
    pub is_inverse_option: bool,
    /// Orders of the account that are not over, without this one.
    pub open_orders: u32,
    /// It changes an order that is there.
    pub is_change: bool,
}

/// What decides whether a client may do what it asks for. It does not allocate, lock or wait.
pub trait Policy: Send {
    /// A user sends a request: its limit, and whether it is shut out.
    ///
    /// # Errors
    /// Why the request is refused.
    fn admit(&mut self, now: Nanos, user: u16, is_cancel: bool) -> Result<(), ErrorCode>;

    /// An order, or the change of one, is to leave.
    ///
    /// # Errors
    /// Why it is refused.
    fn check(&mut self, now: Nanos, order: &OrderFacts) -> Result<(), ErrorCode>;

    /// No new order leaves.
    fn is_killed(&self) -> bool;

    /// Orders are acknowledged, and none leaves.
    fn is_dry_run(&self) -> bool;
}
