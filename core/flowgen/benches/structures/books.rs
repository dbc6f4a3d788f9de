//! Operations that every book structure implements, and the digest that must be equal for all.

use tickpath_book::{FastBooks, Level, Order, OrderBooks, OrderHandle, OrderIndex};
use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};
use xxhash_rust::xxh3::Xxh3;

/// Maximum sizes of the books of a day.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Highest instrument id; ids begin at 1.
    pub max_instrument: InstrumentId,
    /// Maximum number of open orders, with some reserve.
    pub max_orders: u32,
}

impl Limits {
    /// Number of book sides, including those of the unused id 0.
    pub fn sides(self) -> usize {
        (usize::from(self.max_instrument.0) + 1) * 2
    }

    /// The same limits for the books of `tickpath_book`.
    pub fn books(self) -> tickpath_book::BookLimits {
        tickpath_book::BookLimits::new(self.max_instrument, self.max_orders)
    }
}

/// Index of a book's side among the sides of all books.
#[inline]
pub fn side_index(instrument: InstrumentId, side: Side) -> usize {
    usize::from(instrument.0) * 2 + side as usize
}

/// Instrument and side at a side index.
pub fn side_at(index: usize) -> (InstrumentId, Side) {
    (InstrumentId((index / 2) as u16), Side::BOTH[index % 2])
}

/// Sort key of a price: the greater key is the better price on its side.
#[inline]
pub fn key(side: Side, price: Price) -> i64 {
    price.0 * side.sign()
}

/// Price of a sort key.
#[inline]
pub fn price(side: Side, key: i64) -> Price {
    Price(key * side.sign())
}

/// A resting order, with the fields that the digest covers.
#[derive(Clone, Copy, Debug)]
pub struct Resting {
    /// Order reference.
    pub id: u64,
    /// Price.
    pub price: Price,
    /// Remaining quantity.
    pub qty: u64,
}

/// Books that identify orders by the venue's order reference. The day is consistent, so an unknown reference
/// is a bug of the structure.
pub trait Books {
    /// Creates empty books.
    fn new(limits: Limits) -> Self;
    /// Adds an order at the tail of its level.
    fn add(&mut self, order: Order<()>);
    /// Reduces an order by `qty`, and removes it when nothing is left.
    fn reduce(&mut self, id: u64, qty: Qty);
    /// Removes and returns an order.
    fn remove(&mut self, id: u64) -> Order<()>;
    /// Best price of a side.
    fn best_price(&self, instrument: InstrumentId, side: Side) -> Option<Price>;
    /// Levels of a side from the best, with the totals stored in the structure.
    fn levels(&self, instrument: InstrumentId, side: Side) -> Vec<Level>;
    /// Orders of a side in price-time priority.
    fn orders(&self, instrument: InstrumentId, side: Side) -> Vec<Resting>;
}

/// Books that identify orders by handle, which is their storage location.
pub trait HandleBooks {
    /// Creates empty books.
    fn new(limits: Limits) -> Self;
    /// Adds an order at the tail of its level.
    fn add(&mut self, order: Order<()>) -> OrderHandle;
    /// Reduces an order by `qty`, removes it when nothing is left, and returns the remaining quantity.
    fn reduce(&mut self, handle: OrderHandle, qty: Qty) -> Qty;
    /// Removes and returns an order.
    fn remove(&mut self, handle: OrderHandle) -> Order<()>;
    /// Best price of a side.
    fn best_price(&self, instrument: InstrumentId, side: Side) -> Option<Price>;
    /// Levels of a side from the best.
    fn levels(&self, instrument: InstrumentId, side: Side) -> Vec<Level>;
    /// Orders of a side in price-time priority.
    fn orders(&self, instrument: InstrumentId, side: Side) -> Vec<Resting>;
}

/// A map from order references to handles.
pub trait IdMap {
    /// Creates an empty map with capacity for all orders.
    fn new(limits: Limits) -> Self;
    /// Handle of an order.
    fn find(&self, id: u64) -> Option<OrderHandle>;
    /// Adds an order.
    fn insert(&mut self, id: u64, handle: OrderHandle);
    /// Removes an order and returns its handle.
    fn remove(&mut self, id: u64) -> Option<OrderHandle>;
}

/// An [`IdMap`] in an `OrderIndex`, the hash table that feed handlers use.
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

/// Books that find orders by handle, combined with a map from order references to handles.
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

/// A book structure of `tickpath_book`; the default is `FastBooks`.
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

/// Levels of a side, computed from its orders.
pub fn levels_of(orders: &[Resting]) -> Vec<Level> {
    let level = |orders: &[Resting]| Level {
        price: orders[0].price,
        qty: Qty(orders.iter().map(|order| order.qty).sum()),
        order_count: orders.len() as u32,
    };
    orders.chunk_by(|a, b| a.price == b.price).map(level).collect()
}

/// Creates an order; `side` is a [`side_index`], and `key` is the sort key of its price.
pub fn order_of(side: usize, id: u64, key: i64, qty: u64) -> Order<()> {
    let (instrument, side) = side_at(side);
    Order { id: OrderId(id), instrument, side, price: price(side, key), qty: Qty(qty), data: () }
}

/// Returns the same digest as [`tickpath_book::state_hash`], and the number of resting orders.
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
