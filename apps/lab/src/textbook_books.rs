//! Books as a textbook has them, and as a user writes them first: the peer of the feed's books.
//!
//! A hash map of the orders by reference, and per side an ordered map of price levels with their totals. They
//! have no queues, so they do less than the feed's books.

use std::collections::{BTreeMap, HashMap};

use anyhow::Context as _;
use tickpath_nasdaq::itch50::Message;
use tickpath_types::{OrderId, Price, Qty, Side};

use crate::itch_books::frames;

/// A resting order.
struct Order {
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
#[derive(Default)]
pub(crate) struct TextbookBooks {
    orders: HashMap<OrderId, Order>,
    /// The levels of bids and asks by stock locate.
    books: Vec<[BTreeMap<Price, Level>; 2]>,
}

impl TextbookBooks {
    /// Applies a day's file and returns the number of messages.
    pub(crate) fn apply(&mut self, file: &[u8]) -> anyhow::Result<u64> {
        let mut count = 0;
        for message in frames(file) {
            self.apply_message(&Message::parse(message).context("a message of a day")?);
            count += 1;
        }
        Ok(count)
    }

    fn apply_message(&mut self, message: &Message<'_>) {
        match message {
            Message::AddOrder(add) => {
                let Some(side) = add.side.side() else { return };
                self.add(
                    add.order_ref.get(),
                    add.stock_locate.get().0,
                    side,
                    add.price.get(),
                    add.shares.get(),
                );
            }
            Message::AddOrderMpid(add) => {
                let Some(side) = add.side.side() else { return };
                self.add(
                    add.order_ref.get(),
                    add.stock_locate.get().0,
                    side,
                    add.price.get(),
                    add.shares.get(),
                );
            }
            Message::OrderDelete(delete) => {
                self.remove(delete.order_ref.get());
            }
            Message::OrderReplace(replace) => {
                if let Some(Order { locate, side, .. }) = self.remove(replace.original_order_ref.get()) {
                    let (price, qty) = (replace.price.get(), replace.shares.get());
                    self.add(replace.new_order_ref.get(), locate, side, price, qty);
                }
            }
            Message::OrderExecuted(executed) => {
                self.reduce(executed.order_ref.get(), executed.executed_shares.get());
            }
            Message::OrderExecutedWithPrice(executed) => {
                self.reduce(executed.order_ref.get(), executed.executed_shares.get());
            }
            Message::OrderCancel(cancel) => self.reduce(cancel.order_ref.get(), cancel.canceled_shares.get()),
            _ => {}
        }
    }

    fn add(&mut self, id: OrderId, locate: u16, side: Side, price: Price, qty: Qty) {
        let index = usize::from(locate);
        if index >= self.books.len() {
            self.books.resize_with(index + 1, Default::default);
        }
        let level = self.books[index][side as usize].entry(price).or_default();
        level.qty = Qty(level.qty.0 + qty.0);
        level.order_count += 1;
        self.orders.insert(id, Order { locate, side, price, qty });
    }

    fn remove(&mut self, id: OrderId) -> Option<Order> {
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

    fn reduce(&mut self, id: OrderId, by: Qty) {
        let Some(order) = self.orders.get_mut(&id) else { return };
        if order.qty <= by {
            self.remove(id);
            return;
        }
        order.qty = Qty(order.qty.0 - by.0);
        let levels = &mut self.books[usize::from(order.locate)][order.side as usize];
        if let Some(level) = levels.get_mut(&order.price) {
            level.qty = Qty(level.qty.0 - by.0);
        }
    }

    /// Number of orders.
    pub(crate) fn order_count(&self) -> usize {
        self.orders.len()
    }

    /// The levels of a side from the best: price, quantity and number of orders.
    pub(crate) fn levels(&self, locate: u16, side: Side) -> Vec<(Price, Qty, u32)> {
        let Some(levels) = self.books.get(usize::from(locate)).map(|book| &book[side as usize]) else {
            return Vec::new();
        };
        let view = |(price, level): (&Price, &Level)| (*price, level.qty, level.order_count);
        match side {
            Side::Buy => levels.iter().rev().map(view).collect(),
            Side::Sell => levels.iter().map(view).collect(),
        }
    }
}
