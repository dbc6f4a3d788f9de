//! Orders that wait for a trade at their stop price, and those whose price was reached.
//!
//! Waiting orders rest in separate books at their stop price: buy orders, which wait for a rising price, as
//! asks, and sell orders as bids. So the best order of a side is the one that is triggered first.

use tickpath_book::{BookLimits, Order, OrderBooks};
use tickpath_types::{InstrumentId, Price, Qty, SessionId, Side, UserRefNum};

use super::owner::Owner;

/// An order whose stop price was reached and that is not yet processed.
#[derive(Clone, Copy, Debug)]
pub(super) struct TriggeredOrder {
    entry: u64,
    pub(super) session: SessionId,
    pub(super) user_ref: UserRefNum,
    pub(super) qty: Qty,
    pub(super) executed: u64,
}

/// The orders that wait for a stop price, and those that this command's trades have triggered.
#[derive(Clone, Debug)]
pub(super) struct Stops<B> {
    pub(super) books: B,
    /// Triggered orders, in the order in which they are processed; empty between commands.
    pub(super) triggered: Vec<TriggeredOrder>,
}

impl<B: OrderBooks<Owner>> Stops<B> {
    pub(super) fn untouched(limits: BookLimits, max_orders: u32) -> Stops<B> {
        Stops { books: B::untouched(limits), triggered: Vec::with_capacity(max_orders as usize) }
    }

    /// Removes the orders with stop prices between `low` and `high` from the books, and appends them to
    /// `triggered` in the order of entry. `take_entry` marks an order as no longer waiting, and returns its
    /// entry number.
    pub(super) fn collect(
        &mut self,
        instrument: InstrumentId,
        low: Price,
        high: Price,
        mut take_entry: impl FnMut(&Owner) -> u64,
    ) {
        let begin = self.triggered.len();
        for (side, reached) in [(Side::Sell, high), (Side::Buy, low)] {
            while self.books.would_trade(instrument, side.opposite(), reached) {
                let Some(front) = self.books.front(instrument, side) else { break };
                let Order { qty, data, .. } = self.books.remove(front);
                let Owner { session, user_ref, executed, .. } = data;
                let entry = take_entry(&data);
                self.triggered.push(TriggeredOrder { entry, session, user_ref, qty, executed });
            }
        }
        self.triggered[begin..].sort_unstable_by_key(|triggered| triggered.entry);
    }
}
