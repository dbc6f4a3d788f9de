//! The trait of books whose orders are identified by the venue's order ids.

use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

use crate::digest::digest;
use crate::group::{OrderGroup, OrderMessages, Step};
use crate::{AddError, BookLimits, Level, Order, QueuePosition};

/// Prefetch request for a waiting message about an open or a new order. All fields may be guesses: a
/// prefetch does not change the books.
#[derive(Clone, Copy, Debug)]
pub struct PrefetchRequest {
    /// The order's id.
    pub id: OrderId,
    /// Instrument of the order.
    pub instrument: InstrumentId,
    /// Side of a new order.
    pub side: Side,
    /// Price of a new order.
    pub price: Price,
}

/// Order-by-order books in price-time priority by instrument, with orders found by id, for feed handlers.
///
/// [`InstrumentId`] is the index of a book; a book beyond [`BookLimits::max_instrument`] reads as empty.
/// The books only keep orders; the caller decides whether two orders trade, so a book may be crossed.
pub trait BooksById {
    /// Creates empty books.
    fn new(limits: BookLimits) -> Self
    where
        Self: Sized;

    /// The limits given at creation.
    fn limits(&self) -> BookLimits;

    /// Number of open orders in all books.
    fn order_count(&self) -> u32;

    /// Number of price levels in all books.
    fn level_count(&self) -> u32;

    /// Enters an order at the tail of its level.
    ///
    /// # Errors
    /// [`AddError`] when a bound is reached, the order cannot rest or its id is taken; the books are then
    /// unchanged.
    fn add(&mut self, order: Order<()>) -> Result<(), AddError>;

    /// The open order with an id.
    fn find(&self, id: OrderId) -> Option<Order<()>>;

    /// Reduces an order in the book of `instrument` by `qty`; it keeps its priority, and is removed at zero.
    /// Returns the remaining quantity, `None` when no such order rests there.
    ///
    /// # Panics
    /// When `qty` is more than the order's quantity.
    fn reduce(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty>;

    /// Adds `qty` to an order in the book of `instrument`; the order keeps its priority. Returns its new
    /// quantity. Returns `None` and changes nothing when no such order rests there or its level's total would
    /// overflow.
    fn increase(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty>;

    /// Removes an order from the book of `instrument` and returns it; `None` when no such order rests there.
    fn remove(&mut self, instrument: InstrumentId, id: OrderId) -> Option<Order<()>>;

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
    fn front(&self, instrument: InstrumentId, side: Side) -> Option<Order<()>>;

    /// The levels of a side from the best.
    fn levels(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Level>;

    /// The orders of a side in price-time priority.
    fn orders(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Order<()>>;

    /// The orders of one level in their priority; none if there is no such level.
    fn queue(&self, instrument: InstrumentId, side: Side, price: Price) -> impl Iterator<Item = Order<()>> {
        self.orders(instrument, side)
            .skip_while(move |order| side.is_better(order.price, price))
            .take_while(move |order| order.price == price)
    }

    /// Orders and quantity ahead of an order at its own price. Walks the level from the front.
    fn queue_position(&self, id: OrderId) -> Option<QueuePosition>;

    /// Prefetches an order, or the places where it would be entered; does not change the books.
    #[inline]
    fn prefetch(&self, request: &PrefetchRequest) {
        let _ = request;
    }

    /// Puts the changes of up to [`OrderGroup::LEN_MAX`] messages into `group`, and prefetches the memory that
    /// they need. Does not change the books. A message that changes no order is an exception; by default every
    /// message is.
    #[inline(always)]
    fn prepare<M>(
        &self,
        group: &mut OrderGroup,
        messages: impl Iterator<Item = M>,
        protocol: &impl OrderMessages<M>,
    ) {
        let _ = protocol;
        group.fill_with_exceptions(messages);
    }

    /// Applies the changes of a prepared group in their order. Stops at one that the caller has to handle;
    /// call it again until the group is [`Done`](Step::Done). With `REPORTS` it stops after each change that
    /// it applied. If other books prepared the group, every change is an exception.
    #[inline(always)]
    fn advance<const REPORTS: bool>(&mut self, group: &mut OrderGroup) -> Step {
        group.next_exception()
    }

    /// Digest of all levels and queues: equal for equal books, whatever their implementation and history.
    #[must_use]
    fn state_hash(&self) -> u64
    where
        Self: Sized,
    {
        let (levels, orders) = (|id, side| self.levels(id, side), |id, side| self.orders(id, side));
        digest(self.limits(), levels, orders, |_, _| {})
    }
}
