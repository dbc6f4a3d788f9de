//! The changes of orders by the messages of an ITCH day.

use anyhow::Context as _;
use tickpath_nasdaq::itch50::Message;
use tickpath_types::{Nanos, Price, Qty, Side};

/// An order that rests.
pub(crate) struct Order {
    pub(crate) id: u64,
    pub(crate) instrument: u16,
    pub(crate) side: Side,
    pub(crate) price: Price,
    pub(crate) qty: Qty,
}

/// Takes the changes of orders in the sequence of the messages, each with its time since midnight.
pub(crate) trait OrderListener {
    /// An order enters its book.
    fn add(&mut self, ts: Nanos, order: Order) -> anyhow::Result<()>;

    /// An order is removed.
    fn remove(&mut self, ts: Nanos, id: u64) -> anyhow::Result<()>;

    /// An order loses `by` of its quantity; without a rest it is removed.
    fn reduce(&mut self, ts: Nanos, id: u64, by: Qty) -> anyhow::Result<()>;

    /// An order trades `by`, with the effect of [`reduce`](Self::reduce) on its book.
    #[inline(always)]
    fn execute(&mut self, ts: Nanos, id: u64, by: Qty) -> anyhow::Result<()> {
        self.reduce(ts, id, by)
    }

    /// An order is removed, and the order `new_id` enters the same side of its book.
    fn replace(&mut self, ts: Nanos, id: u64, new_id: u64, price: Price, qty: Qty) -> anyhow::Result<()>;
}

/// Passes the change by a message to `listener`. Messages that change no order are ignored.
///
/// # Errors
/// The message is invalid, or the listener's error.
#[inline(always)]
pub(crate) fn apply(message: &[u8], listener: &mut impl OrderListener) -> anyhow::Result<()> {
    macro_rules! add {
        ($add:ident) => {{
            let order = Order {
                id: $add.order_ref.get().0,
                instrument: $add.stock_locate.get().0,
                side: $add.side.side().context("the side of an order")?,
                price: $add.price.get(),
                qty: $add.shares.get(),
            };
            listener.add($add.timestamp.get(), order)
        }};
    }
    match Message::parse(message).context("a message of a day")? {
        Message::AddOrder(add) => add!(add),
        Message::AddOrderMpid(add) => add!(add),
        Message::OrderDelete(delete) => listener.remove(delete.timestamp.get(), delete.order_ref.get().0),
        Message::OrderCancel(cancel) => {
            listener.reduce(cancel.timestamp.get(), cancel.order_ref.get().0, cancel.canceled_shares.get())
        }
        Message::OrderExecuted(executed) => {
            let (id, by) = (executed.order_ref.get().0, executed.executed_shares.get());
            listener.execute(executed.timestamp.get(), id, by)
        }
        Message::OrderExecutedWithPrice(executed) => {
            let (id, by) = (executed.order_ref.get().0, executed.executed_shares.get());
            listener.execute(executed.timestamp.get(), id, by)
        }
        Message::OrderReplace(replace) => {
            let (id, new_id) = (replace.original_order_ref.get().0, replace.new_order_ref.get().0);
            listener.replace(replace.timestamp.get(), id, new_id, replace.price.get(), replace.shares.get())
        }
        _ => Ok(()),
    }
}
