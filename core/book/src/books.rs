//! [`OrderBooks`], the trait that all implementations of the books share.

use tickpath_types::{InstrumentId, Price, Qty, Side};
use xxhash_rust::xxh3::Xxh3;

use crate::digest::digest;
use crate::{AddError, BookLimits, Hint, Level, Order, OrderHandle, QueuePosition};

/// Order-by-order books in price-time priority, one for each instrument, over one pool of orders.
///
/// [`InstrumentId`] is the index of a book; a book beyond [`BookLimits::max_instrument`] reads as empty.
/// The books only keep orders; the caller decides whether two orders trade, so a book may be crossed.
///
/// # Panics
/// `reduce`, `remove`, `data_mut` and `queue_position` panic when the handle names no open order. Only a bug
/// in the caller can cause this, not a peer's input.
pub trait OrderBooks<T: Copy> {
    /// Creates empty books without touching their memory. They occupy hardly any memory, but until
    /// [`prefault`](Self::prefault) is called, an order may cause a page fault.
    fn untouched(limits: BookLimits) -> Self
    where
        Self: Sized;

    /// Creates empty books and touches all their memory.
    fn new(limits: BookLimits) -> Self
    where
        Self: Sized,
    {
        let mut books = Self::untouched(limits);
        books.prefault();
        books
    }

    /// Touches all memory that has not been touched yet.
    fn prefault(&mut self) {}

    /// The limits given at creation.
    fn limits(&self) -> BookLimits;

    /// Number of open orders in all books.
    fn order_count(&self) -> u32;

    /// Number of price levels in all books.
    fn level_count(&self) -> u32;

    /// Enters an order at the tail of its level.
    ///
    /// # Errors
    /// [`AddError`] when a bound is reached or the order cannot rest; the books are then unchanged.
    fn add(&mut self, order: Order<T>) -> Result<OrderHandle, AddError>;

    /// Reduces an order by `qty`; it keeps its priority, and is removed at zero. Returns the new quantity.
    ///
    /// # Panics
    /// When `qty` is more than the order's quantity.
    fn reduce(&mut self, handle: OrderHandle, qty: Qty) -> Qty;

    /// Adds `qty` to an order, which keeps its priority, and returns its new quantity. Returns `None` and
    /// changes nothing when its level's total would overflow.
    ///
    /// # Panics
    /// When the handle names no open order.
    fn increase(&mut self, handle: OrderHandle, qty: Qty) -> Option<Qty>;

    /// Removes an order and returns its last state.
    fn remove(&mut self, handle: OrderHandle) -> Order<T>;

    /// The order under a handle; `None` when the handle names no open order.
    fn order(&self, handle: OrderHandle) -> Option<Order<T>>;

    /// Mutable access to the caller's data of an order.
    fn data_mut(&mut self, handle: OrderHandle) -> &mut T;

    /// The best level of a side.
    fn best(&self, instrument: InstrumentId, side: Side) -> Option<Level>;

    /// Best price of a side.
    #[inline]
    fn best_price(&self, instrument: InstrumentId, side: Side) -> Option<Price> {
        self.best(instrument, side).map(|level| level.price)
    }

    /// True when an incoming order of `side` at `limit` would trade with the best resting order.
    #[inline]
    fn would_trade(&self, instrument: InstrumentId, side: Side, limit: Price) -> bool {
        self.best_price(instrument, side.opposite()).is_some_and(|best| side.crosses(limit, best))
    }

    /// The order of a side that trades next.
    fn front(&self, instrument: InstrumentId, side: Side) -> Option<OrderHandle>;

    /// The levels of a side, from the best.
    fn levels(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Level>;

    /// The orders of a side in price-time priority.
    fn orders(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = (OrderHandle, Order<T>)>;

    /// Orders and quantity ahead of an order at its own price. Walks the level from the front.
    fn queue_position(&self, handle: OrderHandle) -> QueuePosition;

    /// Writes the best levels of a side to `out` and returns their number.
    fn depth(&self, instrument: InstrumentId, side: Side, out: &mut [Level]) -> usize {
        out.iter_mut().zip(self.levels(instrument, side)).map(|(slot, level)| *slot = level).count()
    }

    /// Quantity on `side` that an opposite order with this limit could trade; counting stops at `enough`.
    fn available(&self, instrument: InstrumentId, side: Side, limit: Price, enough: Qty) -> Qty {
        let mut total = Qty::ZERO;
        for level in self.levels(instrument, side) {
            if total >= enough || !side.opposite().crosses(limit, level.price) {
                break;
            }
            total = Qty(total.0.saturating_add(level.qty.0));
        }
        total.min(enough)
    }

    /// Prefetches the memory for a change of this order; does not change the books. Accepts `None` too, so
    /// that no caller needs an unpredictable branch.
    #[inline]
    fn prefetch(&self, _handle: Option<OrderHandle>) {}

    /// Prefetches the order's neighbours in the queue, and its level. Call it once the cache lines of
    /// [`OrderBooks::prefetch`] have arrived.
    #[inline]
    fn prefetch_neighbours(&self, _handle: Option<OrderHandle>) {}

    /// Prefetches the next order in the queue of this open order.
    #[inline]
    fn prefetch_next(&self, _handle: OrderHandle) {}

    /// As [`OrderBooks::prefetch_next`], for the second order behind this one. Reads the first.
    #[inline]
    fn prefetch_second_next(&self, _handle: OrderHandle) {}

    /// Prefetches the table entry of an expected order's level; returns the input of
    /// [`OrderBooks::look_ahead`].
    #[inline]
    fn hint(&self, _instrument: InstrumentId, _side: Side, _price: Price) -> Hint {
        Hint::NONE
    }

    /// Prefetches all memory for a group of waiting messages, in steps such as from an order to its level.
    /// Does each step for the whole group before the next step. Does not change the books.
    #[inline]
    fn look_ahead(&self, _hints: &mut [Hint]) {}

    /// Digest of all levels and queues, without the callers' data: equal for equal books, whatever their
    /// implementation, history and handles. Walks everything.
    #[must_use]
    fn state_hash(&self) -> u64
    where
        Self: Sized,
    {
        state_hash(self, |_, _| {})
    }
}

/// Digest (XXH3, 64 bits) of all levels and queues of `books`; `data` hashes the caller's data of an order.
///
/// The walk is canonical: instruments ascending, bids before asks, levels from the best with their
/// totals, orders of a level in time priority.
#[must_use]
pub fn state_hash<T: Copy, B: OrderBooks<T>>(books: &B, data: impl FnMut(&mut Xxh3, &Order<T>)) -> u64 {
    digest(
        books.limits(),
        |instrument, side| books.levels(instrument, side),
        |instrument, side| books.orders(instrument, side).map(|(_, order)| order),
        data,
    )
}
