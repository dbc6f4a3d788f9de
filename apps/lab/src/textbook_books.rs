//! Books of standard collections, without look-ahead: the peer of the feed's books.
//!
//! A hash map of the orders by reference, and per side an ordered map of price levels with their totals. They
//! have no queues, so they do less than the feed's books.

use std::collections::{BTreeMap, HashMap};

use tickpath_book::BookLimits;
use tickpath_types::{Nanos, Price, Qty, Side};

use crate::itch_books::frames;
use crate::itch_orders::{self, Order, OrderListener};

/// A resting order.
struct Resting {
    locate: u16,
    side: Side,
    price: Price,
    qty: Qty,
}

/// All orders at one price.
#[derive(Default)]
struct Level {
    qty: Qty,
    order_count: u32,
}

/// The books of all securities.
pub(crate) struct TextbookBooks {
    orders: HashMap<u64, Resting>,
    /// The levels of bids and asks by stock locate.
    books: Vec<[BTreeMap<Price, Level>; 2]>,
}

impl TextbookBooks {
    /// Creates books whose hash map has the memory for the maximum number of orders, already in use, as the
    /// feed's books have.
    pub(crate) fn new(limits: &BookLimits) -> TextbookBooks {
        let mut orders = HashMap::with_capacity(limits.max_orders as usize);
        let resting = |_| Resting { locate: 0, side: Side::Buy, price: Price(0), qty: Qty(0) };
        orders.extend((0..u64::from(limits.max_orders)).map(|id| (id, resting(id))));
        orders.clear();
        let books = (0..=limits.max_instrument.0).map(|_| Default::default()).collect();
        TextbookBooks { orders, books }
    }

    /// Applies a day's file and returns the number of messages.
    pub(crate) fn apply(&mut self, file: &[u8]) -> anyhow::Result<u64> {
        let mut count = 0;
        for message in frames(file) {
            itch_orders::apply(message, self)?;
            count += 1;
        }
        Ok(count)
    }

    fn enter(&mut self, id: u64, order: Resting) {
        let level =
            self.books[usize::from(order.locate)][order.side as usize].entry(order.price).or_default();
        level.qty = Qty(level.qty.0 + order.qty.0);
        level.order_count += 1;
        self.orders.insert(id, order);
    }

    fn leave(&mut self, id: u64) -> Option<Resting> {
        let order = self.orders.remove(&id)?;
        let levels = &mut self.books[usize::from(order.locate)][order.side as usize];
        if let Some(level) = levels.get_mut(&order.price) {
            level.qty = Qty(level.qty.0 - order.qty.0);
            level.order_count -= 1;
            if level.order_count == 0 {
                levels.remove(&order.price);
            }
        }
        Some(order)
    }

    /// Number of orders.
    pub(crate) fn order_count(&self) -> usize {
        self.orders.len()
    }

    /// The levels of a side from the best: price, quantity and number of orders.
    pub(crate) fn levels(&self, locate: u16, side: Side) -> Vec<(Price, Qty, u32)> {
        let levels = &self.books[usize::from(locate)][side as usize];
        let view = |(price, level): (&Price, &Level)| (*price, level.qty, level.order_count);
        match side {
            Side::Buy => levels.iter().rev().map(view).collect(),
            Side::Sell => levels.iter().map(view).collect(),
        }
    }
}

impl OrderListener for TextbookBooks {
    fn add(&mut self, _: Nanos, order: Order) -> anyhow::Result<()> {
        let Order { id, instrument: locate, side, price, qty } = order;
        self.enter(id, Resting { locate, side, price, qty });
        Ok(())
    }

    fn remove(&mut self, _: Nanos, id: u64) -> anyhow::Result<()> {
        self.leave(id);
        Ok(())
    }

    fn reduce(&mut self, _: Nanos, id: u64, by: Qty) -> anyhow::Result<()> {
        let Some(order) = self.orders.get_mut(&id) else { return Ok(()) };
        if order.qty <= by {
            self.leave(id);
            return Ok(());
        }
        order.qty = Qty(order.qty.0 - by.0);
        let levels = &mut self.books[usize::from(order.locate)][order.side as usize];
        if let Some(level) = levels.get_mut(&order.price) {
            level.qty = Qty(level.qty.0 - by.0);
        }
        Ok(())
    }

    fn replace(&mut self, _: Nanos, id: u64, new_id: u64, price: Price, qty: Qty) -> anyhow::Result<()> {
        if let Some(Resting { locate, side, .. }) = self.leave(id) {
            self.enter(new_id, Resting { locate, side, price, qty });
        }
        Ok(())
    }
}
