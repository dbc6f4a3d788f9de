//! What every structure does, and the digest that all of them must agree on.

use tickpath_book::{FastBooks, Level, Order, OrderBooks, OrderHandle, OrderIndex};
use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};
use xxhash_rust::xxh3::Xxh3;

/// How large the books of a day become.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Books are numbered from 1 to this.
    pub max_instrument: InstrumentId,
    /// Open orders, with some room.
    pub max_orders: u32,
}

impl Limits {
    /// Sides of all books.
    pub fn sides(self) -> usize {
        (usize::from(self.max_instrument.0) + 1) * 2
    }

    /// For the crate's own books.
    pub fn books(self) -> tickpath_book::BookLimits {
        tickpath_book::BookLimits::new(self.max_instrument, self.max_orders)
    }
}

/// The place of a side among all sides.
#[inline]
pub fn side_index(instrument: InstrumentId, side: Side) -> usize {
    usize::from(instrument.0) * 2 + side as usize
}

/// The side at a place.
pub fn side_at(index: usize) -> (InstrumentId, Side) {
    (InstrumentId((index / 2) as u16), Side::BOTH[index % 2])
}

/// A price as a number of which the greater is the better on its side.
#[inline]
pub fn key(side: Side, price: Price) -> i64 {
    price.0 * side.sign()
}

/// The price of a key.
#[inline]
pub fn price(side: Side, key: i64) -> Price {
    Price(key * side.sign())
}

/// An order as the digest sees it.
#[derive(Clone, Copy, Debug)]
pub struct Resting {
    /// Its reference.
    pub id: u64,
    /// Its level.
    pub price: Price,
    /// What is left of it.
    pub qty: u64,
}

/// Books whose orders are named by the venue's reference. The day is consistent: a reference that is not there is a
/// mistake of the structure.
pub trait Books {
    /// Empty books.
    fn new(limits: Limits) -> Self;
    /// Enters an order at the tail of its level.
    fn add(&mut self, order: Order<()>);
    /// Takes `qty` off an order and removes it when nothing is left.
    fn reduce(&mut self, id: u64, qty: Qty);
    /// Removes an order.
    fn remove(&mut self, id: u64) -> Order<()>;
    /// Best price of a side.
    fn best_price(&self, instrument: InstrumentId, side: Side) -> Option<Price>;
    /// The levels of a side from the best, with the totals that the structure keeps.
    fn levels(&self, instrument: InstrumentId, side: Side) -> Vec<Level>;
    /// The orders of a side in price-time priority.
    fn orders(&self, instrument: InstrumentId, side: Side) -> Vec<Resting>;
}

/// Books whose orders are named by the place where they are kept.
pub trait HandleBooks {
    /// Empty books.
    fn new(limits: Limits) -> Self;
    /// Enters an order at the tail of its level.
    fn add(&mut self, order: Order<()>) -> OrderHandle;
    /// Takes `qty` off an order, removes it when nothing is left, and returns what is left.
    fn reduce(&mut self, handle: OrderHandle, qty: Qty) -> Qty;
    /// Removes an order.
    fn remove(&mut self, handle: OrderHandle) -> Order<()>;
    /// Best price of a side.
    fn best_price(&self, instrument: InstrumentId, side: Side) -> Option<Price>;
    /// The levels of a side from the best.
    fn levels(&self, instrument: InstrumentId, side: Side) -> Vec<Level>;
    /// The orders of a side in price-time priority.
    fn orders(&self, instrument: InstrumentId, side: Side) -> Vec<Resting>;
}

/// From the venue's reference to a place.
pub trait IdMap {
    /// An empty map with room for all orders.
    fn new(limits: Limits) -> Self;
    /// Where an order is.
    fn find(&self, id: u64) -> Option<OrderHandle>;
    /// Enters an order.
    fn insert(&mut self, id: u64, handle: OrderHandle);
    /// Takes an order out.
    fn remove(&mut self, id: u64) -> Option<OrderHandle>;
}

/// The index that a feed has: all orders in its hash table.
pub struct Hashed(OrderIndex);

impl IdMap for Hashed {
    fn new(limits: Limits) -> Self {
        Hashed(OrderIndex::new(limits.max_orders))
    }

    #[inline]
    fn find(&self, id: u64) -> Option<OrderHandle> {
        self.0.find(id)
    }

    #[inline]
    fn insert(&mut self, id: u64, handle: OrderHandle) {
        self.0.insert(id, handle).expect("the index has room for the day");
    }

    #[inline]
    fn remove(&mut self, id: u64) -> Option<OrderHandle> {
        self.0.remove(id)
    }
}

/// Books by place, and the map that leads there.
pub struct Indexed<B, I> {
    books: B,
    index: I,
}

const RESTS: &str = "the day names only orders that rest";

impl<B: HandleBooks, I: IdMap> Books for Indexed<B, I> {
    fn new(limits: Limits) -> Self {
        Indexed { books: B::new(limits), index: I::new(limits) }
    }

    #[inline]
    fn add(&mut self, order: Order<()>) {
        let handle = self.books.add(order);
        self.index.insert(order.id.0, handle);
    }

    #[inline]
    fn reduce(&mut self, id: u64, qty: Qty) {
        let handle = self.index.find(id).expect(RESTS);
        if self.books.reduce(handle, qty).is_zero() {
            self.index.remove(id);
        }
    }

    #[inline]
    fn remove(&mut self, id: u64) -> Order<()> {
        self.books.remove(self.index.remove(id).expect(RESTS))
    }

    #[inline]
    fn best_price(&self, instrument: InstrumentId, side: Side) -> Option<Price> {
        self.books.best_price(instrument, side)
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> Vec<Level> {
        self.books.levels(instrument, side)
    }

    fn orders(&self, instrument: InstrumentId, side: Side) -> Vec<Resting> {
        self.books.orders(instrument, side)
    }
}

/// The crate's own books.
pub struct Tickpath<B = FastBooks<()>>(B);

impl<B: OrderBooks<()>> HandleBooks for Tickpath<B> {
    fn new(limits: Limits) -> Self {
        Tickpath(B::new(limits.books()))
    }

    #[inline]
    fn add(&mut self, order: Order<()>) -> OrderHandle {
        self.0.add(order).expect("the books have room for the day")
    }

    #[inline]
    fn reduce(&mut self, handle: OrderHandle, qty: Qty) -> Qty {
        self.0.reduce(handle, qty)
    }

    #[inline]
    fn remove(&mut self, handle: OrderHandle) -> Order<()> {
        self.0.remove(handle)
    }

    #[inline]
    fn best_price(&self, instrument: InstrumentId, side: Side) -> Option<Price> {
        self.0.best_price(instrument, side)
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> Vec<Level> {
        self.0.levels(instrument, side).collect()
    }

    fn orders(&self, instrument: InstrumentId, side: Side) -> Vec<Resting> {
        let view = |order: Order<()>| Resting { id: order.id.0, price: order.price, qty: order.qty.0 };
        self.0.orders(instrument, side).map(|(_, order)| view(order)).collect()
    }
}

/// The levels of a side of which only the orders are kept.
pub fn levels_of(orders: &[Resting]) -> Vec<Level> {
    let level = |orders: &[Resting]| Level {
        price: orders[0].price,
        qty: Qty(orders.iter().map(|order| order.qty).sum()),
        order_count: orders.len() as u32,
    };
    orders.chunk_by(|a, b| a.price == b.price).map(level).collect()
}

/// An order of which nothing else is known.
pub fn order_of(side: usize, id: u64, key: i64, qty: u64) -> Order<()> {
    let (instrument, side) = side_at(side);
    Order { id: OrderId(id), instrument, side, price: price(side, key), qty: Qty(qty), data: () }
}

/// The same digest as [`tickpath_book::state_hash`], and how many orders rest.
pub fn digest<B: Books>(books: &B, max_instrument: InstrumentId) -> (u64, u32) {
    let (mut hasher, mut live) = (Xxh3::new(), 0);
    for instrument in (0..=max_instrument.0).map(InstrumentId) {
        for side in Side::BOTH {
            for level in books.levels(instrument, side) {
                hasher.update(&instrument.0.to_le_bytes());
                hasher.update(&[side as u8]);
                hasher.update(&level.price.0.to_le_bytes());
                hasher.update(&level.qty.0.to_le_bytes());
                hasher.update(&level.order_count.to_le_bytes());
            }
            for order in books.orders(instrument, side) {
                hasher.update(&order.price.0.to_le_bytes());
                hasher.update(&order.id.to_le_bytes());
                hasher.update(&order.qty.to_le_bytes());
                live += 1;
            }
        }
    }
    (hasher.digest(), live)
}
