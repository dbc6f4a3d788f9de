//! Reference model of the order books, made of ordered maps and queues; tests compare the fast books with it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tickpath_book::{AddError, BookLimits, Level, Order, OrderBooks, OrderHandle, QueuePosition};
use tickpath_types::{InstrumentId, Price, Qty, Side};

type Levels = BTreeMap<Price, VecDeque<OrderHandle>>;

/// Books made of standard collections. They allocate on each change and are meant for tests, not for the hot
/// path.
#[derive(Clone, Debug)]
pub struct ReferenceBooks<T = ()> {
    limits: BookLimits,
    sides: BTreeMap<(InstrumentId, Side), Levels>,
    orders: HashMap<OrderHandle, Order<T>>,
    next_slot: u32,
    free: Vec<OrderHandle>,
}

impl<T: Copy> ReferenceBooks<T> {
    fn queues(
        &self,
        instrument: InstrumentId,
        side: Side,
    ) -> impl Iterator<Item = (Price, &VecDeque<OrderHandle>)> {
        let levels = self.sides.get(&(instrument, side));
        let ascending = levels.into_iter().flat_map(|levels| levels.iter());
        let descending = levels.into_iter().flat_map(|levels| levels.iter().rev());
        // One of the two iterators is empty. The best ask is the lowest price, the best bid the highest.
        let asks = (side == Side::Sell).then_some(ascending).into_iter().flatten();
        let bids = (side == Side::Buy).then_some(descending).into_iter().flatten();
        asks.chain(bids).map(|(price, queue)| (*price, queue))
    }

    fn level(&self, price: Price, queue: &VecDeque<OrderHandle>) -> Level {
        let qty = queue.iter().map(|handle| self.orders[handle].qty.0).sum();
        Level { price, qty: Qty(qty), order_count: queue.len() as u32 }
    }

    fn check(&self, order: &Order<T>) -> Result<(), AddError> {
        let BookLimits { max_instrument, max_orders, max_levels } = self.limits;
        if order.instrument > max_instrument {
            return Err(AddError::UnknownInstrument(order.instrument));
        }
        if order.qty.is_zero() {
            return Err(AddError::ZeroQty);
        }
        if self.order_count() >= max_orders {
            return Err(AddError::BookFull(max_orders));
        }
        let queue = self.sides.get(&(order.instrument, order.side)).and_then(|it| it.get(&order.price));
        match queue {
            // The order count is never below the level count. It is checked first, because counting
            // the levels needs an iteration.
            None if self.order_count() >= max_levels && self.level_count() >= max_levels => {
                Err(AddError::LevelsFull(max_levels))
            }
            Some(queue) if self.level(order.price, queue).qty.0.checked_add(order.qty.0).is_none() => {
                Err(AddError::QtyOverflow(order.price))
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, handle: OrderHandle) -> &mut Order<T> {
        self.orders.get_mut(&handle).expect("the handle names an open order")
    }
}

impl<T: Copy> OrderBooks<T> for ReferenceBooks<T> {
    fn untouched(limits: BookLimits) -> Self {
        Self { limits, sides: BTreeMap::new(), orders: HashMap::new(), next_slot: 1, free: Vec::new() }
    }

    fn limits(&self) -> BookLimits {
        self.limits
    }

    fn order_count(&self) -> u32 {
        self.orders.len() as u32
    }

    fn level_count(&self) -> u32 {
        self.sides.values().map(|levels| levels.len() as u32).sum()
    }

    fn add(&mut self, order: Order<T>) -> Result<OrderHandle, AddError> {
        self.check(&order)?;
        let handle = self.free.pop().unwrap_or_else(|| {
            self.next_slot += 1;
            OrderHandle::new(self.next_slot - 1).expect("slots count from 1")
        });
        self.orders.insert(handle, order);
        let levels = self.sides.entry((order.instrument, order.side)).or_default();
        levels.entry(order.price).or_default().push_back(handle);
        Ok(handle)
    }

    fn reduce(&mut self, handle: OrderHandle, qty: Qty) -> Qty {
        let order = self.open(handle);
        let left = order.qty.0.checked_sub(qty.0).expect("an order is reduced by at most what it has");
        if left == 0 {
            self.remove(handle);
        } else {
            order.qty = Qty(left);
        }
        Qty(left)
    }

    fn increase(&mut self, handle: OrderHandle, qty: Qty) -> Option<Qty> {
        let order = *self.open(handle);
        let level = self.levels(order.instrument, order.side).find(|level| level.price == order.price);
        level.expect("an open order has its level").qty.0.checked_add(qty.0)?;
        let order = self.open(handle);
        order.qty = Qty(order.qty.0 + qty.0);
        Some(order.qty)
    }

    fn remove(&mut self, handle: OrderHandle) -> Order<T> {
        let order = *self.open(handle);
        self.orders.remove(&handle);
        self.free.push(handle);
        let levels = self.sides.get_mut(&(order.instrument, order.side)).expect("an open order has its side");
        let queue = levels.get_mut(&order.price).expect("an open order has its level");
        queue.retain(|other| *other != handle);
        if queue.is_empty() {
            levels.remove(&order.price);
        }
        order
    }

    fn order(&self, handle: OrderHandle) -> Option<Order<T>> {
        self.orders.get(&handle).copied()
    }

    fn data_mut(&mut self, handle: OrderHandle) -> &mut T {
        &mut self.open(handle).data
    }

    fn best(&self, instrument: InstrumentId, side: Side) -> Option<Level> {
        self.levels(instrument, side).next()
    }

    fn front(&self, instrument: InstrumentId, side: Side) -> Option<OrderHandle> {
        self.orders(instrument, side).next().map(|(handle, _)| handle)
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Level> {
        self.queues(instrument, side).map(|(price, queue)| self.level(price, queue))
    }

    fn orders(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = (OrderHandle, Order<T>)> {
        self.queues(instrument, side).flat_map(|(_, queue)| queue.iter()).map(|it| (*it, self.orders[it]))
    }

    fn queue_position(&self, handle: OrderHandle) -> QueuePosition {
        let order = self.order(handle).expect("the handle names an open order");
        let ahead = self
            .orders(order.instrument, order.side)
            .filter(|(_, other)| other.price == order.price)
            .take_while(|(other, _)| *other != handle);
        ahead.fold(QueuePosition::default(), |position, (_, other)| QueuePosition {
            orders_ahead: position.orders_ahead + 1,
            qty_ahead: Qty(position.qty_ahead.0 + other.qty.0),
        })
    }
}
