//! The public order book, and the update that a feed handler should publish for each message.

use tickpath_book::Order;
use tickpath_types::{
    InstrumentId, MarketEvent, MarketEventKind, MarketUpdate, OrderId, Price, PriceLevel, Qty, Side,
    UpdateKind,
};

/// Displayed orders in arrival order.
#[derive(Default)]
pub(super) struct PublicBook {
    orders: Vec<Order<()>>,
}

impl PublicBook {
    /// Applies an event. If an order changes, returns the update that a feed handler publishes; its `health`
    /// is not set.
    pub(super) fn apply(&mut self, event: &MarketEvent) -> Option<MarketUpdate> {
        let instrument = event.instrument;
        let (kind, order) = match event.kind {
            MarketEventKind::Add { order_id, side, price, qty } => {
                let order = Order { id: order_id, instrument, side, price, qty, data: () };
                self.orders.push(order);
                (UpdateKind::Add, order)
            }
            MarketEventKind::Executed { order_id, qty, .. } => {
                (UpdateKind::Trade, self.reduce(order_id, qty)?)
            }
            MarketEventKind::ExecutedAt { order_id, qty, price, .. } => {
                (UpdateKind::Trade, Order { price, ..self.reduce(order_id, qty)? })
            }
            MarketEventKind::Reduced { order_id, qty } => (UpdateKind::Reduce, self.reduce(order_id, qty)?),
            MarketEventKind::Deleted { order_id } => (UpdateKind::Delete, self.remove(order_id)?),
            MarketEventKind::Replaced { old_order_id, order_id, price, qty } => {
                let Order { side, .. } = self.remove(old_order_id)?;
                let order = Order { id: order_id, instrument, side, price, qty, data: () };
                self.orders.push(order);
                (UpdateKind::Replace, order)
            }
            _ => return None,
        };
        let [bid, ask] = Side::BOTH.map(|side| PriceLevel::of(best(&self.orders, instrument, side)));
        Some(MarketUpdate {
            sequence: event.sequence.0,
            ts_event: event.ts.0,
            order_id: order.id.0,
            price: order.price.0,
            qty: order.qty.0,
            bid,
            ask,
            instrument: instrument.0,
            kind: kind as u8,
            side: order.side as u8,
            ..MarketUpdate::default()
        })
    }

    fn place(&self, order_id: OrderId) -> Option<usize> {
        self.orders.iter().position(|order| order.id == order_id)
    }

    fn remove(&mut self, order_id: OrderId) -> Option<Order<()>> {
        self.place(order_id).map(|place| self.orders.remove(place))
    }

    /// Reduces an order by `qty`. Returns the order with `qty` in place of its quantity; `None` if unknown.
    fn reduce(&mut self, order_id: OrderId, qty: Qty) -> Option<Order<()>> {
        let place = self.place(order_id)?;
        let order = &mut self.orders[place];
        order.qty = Qty(order.qty.0.saturating_sub(qty.0));
        let taken = Order { qty, ..*order };
        if order.qty.is_zero() {
            self.orders.remove(place);
        }
        Some(taken)
    }
}

/// Returns the best price of a side, and the total displayed quantity at that price.
pub(super) fn best(orders: &[Order<()>], instrument: InstrumentId, side: Side) -> Option<(Price, Qty)> {
    let own = || orders.iter().filter(|order| (order.instrument, order.side) == (instrument, side));
    let prices = own().map(|order| order.price);
    let best = prices.reduce(|a, b| if side.is_better(b, a) { b } else { a })?;
    let qty = own().filter(|order| order.price == best).map(|order| order.qty.0).sum();
    Some((best, Qty(qty)))
}
