//! Order books whose memory grows with the orders and instruments that a recording has.

use tickpath_book::{
    AddError, BookLimits, BooksById, Level, Order, OrderChange, OrderGroup, OrderMessages, PackedBooks,
    PrefetchRequest, QueuePosition, Step,
};
use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

/// Number of orders and instruments for which the books first have capacity, about 70 MB. Small files have
/// lower limits.
const ORDERS_MIN: u32 = 1 << 18;
const INSTRUMENTS_MIN: u16 = 512;
/// Factors by which the capacity grows.
const ORDERS_FACTOR: u32 = 2;
const INSTRUMENTS_FACTOR: u16 = 4;

/// [`PackedBooks`] that multiply their capacity when it is used up, until they reach their limits.
///
/// [`PackedBooks`] are fastest when their memory is small, and take much memory for each instrument. The
/// contents of a recording are unknown in advance, so the books begin small. An instrument takes memory from
/// its first order on: `PackedBooks` know it by a number in the order of these first orders. A change of
/// capacity enters all orders into new books. Because the capacity at least doubles, these are on average at
/// most two more entries for each order.
pub(crate) struct GrowingBooks {
    limits: BookLimits,
    books: PackedBooks,
    /// Number of each instrument in `books`; 0, an instrument without orders, until its first order.
    numbers: Box<[InstrumentId]>,
    /// The instrument of each number; element 0 is unused.
    instruments: Vec<InstrumentId>,
}

/// Number of instruments that never had an order.
const NO_NUMBER: InstrumentId = InstrumentId(0);

impl GrowingBooks {
    #[inline(always)]
    fn number(&self, instrument: InstrumentId) -> InstrumentId {
        self.numbers.get(usize::from(instrument.0)).copied().unwrap_or(NO_NUMBER)
    }

    /// The order under its own instrument instead of the instrument's number.
    #[inline(always)]
    fn named(&self, order: Order<()>) -> Order<()> {
        let instrument = self.instruments.get(usize::from(order.instrument.0));
        Order { instrument: instrument.copied().unwrap_or(NO_NUMBER), ..order }
    }

    /// Adds an order that the books could not take: of a new instrument, or beyond the capacity.
    #[cold]
    #[inline(never)]
    fn add_or_grow(&mut self, order: Order<()>) -> Result<(), AddError> {
        if order.instrument > self.limits.max_instrument {
            return Err(AddError::UnknownInstrument(order.instrument));
        }
        let known = self.number(order.instrument);
        let number = match (known, u16::try_from(self.instruments.len())) {
            (NO_NUMBER, Ok(next)) => InstrumentId(next),
            // All numbers are in use.
            (NO_NUMBER, Err(_)) => return Err(AddError::UnknownInstrument(order.instrument)),
            _ => known,
        };
        loop {
            let error = match self.books.add(Order { instrument: number, ..order }) {
                Ok(()) => break,
                Err(error) => error,
            };
            let capacity = self.books.limits();
            let grown = match error {
                AddError::UnknownInstrument(_) => {
                    let max_instrument = capacity.max_instrument.0.saturating_mul(INSTRUMENTS_FACTOR);
                    BookLimits { max_instrument: InstrumentId(max_instrument), ..capacity }
                }
                AddError::BookFull(_) | AddError::LevelsFull(_) => BookLimits {
                    max_orders: capacity.max_orders.saturating_mul(ORDERS_FACTOR),
                    max_levels: capacity.max_levels.saturating_mul(ORDERS_FACTOR),
                    ..capacity
                },
                _ => return Err(error),
            };
            let grown = self.within_limits(grown);
            if grown == capacity {
                return Err(error);
            }
            self.grow(grown);
        }
        if known == NO_NUMBER {
            self.numbers[usize::from(order.instrument.0)] = number;
            self.instruments.push(order.instrument);
        }
        Ok(())
    }

    /// A capacity that is at most that of the limits. Numbers count from 1, so one more than the number of
    /// instruments may be needed.
    fn within_limits(&self, capacity: BookLimits) -> BookLimits {
        BookLimits {
            max_instrument: capacity
                .max_instrument
                .min(InstrumentId(self.limits.max_instrument.0.saturating_add(1))),
            max_orders: capacity.max_orders.min(self.limits.max_orders),
            max_levels: capacity.max_levels.min(self.limits.max_levels),
        }
    }

    /// Enters all orders into new books with this capacity, each queue in its order.
    fn grow(&mut self, capacity: BookLimits) {
        let mut books = PackedBooks::new(capacity);
        for number in (1..=capacity.max_instrument.0).map(InstrumentId) {
            for side in Side::BOTH {
                for order in self.books.orders(number, side) {
                    books.add(order).expect("larger books have capacity for the same orders");
                }
            }
        }
        self.books = books;
    }
}

impl BooksById for GrowingBooks {
    fn new(limits: BookLimits) -> Self {
        let max_instrument = InstrumentId(limits.max_instrument.0.saturating_add(1).min(INSTRUMENTS_MIN));
        let (max_orders, max_levels) = (limits.max_orders.min(ORDERS_MIN), limits.max_levels.min(ORDERS_MIN));
        GrowingBooks {
            limits,
            books: PackedBooks::new(BookLimits { max_instrument, max_orders, max_levels }),
            numbers: vec![NO_NUMBER; usize::from(limits.max_instrument.0) + 1].into_boxed_slice(),
            instruments: vec![NO_NUMBER],
        }
    }

    fn limits(&self) -> BookLimits {
        self.limits
    }

    fn order_count(&self) -> u32 {
        self.books.order_count()
    }

    fn level_count(&self) -> u32 {
        self.books.level_count()
    }

    #[inline(always)]
    fn add(&mut self, order: Order<()>) -> Result<(), AddError> {
        let number = self.number(order.instrument);
        if number != NO_NUMBER && self.books.add(Order { instrument: number, ..order }).is_ok() {
            return Ok(());
        }
        self.add_or_grow(order)
    }

    #[inline(always)]
    fn find(&self, id: OrderId) -> Option<Order<()>> {
        self.books.find(id).map(|order| self.named(order))
    }

    #[inline(always)]
    fn reduce(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty> {
        self.books.reduce(self.number(instrument), id, qty)
    }

    fn increase(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty> {
        self.books.increase(self.number(instrument), id, qty)
    }

    #[inline(always)]
    fn remove(&mut self, instrument: InstrumentId, id: OrderId) -> Option<Order<()>> {
        self.books.remove(self.number(instrument), id).map(|order| self.named(order))
    }

    #[inline(always)]
    fn best(&self, instrument: InstrumentId, side: Side) -> Option<Level> {
        self.books.best(self.number(instrument), side)
    }

    #[inline(always)]
    fn would_trade(&self, instrument: InstrumentId, side: Side, limit: Price) -> bool {
        self.books.would_trade(self.number(instrument), side, limit)
    }

    fn front(&self, instrument: InstrumentId, side: Side) -> Option<Order<()>> {
        self.books.front(self.number(instrument), side).map(|order| self.named(order))
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Level> {
        self.books.levels(self.number(instrument), side)
    }

    fn orders(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Order<()>> {
        self.books.orders(self.number(instrument), side).map(|order| self.named(order))
    }

    fn queue(&self, instrument: InstrumentId, side: Side, price: Price) -> impl Iterator<Item = Order<()>> {
        self.books.queue(self.number(instrument), side, price).map(|order| self.named(order))
    }

    fn queue_position(&self, id: OrderId) -> Option<QueuePosition> {
        self.books.queue_position(id)
    }

    #[inline(always)]
    fn prefetch(&self, request: &PrefetchRequest) {
        let instrument = self.number(request.instrument);
        self.books.prefetch(&PrefetchRequest { instrument, ..*request });
    }

    #[inline(always)]
    fn prepare<M>(
        &self,
        group: &mut OrderGroup,
        messages: impl Iterator<Item = M>,
        protocol: &impl OrderMessages<M>,
    ) {
        self.books.prepare(group, messages, &Numbered { numbers: &self.numbers, protocol });
    }

    // If the books grow in the middle of a group, its other changes are exceptions.
    #[inline(always)]
    fn advance<const REPORTS: bool>(&mut self, group: &mut OrderGroup) -> Step {
        self.books.advance::<REPORTS>(group)
    }
}

/// A protocol with the numbers of instruments in place of the instruments.
struct Numbered<'a, P> {
    numbers: &'a [InstrumentId],
    protocol: &'a P,
}

impl<M, P: OrderMessages<M>> OrderMessages<M> for Numbered<'_, P> {
    /// An instrument without orders has no number yet, so its first order is an exception.
    #[inline(always)]
    fn change(&self, message: &M) -> Option<OrderChange> {
        let change = self.protocol.change(message)?;
        let instrument = *self.numbers.get(usize::from(change.instrument.0))?;
        (instrument != NO_NUMBER).then_some(OrderChange { instrument, ..change })
    }

    #[inline(always)]
    fn is_without_effect(&self, message: &M) -> bool {
        self.protocol.is_without_effect(message)
    }

    #[inline(always)]
    fn new_id(&self, message: &M) -> OrderId {
        self.protocol.new_id(message)
    }
}

#[cfg(test)]
mod tests {
    use tickpath_book::Indexed;
    use tickpath_reference::ReferenceBooks;
    use tickpath_types::Rng;

    use super::*;

    /// Books with these limits and their reference model.
    struct Pair {
        growing: GrowingBooks,
        reference: Indexed<ReferenceBooks>,
    }

    impl Pair {
        fn new(limits: BookLimits) -> Pair {
            Pair { growing: GrowingBooks::new(limits), reference: Indexed::new(limits) }
        }

        fn add(&mut self, instrument: u16, id: u64, price: i64) -> Result<(), AddError> {
            let order = Order {
                id: OrderId(id),
                instrument: InstrumentId(instrument),
                side: Side::BOTH[id as usize % 2],
                price: Price(price),
                qty: Qty(1 + id % 7),
                data: (),
            };
            let added = self.growing.add(order);
            assert_eq!(added.is_ok(), self.reference.add(order).is_ok(), "{order:?}");
            added
        }

        fn check(&self) {
            assert_eq!(self.growing.order_count(), self.reference.order_count());
            assert_eq!(self.growing.level_count(), self.reference.level_count());
            assert_eq!(self.growing.state_hash(), self.reference.state_hash());
        }
    }

    #[test]
    fn books_grow_with_instruments_and_orders() {
        let limits = BookLimits::new(InstrumentId(u16::MAX), 3 * ORDERS_MIN);
        let (mut pair, mut rng) = (Pair::new(limits), Rng::new(1));
        let mut ids = Vec::new();
        for id in 1..=u64::from(ORDERS_MIN + ORDERS_MIN / 4) {
            let instrument = match id {
                1 => u16::MAX,
                2 => 0,
                _ => 1 + rng.below(600) as u16 * 100,
            };
            pair.add(instrument, id, 1 + rng.below(200) as i64).unwrap();
            ids.push((InstrumentId(instrument), OrderId(id)));
            if rng.below(16) == 0 {
                let (instrument, id) = ids.swap_remove(rng.below(ids.len() as u64) as usize);
                assert_eq!(pair.growing.find(id).unwrap(), pair.reference.find(id).unwrap());
                assert!(pair.growing.remove(InstrumentId(7), id).is_none(), "another instrument");
                assert_eq!(
                    pair.growing.remove(instrument, id).unwrap(),
                    pair.reference.remove(instrument, id).unwrap()
                );
            }
        }
        assert!(pair.growing.books.limits().max_orders > ORDERS_MIN);
        assert_eq!(pair.growing.books.limits().max_instrument.0, INSTRUMENTS_MIN * INSTRUMENTS_FACTOR);
        pair.check();
    }

    #[test]
    fn limits_are_those_of_the_caller() {
        let limits = BookLimits { max_levels: 3, ..BookLimits::new(InstrumentId(2), 5) };
        let mut pair = Pair::new(limits);
        assert_eq!(pair.growing.limits(), limits);
        for (instrument, id, price, is_added) in [
            (3, 2, 1, false),
            (2, 2, 1, true),
            (0, 4, 1, true),
            (1, 6, 1, true),
            (1, 8, 2, false),
            (1, 6, 1, false),
            (1, 10, 1, true),
            (2, 12, 1, true),
            (2, 14, 1, false),
        ] {
            let added = pair.add(instrument, id, price);
            assert_eq!(added.is_ok(), is_added, "{id}: {added:?}");
            pair.check();
        }
        assert!(pair.growing.best(InstrumentId(9), Side::Buy).is_none());
        assert!(pair.growing.remove(InstrumentId(9), OrderId(2)).is_none());
    }
}
