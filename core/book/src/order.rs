//! What goes into the books and what comes out.

use std::num::NonZeroU32;

use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

/// Where an open order is kept: valid from the `add` that returned it until its `remove`.
///
/// A handle is an index, not a proof: one that is kept after its order went away may name a later
/// order. Whoever keeps handles drops them together with the order (see [`OrderIndex`](crate::OrderIndex)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct OrderHandle(NonZeroU32);

impl OrderHandle {
    /// The handle of a slot; slot 0 is nobody's.
    #[must_use]
    pub const fn new(slot: u32) -> Option<OrderHandle> {
        match NonZeroU32::new(slot) {
            Some(slot) => Some(OrderHandle(slot)),
            None => None,
        }
    }

    /// The slot, from 1.
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.0.get()
    }
}

/// A resting order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order<T> {
    /// The venue's reference; the books do not require it to be unique.
    pub id: OrderId,
    /// Whose book it rests in.
    pub instrument: InstrumentId,
    /// Bid or ask.
    pub side: Side,
    /// Its level.
    pub price: Price,
    /// What is left of it; never zero while it rests.
    pub qty: Qty,
    /// The user's own, kept beside the order.
    pub data: T,
}

/// All orders at one price on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The price.
    pub price: Price,
    /// Sum of the quantities.
    pub qty: Qty,
    /// How many orders.
    pub order_count: u32,
}

/// What trades before an order does at its own price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePosition {
    /// Orders of its level with priority over it.
    pub orders_ahead: u32,
    /// Their quantity.
    pub qty_ahead: Qty,
}

/// What a message that waits is about, as far as it says: an open order, or the place of a new one.
#[derive(Clone, Copy, Debug)]
pub struct Hint {
    /// What leads to the level of a new order.
    pub(crate) place: u32,
    /// The open order's slot, 0 for a new one.
    pub(crate) slot: u32,
    /// The level of either, once it is known.
    pub(crate) level: u32,
}

impl Hint {
    /// About nothing.
    pub const NONE: Hint = Hint { place: 0, slot: 0, level: 0 };
}

/// How large the books may become; all memory is taken and touched at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookLimits {
    /// Books: instrument ids from 0 to this, inclusive.
    pub max_instrument: InstrumentId,
    /// Open orders in all books together. At the bound `add` refuses with [`AddError::BookFull`].
    pub max_orders: u32,
    /// Price levels in all books together, at most `max_orders` of use. At the bound an `add` that
    /// opens a level refuses with [`AddError::LevelsFull`].
    pub max_levels: u32,
}

impl BookLimits {
    /// This number of orders in the books of the instruments up to `max_instrument`, at as many levels if need be.
    #[must_use]
    pub const fn new(max_instrument: InstrumentId, max_orders: u32) -> BookLimits {
        BookLimits { max_instrument, max_orders, max_levels: max_orders }
    }
}

/// An order was not added and nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// Refuse the order, or raise [`BookLimits::max_orders`].
    #[error("the books hold {0} orders, as many as they may: raise max_orders")]
    BookFull(u32),
    /// Refuse the order, or raise [`BookLimits::max_levels`].
    #[error("the books hold {0} price levels, as many as they may: raise max_levels")]
    LevelsFull(u32),
    /// Refuse the order, or raise [`BookLimits::max_instrument`].
    #[error("there is no book for instrument {0}: raise max_instrument")]
    UnknownInstrument(InstrumentId),
    /// Refuse the order.
    #[error("an order of quantity zero cannot rest")]
    ZeroQty,
    /// Refuse the order: another with its id is open. Of [`BooksById`](crate::BooksById) only.
    #[error("order {0} is open already")]
    DuplicateId(OrderId),
    /// Refuse the order: the sum of its level would not fit in 64 bits.
    #[error("the quantity of the level at {0} would pass 2^64")]
    QtyOverflow(Price),
}
