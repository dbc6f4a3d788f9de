//! Books for feeds: orders are found by the venue's id, and the price of a level determines its record.

use std::fmt::Debug;

use tickpath_lockfree::cpu::prefetch_index;
use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

use crate::group::{OrderGroup, OrderMessages, Step};
use crate::levels::Levels;
use crate::record::{LevelRecord, NIL, OrderRecord, Queues, key, side_index};
use crate::{AddError, BookLimits, BooksById, Level, Order, PrefetchRequest, QueuePosition};

/// Books for a feed whose venue identifies each order by an id. The hash table of ids stores the orders
/// themselves, and the side and price of a level determine its record.
///
/// So the memory that a message needs depends on the message alone, not on a free list that earlier messages
/// change. It can be prefetched for many waiting messages, see [`BooksById::prepare`].
///
/// The orders of a level are a list linked by index, so removing one needs no search. Each side has a ring of
/// up to 256 cells for levels at equidistant prices (a grid), and a bit per cell that marks open levels.
/// Prices that many steps apart share a cell, which usually holds the best of their levels. The other levels,
/// and those off the grid, are in a ladder, a B+ tree. A change of grid moves all levels and orders of the side, so
/// it waits until at least a quarter as many orders were added outside the cells. This bounds the average work
/// per order for any input. Nothing is allocated after creation.
///
/// `S` is the table of orders: see [`PackedBooks`](crate::PackedBooks) and
/// [`DirectBooks`](crate::DirectBooks).
#[derive(Clone, Debug)]
pub struct FeedBooks<S> {
    pub(crate) limits: BookLimits,
    pub(crate) levels: Levels,
    pub(crate) orders: S,
}

/// A table of open orders by id. An order keeps its slot until it is removed.
pub trait OrderStore: Queues + Clone + Debug + Sized {
    /// An empty table for at most `max` orders.
    fn for_orders(max: u32) -> Self;

    /// Number of orders.
    fn len(&self) -> u32;

    /// True at the maximum number of orders.
    fn is_full(&self) -> bool;

    /// The slot of the order with this id, or NIL.
    fn find(&self, id: u64) -> u32;

    /// The contents of a slot.
    fn record(&self, slot: u32) -> OrderRecord;

    /// Enters an order at its home, where nearly all are, and returns its slot. Returns NIL and changes nothing
    /// if there is no space, the table is full, or the id may be taken.
    fn enter_at_home(&mut self, id: u64, qty: Qty) -> u32;

    /// Enters an order anywhere and returns its slot; the id is not taken, and the table is not full.
    fn enter(&mut self, id: u64, qty: Qty) -> u32;

    /// Removes the order in a slot.
    fn remove(&mut self, slot: u32);

    /// Changes the quantity of an order.
    fn set_qty(&mut self, slot: u32, qty: u64);

    /// Prefetches the home of an id.
    fn prefetch(&self, id: u64);

    /// Implements [`BooksById::prepare`].
    #[inline(always)]
    fn prepare<M>(
        books: &FeedBooks<Self>,
        group: &mut OrderGroup,
        messages: impl Iterator<Item = M>,
        protocol: &impl OrderMessages<M>,
        is_large: bool,
    ) {
        let _ = (books, protocol, is_large);
        group.fill_with_exceptions(messages);
    }

    /// Implements [`BooksById::advance`].
    fn advance<const REPORTS: bool>(books: &mut FeedBooks<Self>, group: &mut OrderGroup) -> Step {
        let _ = books;
        group.next_exception()
    }
}

/// Number of open orders below which a full prefetch costs more than it saves, since most of the books'
/// memory is cached anyway. Below it, only the orders' homes are prefetched. Builds with debug assertions always
/// prefetch, so that tests check it.
const OPEN_ORDERS_MIN: u32 = 1 << 16;

impl<S: OrderStore> FeedBooks<S> {
    #[inline(always)]
    fn view(&self, record: &OrderRecord) -> Order<()> {
        record.view(self.levels.get(record.level), ())
    }

    /// The order with an id, and its slot.
    #[inline(always)]
    fn resting(&self, id: OrderId) -> Option<(u32, OrderRecord)> {
        let slot = self.orders.find(id.0);
        (slot != NIL).then(|| (slot, self.orders.record(slot)))
    }

    /// As `resting`, only in the book of `instrument`.
    #[inline(always)]
    fn resting_in(&self, instrument: InstrumentId, id: OrderId) -> Option<(u32, OrderRecord)> {
        self.resting(id).filter(|(_, record)| self.levels.get(record.level).instrument == instrument)
    }

    /// Adds an order if its home and its level's cell have space for it: the fast path. Otherwise returns
    /// false and changes nothing.
    #[inline(always)]
    fn add_directly(&mut self, order: &Order<()>) -> bool {
        let key = key(order.side, order.price);
        let side = side_index(order.instrument, order.side);
        let Some(cell) = self.levels.free_cell(side, key) else { return false };
        let level = self.levels.get(cell);
        let (qty, overflows) = level.qty.overflowing_add(order.qty.0);
        if overflows | order.qty.is_zero() {
            return false;
        }
        let opens = level.order_count == 0;
        let slot = self.orders.enter_at_home(order.id.0, order.qty);
        if slot == NIL {
            return false;
        }
        let level = self.levels.get_mut(cell);
        level.key = key;
        level.append(cell, qty, &mut self.orders, slot, order.qty);
        self.levels.note_added(side, cell, key, opens);
        true
    }

    /// Adds an order to any place of the table and any level, after all checks: the slow path.
    #[inline(never)]
    fn add_anywhere(&mut self, order: Order<()>) -> Result<(), AddError> {
        if order.instrument > self.limits.max_instrument {
            return Err(AddError::UnknownInstrument(order.instrument));
        }
        if order.qty.is_zero() {
            return Err(AddError::ZeroQty);
        }
        if self.orders.is_full() {
            return Err(AddError::BookFull(self.limits.max_orders));
        }
        let side = side_index(order.instrument, order.side);
        let key = key(order.side, order.price);
        let known = self.levels.find(side, key);
        let qty = known.map_or(0, |level| self.levels.get(level).qty);
        if known.is_none() && self.levels.is_full() {
            return Err(AddError::LevelsFull(self.limits.max_levels));
        }
        let Some(qty) = qty.checked_add(order.qty.0) else {
            return Err(AddError::QtyOverflow(order.price));
        };
        if self.orders.find(order.id.0) != NIL {
            return Err(AddError::DuplicateId(order.id));
        }
        let index = self.levels.find_or_open(side, key, NIL, &mut self.orders);
        let slot = self.orders.enter(order.id.0, order.qty);
        self.levels.get_mut(index).append(index, qty, &mut self.orders, slot, order.qty);
        Ok(())
    }
}

impl<S: OrderStore> BooksById for FeedBooks<S> {
    fn new(limits: BookLimits) -> Self {
        FeedBooks { limits, levels: Levels::new(limits), orders: S::for_orders(limits.max_orders) }
    }

    #[inline]
    fn limits(&self) -> BookLimits {
        self.limits
    }

    #[inline]
    fn order_count(&self) -> u32 {
        self.orders.len()
    }

    #[inline]
    fn level_count(&self) -> u32 {
        self.levels.count
    }

    #[inline(always)]
    fn add(&mut self, order: Order<()>) -> Result<(), AddError> {
        if self.add_directly(&order) { Ok(()) } else { self.add_anywhere(order) }
    }

    #[inline(always)]
    fn find(&self, id: OrderId) -> Option<Order<()>> {
        self.resting(id).map(|(_, record)| self.view(&record))
    }

    #[inline(always)]
    fn reduce(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty> {
        let (slot, record) = self.resting_in(instrument, id)?;
        assert!(qty.0 <= record.qty, "an open order is reduced by at most what it has");
        if qty.0 == record.qty {
            self.remove(instrument, id);
            return Some(Qty::ZERO);
        }
        self.orders.set_qty(slot, record.qty - qty.0);
        self.levels.get_mut(record.level).qty -= qty.0;
        Some(Qty(record.qty - qty.0))
    }

    fn increase(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty> {
        let (slot, record) = self.resting_in(instrument, id)?;
        let level = self.levels.get_mut(record.level);
        // The order's quantity cannot overflow, since it is at most the level's.
        level.qty = level.qty.checked_add(qty.0)?;
        self.orders.set_qty(slot, record.qty + qty.0);
        Some(Qty(record.qty + qty.0))
    }

    #[inline(always)]
    fn remove(&mut self, instrument: InstrumentId, id: OrderId) -> Option<Order<()>> {
        let (slot, record) = self.resting_in(instrument, id)?;
        let level = self.levels.get_mut(record.level);
        level.unlink(&mut self.orders, slot, &record);
        let order = record.view(level, ());
        let LevelRecord { order_count, key, .. } = *level;
        self.orders.remove(slot);
        let side = side_index(instrument, order.side);
        if self.levels.is_cell(record.level) {
            self.levels.note_removed(side, record.level, key, order_count);
        } else if order_count == 0 {
            self.levels.close_outside(side, record.level, key);
        }
        Some(order)
    }

    #[inline(always)]
    fn best(&self, instrument: InstrumentId, side: Side) -> Option<Level> {
        let best = self.levels.side(side_index(instrument, side)).best;
        if best == NIL {
            return None;
        }
        Some(self.levels.get(best).view())
    }

    #[inline(always)]
    fn would_trade(&self, instrument: InstrumentId, side: Side, limit: Price) -> bool {
        let other = side.opposite();
        let book = self.levels.side(side_index(instrument, other));
        book.best_key >= key(other, limit) && book.best != NIL
    }

    #[inline]
    fn front(&self, instrument: InstrumentId, side: Side) -> Option<Order<()>> {
        let front = self.levels.get(self.levels.side(side_index(instrument, side)).best).head;
        (front != NIL).then(|| self.view(&self.orders.record(front)))
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Level> {
        self.levels.of_side(side_index(instrument, side)).map(|level| self.levels.get(level).view())
    }

    fn orders(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Order<()>> {
        self.levels
            .of_side(side_index(instrument, side))
            .flat_map(|level| self.levels.get(level).queue(&self.orders))
            .map(|slot| self.view(&self.orders.record(slot)))
    }

    fn queue(&self, instrument: InstrumentId, side: Side, price: Price) -> impl Iterator<Item = Order<()>> {
        let level = self.levels.find_known(side_index(instrument, side), key(side, price));
        level
            .into_iter()
            .flat_map(|level| self.levels.get(level).queue(&self.orders))
            .map(|slot| self.view(&self.orders.record(slot)))
    }

    fn queue_position(&self, id: OrderId) -> Option<QueuePosition> {
        let (slot, record) = self.resting(id)?;
        Some(self.levels.get(record.level).queue_position(&self.orders, slot))
    }

    #[inline(always)]
    fn prefetch(&self, request: &PrefetchRequest) {
        self.orders.prefetch(request.id.0);
        let side = side_index(request.instrument, request.side);
        let level = self.levels.cell(side, key(request.side, request.price)).index;
        prefetch_index(&self.levels.records, level as usize);
    }

    #[inline(always)]
    fn prepare<M>(
        &self,
        group: &mut OrderGroup,
        messages: impl Iterator<Item = M>,
        protocol: &impl OrderMessages<M>,
    ) {
        let is_large = cfg!(debug_assertions) || self.order_count() >= OPEN_ORDERS_MIN;
        S::prepare(self, group, messages, protocol, is_large);
    }

    #[inline(always)]
    fn advance<const REPORTS: bool>(&mut self, group: &mut OrderGroup) -> Step {
        S::advance::<REPORTS>(self, group)
    }
}
