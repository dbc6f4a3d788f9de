//! Books that compute the storage location of an order from its id, and of a level from its price.

mod levels;
mod table;

use std::hint::select_unpredictable;

use tickpath_lockfree::cpu::prefetch_index;
use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

use crate::record::{LevelRecord, NIL, OrderRecord, key, side_index};
use crate::{AddError, BookLimits, BooksById, Level, Order, PrefetchRequest, PrefetchTicket, QueuePosition};
use levels::Levels;
use table::OrderTable;

/// Books for a feed whose venue identifies each order by an id. The hash table of ids stores the orders
/// themselves, and the side and price of a level determine its record.
///
/// So the memory that a message needs depends on the message alone, not on a free list that earlier messages
/// change. It can be prefetched for many waiting messages, see [`BooksById::start_prefetch`].
///
/// The orders of a level are a list linked by index, so removing one needs no search. Each side has a ring of
/// 256 cells for levels at equidistant prices (a grid), and a bit per cell that marks open levels. Prices 256
/// steps apart share a cell, which usually holds the best of their levels. The other levels, and those off
/// the grid, are in a sorted array. A change of grid moves all levels and orders of the side, so it waits
/// until at least that many orders were added outside the cells. This bounds the average work per order for
/// any input. Nothing is allocated after creation.
///
/// The table takes 128 to 256 bytes for each order of the maximum number, and the cells 16 KiB for each
/// instrument. Only a venue may choose the ids: a peer could choose ids that collide, which turns each
/// look-up into a linear search.
#[derive(Clone, Debug)]
pub struct DirectBooks {
    limits: BookLimits,
    levels: Levels,
    orders: OrderTable,
}

impl DirectBooks {
    /// The order in `slot` and its level.
    #[inline(always)]
    fn at(&self, slot: u32) -> (&OrderRecord, &LevelRecord) {
        let record = self.orders.get(slot);
        (record, self.levels.get(record.level))
    }

    #[inline(always)]
    fn view(&self, slot: u32) -> Order<()> {
        let (record, level) = self.at(slot);
        record.view(level, ())
    }

    /// Adds an order if its home bucket and its level's cell have space for it: the fast path. Otherwise
    /// returns false and changes nothing.
    #[inline(always)]
    fn add_directly(&mut self, order: &Order<()>) -> bool {
        let Some(spot) = self.orders.spot_for(order.id.0) else { return false };
        let key = key(order.side, order.price);
        let side = side_index(order.instrument, order.side);
        let Some(cell) = self.levels.free_cell(side, key) else { return false };
        let slot = self.orders.slot(spot);
        let level = self.levels.get_mut(cell);
        let (qty, overflows) = level.qty.overflowing_add(order.qty.0);
        if overflows | order.qty.is_zero() {
            return false;
        }
        let opens = level.order_count == 0;
        level.key = key;
        level.append(cell, qty, &mut self.orders.buckets.records, slot, order.qty);
        self.levels.note_added(side, cell, key, opens);
        self.orders.enter_at(spot, order.id.0);
        true
    }

    /// Removes an order that is in its home bucket and whose level is in a cell: the fast path. Otherwise
    /// returns `None` and changes nothing.
    #[inline(always)]
    fn remove_directly(&mut self, instrument: InstrumentId, id: OrderId) -> Option<Order<()>> {
        let spot = self.orders.spot_of(id.0)?;
        let slot = self.orders.slot(spot);
        let record = *self.orders.get(slot);
        if !self.levels.is_cell(record.level) {
            return None;
        }
        let level = self.levels.get_mut(record.level);
        if level.instrument != instrument {
            return None;
        }
        level.unlink(&mut self.orders.buckets.records, slot, &record);
        let (order, left, key) = (record.view(level, ()), level.order_count, level.key);
        self.orders.take_from(spot);
        self.levels.note_removed(side_index(instrument, order.side), record.level, key, left);
        Some(order)
    }

    /// Adds an order to any bucket and any level, after all checks: the slow path.
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
        if self.orders.slot_of(order.id.0).is_some() {
            return Err(AddError::DuplicateId(order.id));
        }
        let index = self.levels.find_or_open(side, key, &mut self.orders.buckets.records);
        let spot = self.orders.enter(order.id.0);
        let slot = self.orders.slot(spot);
        self.levels.get_mut(index).append(index, qty, &mut self.orders.buckets.records, slot, order.qty);
        Ok(())
    }

    /// Removes an order from any bucket and any level: the slow path.
    #[inline(never)]
    fn remove_anywhere(&mut self, instrument: InstrumentId, id: OrderId) -> Option<Order<()>> {
        let spot = self.orders.find(id.0)?;
        let slot = self.orders.slot(spot);
        let order = self.view(slot);
        if order.instrument != instrument {
            return None;
        }
        let record = *self.orders.get(slot);
        let level = self.levels.get_mut(record.level);
        level.unlink(&mut self.orders.buckets.records, slot, &record);
        if level.order_count == 0 {
            self.levels.close(record.level);
        }
        self.orders.take(spot);
        Some(order)
    }
}

impl BooksById for DirectBooks {
    fn new(limits: BookLimits) -> Self {
        DirectBooks { limits, levels: Levels::new(limits), orders: OrderTable::of_orders(limits.max_orders) }
    }

    fn limits(&self) -> BookLimits {
        self.limits
    }

    fn order_count(&self) -> u32 {
        self.orders.len()
    }

    fn level_count(&self) -> u32 {
        self.levels.count
    }

    #[inline(always)]
    fn add(&mut self, order: Order<()>) -> Result<(), AddError> {
        if self.add_directly(&order) { Ok(()) } else { self.add_anywhere(order) }
    }

    #[inline(always)]
    fn find(&self, id: OrderId) -> Option<Order<()>> {
        self.orders.slot_of(id.0).map(|slot| self.view(slot))
    }

    #[inline(always)]
    fn reduce(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty> {
        let slot = self.orders.slot_of(id.0)?;
        if self.at(slot).1.instrument != instrument {
            return None;
        }
        let record = self.orders.get_mut(slot);
        assert!(qty.0 <= record.qty, "an open order is reduced by at most what it has");
        if qty.0 == record.qty {
            self.remove(instrument, id);
            return Some(Qty::ZERO);
        }
        record.qty -= qty.0;
        let (left, level) = (record.qty, record.level);
        self.levels.get_mut(level).qty -= qty.0;
        Some(Qty(left))
    }

    fn increase(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty> {
        let slot = self.orders.slot_of(id.0)?;
        let level = self.levels.get_mut(self.orders.get(slot).level);
        if level.instrument != instrument {
            return None;
        }
        // The order's quantity cannot overflow, since it is at most the level's.
        level.qty = level.qty.checked_add(qty.0)?;
        let record = self.orders.get_mut(slot);
        record.qty += qty.0;
        Some(Qty(record.qty))
    }

    #[inline(always)]
    fn remove(&mut self, instrument: InstrumentId, id: OrderId) -> Option<Order<()>> {
        self.remove_directly(instrument, id).or_else(|| self.remove_anywhere(instrument, id))
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
        (front != NIL).then(|| self.view(front))
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Level> {
        self.levels.of_side(side_index(instrument, side)).map(|level| self.levels.get(level).view())
    }

    fn orders(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Order<()>> {
        self.levels
            .of_side(side_index(instrument, side))
            .flat_map(|level| self.levels.get(level).queue(&self.orders.buckets.records))
            .map(|slot| self.view(slot))
    }

    fn queue_position(&self, id: OrderId) -> Option<QueuePosition> {
        let own = self.orders.slot_of(id.0)?;
        Some(self.at(own).1.queue_position(&self.orders.buckets.records, own))
    }

    #[inline(always)]
    fn prefetch(&self, id: OrderId) {
        self.orders.prefetch(id.0);
    }

    #[inline(always)]
    fn start_prefetch(&self, request: &PrefetchRequest) -> PrefetchTicket {
        let home = self.orders.prefetch(request.id.0);
        let side = side_index(request.instrument, request.side);
        let level = self.levels.likely_cell(side, key(request.side, request.price));
        PrefetchTicket { id: request.id.0, home, level }
    }

    // Out of line, so that the loop has all CPU registers.
    #[inline(never)]
    fn look_ahead(&self, tickets: &mut [PrefetchTicket]) {
        // Branchless loops: a CPU cannot predict whether a message is about a new or an open order.
        for PrefetchTicket { id, home, level } in &mut *tickets {
            let slot = self.orders.peek(*home, *id);
            let own = self.orders.get(slot);
            // The removal of an order changes its neighbours.
            self.orders.prefetch_slot(own.prev);
            self.orders.prefetch_slot(own.next);
            let is_new = slot == NIL;
            prefetch_index(&self.levels.records, select_unpredictable(is_new, *level, own.level) as usize);
            *level = select_unpredictable(is_new, *level, NIL);
        }
        // Adding an order writes to its level's last order: prefetch it, as a CPU has few buffers for writes.
        for PrefetchTicket { level, .. } in tickets {
            self.orders.prefetch_slot(self.levels.tail_of_any(*level));
        }
    }
}
