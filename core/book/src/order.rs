//! Types of the books' inputs and outputs.

use std::num::NonZeroU32;

use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

/// Handle of an open order: valid from the `add` that returned it until its `remove`.
///
/// A handle is just an index: one that is kept after its order was removed may name a later order.
/// Callers drop handles together with their orders (see [`OrderIndex`](crate::OrderIndex)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct OrderHandle(NonZeroU32);

impl OrderHandle {
    /// The handle of a slot; `None` for slot 0, which no order uses.
    #[must_use]
    #[inline]
    pub const fn new(slot: u32) -> Option<OrderHandle> {
        match NonZeroU32::new(slot) {
            Some(slot) => Some(OrderHandle(slot)),
            None => None,
        }
    }

    /// The slot, from 1.
    #[must_use]
    #[inline]
    pub const fn slot(self) -> u32 {
        self.0.get()
    }
}

/// A resting order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order<T> {
    /// The venue's order id; the books do not require it to be unique.
    pub id: OrderId,
    /// The instrument in whose book it rests.
    pub instrument: InstrumentId,
    /// Bid or ask.
    pub side: Side,
    /// Price of the order and of its level.
    pub price: Price,
    /// Open quantity; never zero while the order rests.
    pub qty: Qty,
    /// The caller's data of the order.
    pub data: T,
}

/// All orders at one price on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Price of the level.
    pub price: Price,
    /// Sum of the orders' quantities.
    pub qty: Qty,
    /// Number of orders.
    pub order_count: u32,
}

/// Orders and quantity ahead of an order at its own price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePosition {
    /// Orders of its level with higher priority.
    pub orders_ahead: u32,
    /// Sum of the quantities of those orders.
    pub qty_ahead: Qty,
}

/// Prefetch state of a waiting message about an open or a new order.
#[derive(Clone, Copy, Debug)]
pub struct Hint {
    /// Index of the table entry that leads to the level of a new order.
    pub(crate) place: u32,
    /// The open order's slot; 0 for a new order.
    pub(crate) slot: u32,
    /// The level of the open or new order, once known.
    pub(crate) level: u32,
}

impl Hint {
    /// A hint for no order.
    pub const NONE: Hint = Hint { place: 0, slot: 0, level: 0 };
}

/// Bounds of the books; all memory is allocated at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookLimits {
    /// Greatest instrument id; the books have ids from 0 to this, inclusive.
    pub max_instrument: InstrumentId,
    /// Maximum number of open orders in all books. At the bound, `add` fails with [`AddError::BookFull`].
    pub max_orders: u32,
    /// Maximum number of price levels in all books; more than `max_orders` has no effect. At the bound, an
    /// `add` that needs a new level fails with [`AddError::LevelsFull`].
    pub max_levels: u32,
}

impl BookLimits {
    /// Limits for `max_orders` orders in the books of instruments up to `max_instrument`, each at its own
    /// level if needed.
    #[must_use]
    #[inline]
    pub const fn new(max_instrument: InstrumentId, max_orders: u32) -> BookLimits {
        BookLimits { max_instrument, max_orders, max_levels: max_orders }
    }
}

/// The order was not added, and the books are unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The books are full: refuse the order, or raise [`BookLimits::max_orders`].
    #[error("the books hold the maximum of {0} orders: raise max_orders")]
    BookFull(u32),
    /// No further level is possible: refuse the order, or raise [`BookLimits::max_levels`].
    #[error("the books hold the maximum of {0} price levels: raise max_levels")]
    LevelsFull(u32),
    /// The instrument has no book: refuse the order, or raise [`BookLimits::max_instrument`].
    #[error("there is no book for instrument {0}: raise max_instrument")]
    UnknownInstrument(InstrumentId),
    /// The quantity is zero: refuse the order.
    #[error("an order of quantity zero cannot rest")]
    ZeroQty,
    /// An open order has this id: refuse the order. Only [`BooksById`](crate::BooksById) return this.
    #[error("order {0} is open already")]
    DuplicateId(OrderId),
    /// The total quantity of the level would not fit in 64 bits: refuse the order.
    #[error("the quantity of the level at {0} would pass 2^64")]
    QtyOverflow(Price),
}
