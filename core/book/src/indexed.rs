//! [`Indexed`]: any books with handles, combined with an index of order ids.

use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

use crate::{
    AddError, BookLimits, BooksById, InsertError, Level, Order, OrderBooks, OrderHandle, OrderIndex,
    PrefetchRequest, QueuePosition,
};

/// [`OrderBooks`] with an [`OrderIndex`] of their handles.
#[derive(Clone, Debug)]
pub struct Indexed<B> {
    books: B,
    index: OrderIndex,
}

impl<B: OrderBooks<()>> Indexed<B> {
    fn open(&self, id: OrderId) -> Option<OrderHandle> {
        self.index.find(id.0)
    }

    fn open_in(&self, instrument: InstrumentId, id: OrderId) -> Option<OrderHandle> {
        let handle = self.open(id)?;
        (self.books.order(handle)?.instrument == instrument).then_some(handle)
    }

    /// Creates empty books whose memory is touched at its first use; the index is touched now.
    #[must_use]
    pub fn untouched(limits: BookLimits) -> Self {
        Indexed { books: B::untouched(limits), index: OrderIndex::new(limits.max_orders) }
    }
}

impl<B: OrderBooks<()>> BooksById for Indexed<B> {
    fn new(limits: BookLimits) -> Self {
        Indexed { books: B::new(limits), index: OrderIndex::new(limits.max_orders) }
    }

    fn limits(&self) -> BookLimits {
        self.books.limits()
    }

    fn order_count(&self) -> u32 {
        self.books.order_count()
    }

    fn level_count(&self) -> u32 {
        self.books.level_count()
    }

    #[inline]
    fn add(&mut self, order: Order<()>) -> Result<(), AddError> {
        let handle = self.books.add(order)?;
        self.index.insert(order.id.0, handle).map_err(|error| {
            self.books.remove(handle);
            match error {
                InsertError::Duplicate(_) => AddError::DuplicateId(order.id),
                InsertError::IndexFull(_) => AddError::BookFull(self.books.limits().max_orders),
            }
        })
    }

    #[inline]
    fn find(&self, id: OrderId) -> Option<Order<()>> {
        self.books.order(self.open(id)?)
    }

    #[inline]
    fn reduce(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty> {
        let left = self.books.reduce(self.open_in(instrument, id)?, qty);
        if left.is_zero() {
            self.index.remove(id.0);
        }
        Some(left)
    }

    fn increase(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty> {
        self.books.increase(self.open_in(instrument, id)?, qty)
    }

    #[inline]
    fn remove(&mut self, instrument: InstrumentId, id: OrderId) -> Option<Order<()>> {
        let handle = self.open_in(instrument, id)?;
        self.index.remove(id.0);
        Some(self.books.remove(handle))
    }

    #[inline]
    fn best(&self, instrument: InstrumentId, side: Side) -> Option<Level> {
        self.books.best(instrument, side)
    }

    #[inline]
    fn would_trade(&self, instrument: InstrumentId, side: Side, limit: Price) -> bool {
        self.books.would_trade(instrument, side, limit)
    }

    fn front(&self, instrument: InstrumentId, side: Side) -> Option<Order<()>> {
        self.books.order(self.books.front(instrument, side)?)
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Level> {
        self.books.levels(instrument, side)
    }

    fn orders(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Order<()>> {
        self.books.orders(instrument, side).map(|(_, order)| order)
    }

    fn queue_position(&self, id: OrderId) -> Option<QueuePosition> {
        Some(self.books.queue_position(self.open(id)?))
    }

    #[inline]
    fn prefetch(&self, request: &PrefetchRequest) {
        self.index.prefetch(request.id.0);
    }
}
