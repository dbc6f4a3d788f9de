//! Resting orders: the books, and the orders of each security by age.

use std::fmt;

use tickpath_book::{BookLimits, FastBooks, Order, OrderBooks, OrderHandle};
use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

use super::message::locate;

/// Position of an order in the list of its security.
type ListIndex = u32;

/// All resting orders of the day, in books and in lists.
///
/// The generated day does not depend on the implementation of the books: handles are never compared.
pub(super) struct Resting {
    books: FastBooks<ListIndex>,
    /// List of resting orders of each security, by locate code less one; the newest are mostly last.
    lists: Box<[Vec<OrderHandle>]>,
}

impl fmt::Debug for Resting {
    /// Omits the orders, which are many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resting").field("orders", &self.books.order_count()).finish_non_exhaustive()
    }
}

impl Resting {
    pub fn new(securities: u16, orders_max: u32) -> Resting {
        Resting {
            books: FastBooks::new(BookLimits::new(InstrumentId(securities), orders_max)),
            lists: vec![Vec::new(); usize::from(securities)].into(),
        }
    }

    pub fn total(&self) -> u32 {
        self.books.order_count()
    }

    pub fn is_full(&self) -> bool {
        self.books.order_count() >= self.books.limits().max_orders
    }

    #[inline]
    pub fn count(&self, security: usize) -> usize {
        self.lists[security].len()
    }

    /// Best price of a side.
    #[inline]
    pub fn best(&self, security: usize, side: Side) -> Option<Price> {
        self.books.best_price(locate(security), side)
    }

    /// The order of a side that trades next.
    #[inline]
    pub fn front(&self, security: usize, side: Side) -> Option<OrderHandle> {
        self.books.front(locate(security), side)
    }

    /// The order with `newer` orders after it in the list of its security.
    #[inline]
    pub fn by_age(&self, security: usize, newer: usize) -> Option<OrderHandle> {
        let list = &self.lists[security];
        list.len().checked_sub(newer + 1).map(|index| list[index])
    }

    #[inline]
    pub fn order(&self, handle: OrderHandle) -> Order<ListIndex> {
        self.books.order(handle).expect("handles of removed orders are dropped")
    }

    /// True if the order `id` still rests under this handle. Handles are reused, order references are not.
    pub fn rests(&self, handle: OrderHandle, id: OrderId) -> bool {
        self.books.order(handle).is_some_and(|order| order.id == id)
    }

    /// Adds an order; the books must have capacity.
    pub fn add(&mut self, security: usize, id: OrderId, side: Side, price: Price, qty: Qty) -> OrderHandle {
        let list = &mut self.lists[security];
        let data = list.len() as ListIndex;
        let order = Order { id, instrument: locate(security), side, price, qty, data };
        let handle = self.books.add(order).expect("the flow adds only where there is room");
        list.push(handle);
        handle
    }

    #[inline]
    pub fn reduce(&mut self, handle: OrderHandle, qty: Qty) {
        self.books.reduce(handle, qty);
    }

    pub fn remove(&mut self, security: usize, handle: OrderHandle) -> Order<ListIndex> {
        let order = self.books.remove(handle);
        let list = &mut self.lists[security];
        list.swap_remove(order.data as usize);
        if let Some(moved) = list.get(order.data as usize) {
            *self.books.data_mut(*moved) = order.data;
        }
        order
    }
}
