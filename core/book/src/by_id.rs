//! The trait of books whose orders are named by the venue's own numbers.

use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

use crate::digest::digest;
use crate::{AddError, BookLimits, Level, Order, QueuePosition};

/// What a message that waits is about, as far as it says: an open order, or the place of a new one. All of it is a guess:
/// whatever is in it, nothing is changed.
#[derive(Clone, Copy, Debug)]
pub struct Coming {
    /// The order.
    pub id: OrderId,
    /// Its instrument.
    pub instrument: InstrumentId,
    /// Bid or ask, of a new order.
    pub side: Side,
    /// The level of a new order.
    pub price: Price,
}

impl Coming {
    /// About nothing.
    pub const NOTHING: Coming =
        Coming { id: OrderId(0), instrument: InstrumentId(0), side: Side::Buy, price: Price(0) };
}

/// What books found out of something [`Coming`].
#[derive(Clone, Copy, Debug)]
pub struct Announced {
    pub(crate) id: u64,
    /// Where the order is looked for first.
    pub(crate) home: u32,
    /// Where a new order's level would be.
    pub(crate) level: u32,
}

impl Announced {
    /// Nothing.
    pub const NOTHING: Announced = Announced { id: 0, home: 0, level: 0 };
}

/// Order-by-order books in price-time priority by instrument, their orders found by id: what a feed is made into.
///
/// Books are dense by [`InstrumentId`]: reading one outside [`BookLimits::max_instrument`] finds it empty. The books only
/// keep orders; whether two orders trade is the caller's business, so a book may be crossed if the caller makes it so.
pub trait BooksById {
    /// Empty books.
    fn new(limits: BookLimits) -> Self
    where
        Self: Sized;

    /// The bounds.
    fn limits(&self) -> BookLimits;

    /// Open orders in all books.
    fn order_count(&self) -> u32;

    /// Price levels in all books.
    fn level_count(&self) -> u32;

    /// Enters an order at the tail of its level.
    ///
    /// # Errors
    /// [`AddError`] when a bound is reached, the order cannot rest or its id is taken; nothing changed.
    fn add(&mut self, order: Order<()>) -> Result<(), AddError>;

    /// The open order of an id.
    fn find(&self, id: OrderId) -> Option<Order<()>>;

    /// Takes `qty` off an order in the book of `instrument`, which keeps its priority; an order of which nothing is left is
    /// removed. Returns what is left, `None` when no such order rests there.
    ///
    /// # Panics
    /// When `qty` is more than there is.
    fn reduce(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty>;

    /// Adds `qty` to an order in the book of `instrument`, which keeps its priority. Returns what it has then; `None`, and
    /// nothing changed, when no such order rests there or its level's quantity has no room for it.
    fn increase(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty>;

    /// Removes an order from the book of `instrument` and returns it as it was; `None` when no such order rests there.
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

    /// What trades before an order at its own price. Walks the level from the front.
    fn queue_position(&self, id: OrderId) -> Option<QueuePosition>;

    /// Starts to fetch where an order is, or where it would be entered; a hint without effect on the books.
    #[inline]
    fn prefetch(&self, id: OrderId) {
        let _ = id;
    }

    /// The same, and returns what [`BooksById::look_ahead`] goes on from.
    #[inline]
    fn announce(&self, coming: &Coming) -> Announced {
        let _ = coming;
        Announced::NOTHING
    }

    /// Starts to fetch what lies further, the levels of orders and their neighbours, once what [`BooksById::announce`] asked
    /// for has arrived. For messages that wait together; a hint without effect on the books. Nothing that was announced is of
    /// use afterwards.
    #[inline]
    fn look_ahead(&self, announced: &mut [Announced]) {
        let _ = announced;
    }

    /// Digest of all levels and queues: equal for equal books, whatever their implementation and history. Walks everything.
    #[must_use]
    fn state_hash(&self) -> u64
    where
        Self: Sized,
    {
        let (levels, orders) = (|id, side| self.levels(id, side), |id, side| self.orders(id, side));
        digest(self.limits(), levels, orders, |_, _| {})
    }
}
