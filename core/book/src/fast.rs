//! The fast books: records in flat arrays, linked by index.

mod window;

use std::hint::select_unpredictable;

use arrayvec::ArrayVec;
use tickpath_lockfree::cpu::prefetch_index;
use tickpath_types::{InstrumentId, Price, Qty, Side};

use crate::grid::{CELLS, Grids, LEVELS_EXAMINED, distance};
use crate::ladder::{Ladder, Ladders};
use crate::record::{LevelRecord, NIL, OrderRecord, Queues, key, merged, side_index};
use crate::{AddError, BookLimits, Hint, Level, Order, OrderBooks, OrderHandle, QueuePosition};
use window::Window;

const FREE: LevelRecord = LevelRecord::closed(InstrumentId(0), Side::Buy);

/// Books in which an order and the caller's data are in one cache line, if the data has at most 32 bytes.
///
/// The orders of a level are a list linked by index, so removing one needs no search. Each side has a window
/// of 256 prices near its best, with a table entry and a bit for each price, so that its levels need no
/// search either. The other levels are in ladders, B+ trees. A window moves only after at least as many orders
/// were added to levels outside it as there are levels to move. This bounds the average work per order
/// for any input. Nothing is allocated after creation.
#[derive(Clone, Debug)]
pub struct FastBooks<T = ()> {
    limits: BookLimits,
    sides: Vec<BookSide>,
    /// For each of `sides`: the levels in its window, by cell.
    cells: Vec<[u32; CELLS]>,
    orders: Vec<OrderSlot<T>>,
    levels: Vec<LevelRecord>,
    ladders: Ladders,
    grids: Grids,
    /// Free orders, linked by `next`.
    free_order: u32,
    /// Free levels, linked by `head`.
    free_level: u32,
    order_count: u32,
    level_count: u32,
}

/// An order, or a free record, with the caller's data.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct OrderSlot<T> {
    record: OrderRecord,
    data: T,
}

/// One side of one book: all fields that each message needs, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct BookSide {
    window: Window,
    /// Key of the best level; `i64::MIN` when there is none.
    best_key: i64,
    best: u32,
    /// The levels outside the window.
    ladder: Ladder,
}

const _: () = assert!(size_of::<BookSide>() == 64);

impl BookSide {
    const EMPTY: BookSide =
        BookSide { window: Window::UNPLACED, best_key: i64::MIN, best: NIL, ladder: Ladder::EMPTY };
}

impl<T> Queues for [OrderSlot<T>] {
    #[inline(always)]
    fn next(&self, slot: u32) -> u32 {
        self[slot as usize].record.next
    }

    #[inline(always)]
    fn qty(&self, slot: u32) -> u64 {
        self[slot as usize].record.qty
    }

    #[inline(always)]
    fn set_next(&mut self, slot: u32, next: u32) {
        self[slot as usize].record.next = next;
    }

    #[inline(always)]
    fn set_prev(&mut self, slot: u32, prev: u32) {
        self[slot as usize].record.prev = prev;
    }

    #[inline(always)]
    fn set_level(&mut self, slot: u32, level: u32) {
        self[slot as usize].record.level = level;
    }

    #[inline(always)]
    fn enter_queue(&mut self, slot: u32, qty: Qty, level: u32, prev: u32) {
        let record = &mut self[slot as usize].record;
        (record.qty, record.level, record.prev, record.next) = (qty.0, level, prev, NIL);
    }
}

/// Number of records by which lazily touched memory grows: one or two pages.
const EXTENSION: usize = 128;

/// Range of up to `count` new records after `len` existing ones; at most `max` besides the null record.
fn extension_bounds(len: usize, count: usize, max: u32) -> (u32, u32) {
    let end = len.saturating_add(count).min(max as usize + 1);
    (len as u32, end as u32)
}

/// Link of the free record `slot`: the next record, or `behind` for the last record before `end`.
const fn next_free(slot: u32, end: u32, behind: u32) -> u32 {
    if slot + 1 < end { slot + 1 } else { behind }
}

impl<T: Copy> FastBooks<T> {
    fn side(&self, instrument: InstrumentId, side: Side) -> &BookSide {
        self.sides.get(side_index(instrument, side) as usize).unwrap_or(&BookSide::EMPTY)
    }

    fn level(&self, index: u32) -> &LevelRecord {
        &self.levels[index as usize]
    }

    fn record(&self, slot: u32) -> &OrderRecord {
        &self.orders[slot as usize].record
    }

    fn view(&self, slot: u32) -> Order<T> {
        let OrderSlot { record, data } = &self.orders[slot as usize];
        record.view(self.level(record.level), *data)
    }

    /// The levels of a side from the best.
    fn level_indices(&self, side: u32) -> impl Iterator<Item = u32> {
        let book = self.sides.get(side as usize).unwrap_or(&BookSide::EMPTY);
        let inside = book.window.iter().map(move |cell| self.cells[side as usize][cell]);
        merged(&self.levels, inside, self.ladders.iter(book.ladder))
    }

    #[inline(always)]
    fn find_or_open_level(&mut self, side: u32, key: i64) -> Result<u32, AddError> {
        let cell = self.sides[side as usize].window.cell(&self.grids, key);
        match self.cells[side as usize].get(cell as usize) {
            Some(&NIL) => self.open_inside(side, cell as usize, key),
            Some(level) => Ok(*level),
            None => self.find_or_open_outside(side, key),
        }
    }

    #[inline(always)]
    fn open_inside(&mut self, side: u32, cell: usize, key: i64) -> Result<u32, AddError> {
        let level = self.open_level(side, key)?;
        self.cells[side as usize][cell] = level;
        self.sides[side as usize].window.set(cell, true);
        Ok(level)
    }

    #[inline(never)]
    fn find_or_open_outside(&mut self, side: u32, key: i64) -> Result<u32, AddError> {
        if self.sides[side as usize].window.count_outside_add() {
            self.place_window(side);
            return self.find_or_open_level(side, key);
        }
        match self.ladders.find(self.sides[side as usize].ladder, key) {
            Ok((level, _)) => Ok(level),
            Err(place) => {
                let level = self.open_level(side, key)?;
                let book = &mut self.sides[side as usize];
                book.window.note_outside_level(key);
                self.ladders.insert(&mut book.ladder, place, key, level);
                Ok(level)
            }
        }
    }

    /// Takes a level record for a new price and updates the side's best level. The caller enters the record
    /// into the window or the ladder.
    #[inline(always)]
    fn open_level(&mut self, side: u32, key: i64) -> Result<u32, AddError> {
        let mut level = self.free_level;
        if level == NIL {
            level = self.extend_levels(EXTENSION);
            if level == NIL {
                return Err(AddError::LevelsFull(self.limits.max_levels));
            }
        }
        self.free_level = self.level(level).head;
        self.levels[level as usize] = LevelRecord::opened(side, key);
        self.level_count += 1;
        let book = &mut self.sides[side as usize];
        // Branchless. Keys are equal only if there is no best level.
        let is_best = key >= book.best_key;
        book.best_key = if is_best { key } else { book.best_key };
        book.best = if is_best { level } else { book.best };
        Ok(level)
    }

    /// Prepends up to `count` new records to the list of free ones, and returns the list's head.
    #[cold]
    #[inline(never)]
    fn extend_orders(&mut self, count: usize) -> u32 {
        let (first, end) = extension_bounds(self.orders.len(), count, self.limits.max_orders);
        let behind = self.free_order;
        let data = self.orders[NIL as usize].data;
        let free = |slot| OrderRecord { next: next_free(slot, end, behind), ..OrderRecord::FREE };
        self.orders.extend((first..end).map(|slot| OrderSlot { record: free(slot), data }));
        self.free_order = if first < end { first } else { behind };
        self.free_order
    }

    /// As `extend_orders`, for levels.
    #[cold]
    #[inline(never)]
    fn extend_levels(&mut self, count: usize) -> u32 {
        let (first, end) = extension_bounds(self.levels.len(), count, self.limits.max_levels);
        let behind = self.free_level;
        let free = |slot| LevelRecord { head: next_free(slot, end, behind), ..FREE };
        self.levels.extend((first..end).map(free));
        self.free_level = if first < end { first } else { behind };
        self.free_level
    }

    #[inline(always)]
    fn close_level(&mut self, index: u32) {
        let level = self.level(index);
        let (key, side) = (level.key, level.side_index());
        let book = &mut self.sides[side as usize];
        let cell = book.window.cell(&self.grids, key) as usize;
        match self.cells[side as usize].get_mut(cell) {
            Some(level) => {
                *level = NIL;
                book.window.set(cell, false);
            }
            None => self.ladders.remove(&mut book.ladder, key),
        }
        if book.best == index {
            self.find_best(side);
        }
        self.levels[index as usize] = LevelRecord { head: self.free_level, ..FREE };
        self.free_level = index;
        self.level_count -= 1;
    }

    #[inline(always)]
    fn find_best(&mut self, side: u32) {
        let book = &mut self.sides[side as usize];
        match book.window.best() {
            Some(cell) if !book.window.is_led_from_outside => {
                book.best = self.cells[side as usize][cell];
                book.best_key = book.window.key(&self.grids, cell);
            }
            _ => self.find_best_of_all(side),
        }
    }

    #[inline(never)]
    fn find_best_of_all(&mut self, side: u32) {
        let best = self.level_indices(side).next();
        let best_key = best.map_or(i64::MIN, |level| self.level(level).key);
        let book = &mut self.sides[side as usize];
        (book.best, book.best_key) = (best.unwrap_or(NIL), best_key);
    }

    /// Moves a side's window to its current best levels.
    #[cold]
    #[inline(never)]
    fn place_window(&mut self, side: u32) {
        let old = self.sides[side as usize].window;
        let mut top = ArrayVec::<i64, LEVELS_EXAMINED>::new();
        top.extend(self.level_indices(side).take(LEVELS_EXAMINED).map(|level| self.level(level).key));
        let Some(best) = top.first().copied() else {
            self.sides[side as usize].window = Window::UNPLACED;
            return;
        };
        for cell in old.iter() {
            let level = std::mem::replace(&mut self.cells[side as usize][cell], NIL);
            let key = self.level(level).key;
            let book = &mut self.sides[side as usize];
            let Err(place) = self.ladders.find(book.ladder, key) else {
                unreachable!("a level is in its window or in its ladder")
            };
            self.ladders.insert(&mut book.ladder, place, key, level);
        }
        let mut nearest = ArrayVec::<(i64, u32), { 2 * CELLS }>::new();
        let mut outside = self.ladders.iter(self.sides[side as usize].ladder);
        nearest.extend(outside.by_ref().take(2 * CELLS).map(|level| (self.level(level).key, level)));
        // Levels that were not examined stay outside the window, so it must not reach them.
        let bound = outside.next().map_or(i64::MIN, |level| self.level(level).key);
        drop(outside);
        let worst = nearest.last().map_or(best, |(key, _)| *key);
        let book = &mut self.sides[side as usize];
        book.window = Window::around(best, worst, distance(&top), bound, &mut self.grids);
        for (key, level) in nearest {
            let cell = book.window.cell(&self.grids, key) as usize;
            if cell < CELLS {
                self.ladders.remove(&mut book.ladder, key);
                self.cells[side as usize][cell] = level;
                book.window.set(cell, true);
            } else {
                book.window.note_outside_level(key);
            }
        }
    }
}

// `inline(always)`: each method has several callers, one of them hot. Without it the compiler emits
// calls, which took a fifth more instructions per command of the matching engine.
impl<T: Copy + Default> OrderBooks<T> for FastBooks<T> {
    fn untouched(limits: BookLimits) -> Self {
        let sides = (usize::from(limits.max_instrument.0) + 1) * 2;
        let (orders, levels) = (limits.max_orders as usize, limits.max_levels as usize);
        let mut books = FastBooks {
            limits,
            sides: vec![BookSide::EMPTY; sides],
            // `black_box` makes the program write the memory now, so the first orders cause no page faults.
            cells: (0..sides).map(|_| std::hint::black_box([NIL; CELLS])).collect(),
            orders: Vec::with_capacity(orders + 1),
            levels: Vec::with_capacity(levels + 1),
            ladders: Ladders::untouched(sides, levels),
            grids: Grids::new(),
            free_order: NIL,
            free_level: NIL,
            order_count: 0,
            level_count: 0,
        };
        // Slot 0 of each array is its null record.
        books.orders.push(OrderSlot { record: OrderRecord::FREE, data: T::default() });
        books.levels.push(FREE);
        books
    }

    fn prefault(&mut self) {
        self.extend_orders(self.limits.max_orders as usize);
        self.extend_levels(self.limits.max_levels as usize);
        self.ladders.prefault();
    }

    fn limits(&self) -> BookLimits {
        self.limits
    }

    fn order_count(&self) -> u32 {
        self.order_count
    }

    fn level_count(&self) -> u32 {
        self.level_count
    }

    #[inline(always)]
    fn add(&mut self, order: Order<T>) -> Result<OrderHandle, AddError> {
        if order.instrument > self.limits.max_instrument {
            return Err(AddError::UnknownInstrument(order.instrument));
        }
        if order.qty.is_zero() {
            return Err(AddError::ZeroQty);
        }
        let mut slot = self.free_order;
        if slot == NIL {
            slot = self.extend_orders(EXTENSION);
        }
        let Some(handle) = OrderHandle::new(slot) else {
            return Err(AddError::BookFull(self.limits.max_orders));
        };
        let side = side_index(order.instrument, order.side);
        let index = self.find_or_open_level(side, key(order.side, order.price))?;
        let level = &mut self.levels[index as usize];
        let Some(qty) = level.qty.checked_add(order.qty.0) else {
            return Err(AddError::QtyOverflow(order.price));
        };
        let added = &mut self.orders[slot as usize];
        self.free_order = added.record.next;
        added.record.id = order.id.0;
        added.data = order.data;
        level.append(index, qty, self.orders.as_mut_slice(), slot, order.qty);
        self.order_count += 1;
        Ok(handle)
    }

    #[inline]
    fn reduce(&mut self, handle: OrderHandle, qty: Qty) -> Qty {
        let record = &mut self.orders[handle.slot() as usize].record;
        assert!(
            record.level != NIL && qty.0 <= record.qty,
            "an open order is reduced by at most what it has"
        );
        if qty.0 == record.qty {
            self.remove(handle);
            return Qty::ZERO;
        }
        record.qty -= qty.0;
        self.levels[record.level as usize].qty -= qty.0;
        Qty(record.qty)
    }

    fn increase(&mut self, handle: OrderHandle, qty: Qty) -> Option<Qty> {
        let record = &mut self.orders[handle.slot() as usize].record;
        assert!(record.level != NIL, "the handle names an open order");
        let level = &mut self.levels[record.level as usize];
        // The order's quantity cannot overflow, since it is at most the level's.
        level.qty = level.qty.checked_add(qty.0)?;
        record.qty += qty.0;
        Some(Qty(record.qty))
    }

    #[inline(always)]
    fn remove(&mut self, handle: OrderHandle) -> Order<T> {
        let slot = handle.slot();
        let OrderSlot { record, data } = self.orders[slot as usize];
        assert!(record.level != NIL, "the handle names an open order");
        let level = &mut self.levels[record.level as usize];
        level.unlink(self.orders.as_mut_slice(), slot, &record);
        let order = record.view(level, data);
        if level.order_count == 0 {
            self.close_level(record.level);
        }
        let freed = &mut self.orders[slot as usize].record;
        freed.level = NIL;
        freed.next = self.free_order;
        self.free_order = slot;
        self.order_count -= 1;
        order
    }

    #[inline(always)]
    fn order(&self, handle: OrderHandle) -> Option<Order<T>> {
        let OrderSlot { record, data } = self.orders.get(handle.slot() as usize)?;
        if record.level == NIL {
            return None;
        }
        Some(record.view(self.level(record.level), *data))
    }

    #[inline]
    fn data_mut(&mut self, handle: OrderHandle) -> &mut T {
        let OrderSlot { record, data } = &mut self.orders[handle.slot() as usize];
        assert!(record.level != NIL, "the handle names an open order");
        data
    }

    #[inline(always)]
    fn best(&self, instrument: InstrumentId, side: Side) -> Option<Level> {
        let best = self.side(instrument, side).best;
        if best == NIL {
            return None;
        }
        Some(self.level(best).view())
    }

    #[inline(always)]
    fn would_trade(&self, instrument: InstrumentId, side: Side, limit: Price) -> bool {
        let other = side.opposite();
        let book = self.side(instrument, other);
        book.best != NIL && book.best_key >= key(other, limit)
    }

    #[inline(always)]
    fn front(&self, instrument: InstrumentId, side: Side) -> Option<OrderHandle> {
        OrderHandle::new(self.level(self.side(instrument, side).best).head)
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Level> {
        self.level_indices(side_index(instrument, side)).map(|level| self.level(level).view())
    }

    fn orders(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = (OrderHandle, Order<T>)> {
        self.level_indices(side_index(instrument, side))
            .flat_map(|level| self.level(level).queue(self.orders.as_slice()))
            .filter_map(|slot| Some((OrderHandle::new(slot)?, self.view(slot))))
    }

    fn queue_position(&self, handle: OrderHandle) -> QueuePosition {
        let record = self.record(handle.slot());
        assert!(record.level != NIL, "the handle names an open order");
        self.level(record.level).queue_position(self.orders.as_slice(), handle.slot())
    }

    #[inline]
    fn prefetch(&self, handle: Option<OrderHandle>) {
        prefetch_index(&self.orders, handle.map_or(NIL, OrderHandle::slot) as usize);
    }

    #[inline]
    fn prefetch_neighbours(&self, handle: Option<OrderHandle>) {
        if let Some(OrderSlot { record, .. }) =
            self.orders.get(handle.map_or(NIL, OrderHandle::slot) as usize)
        {
            prefetch_index(&self.orders, record.prev as usize);
            prefetch_index(&self.orders, record.next as usize);
            prefetch_index(&self.levels, record.level as usize);
        }
    }

    #[inline(always)]
    fn prefetch_next(&self, handle: OrderHandle) {
        prefetch_index(&self.orders, self.record(handle.slot()).next as usize);
    }

    #[inline(always)]
    fn prefetch_second_next(&self, handle: OrderHandle) {
        let next = self.record(handle.slot()).next;
        prefetch_index(&self.orders, self.record(next).next as usize);
    }

    #[inline]
    fn hint(&self, instrument: InstrumentId, side: Side, price: Price) -> Hint {
        let side_index = side_index(instrument, side);
        let book = self.sides.get(side_index as usize).unwrap_or(&BookSide::EMPTY);
        let cell = book.window.cell(&self.grids, key(side, price));
        let place = (side_index * CELLS as u32).wrapping_add(cell as u32);
        // Branchless: new and open orders arrive in an order that a CPU cannot predict.
        let place = select_unpredictable(cell < CELLS as u64, place, 0);
        prefetch_index(self.cells.as_flattened(), place as usize);
        Hint { place, ..Hint::NONE }
    }

    #[inline]
    fn look_ahead(&self, hints: &mut [Hint]) {
        for hint in &*hints {
            prefetch_index(&self.orders, hint.slot as usize);
        }
        let cells = self.cells.as_flattened();
        for hint in &mut *hints {
            let record =
                self.orders.get(hint.slot as usize).map_or(&OrderRecord::FREE, |order| &order.record);
            let place = cells.get(hint.place as usize).unwrap_or(&NIL);
            hint.level = select_unpredictable(hint.slot == NIL, *place, record.level);
            prefetch_index(&self.orders, record.prev as usize);
            prefetch_index(&self.orders, record.next as usize);
            prefetch_index(&self.levels, hint.level as usize);
        }
        for hint in &*hints {
            let level = self.levels.get(hint.level as usize).unwrap_or(&FREE);
            prefetch_index(&self.orders, level.tail as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_types::{InstrumentId, OrderId};

    use super::*;

    fn order(id: u64) -> Order<()> {
        let price = Price(100 * id as i64);
        Order { id: OrderId(id), instrument: InstrumentId(0), side: Side::Buy, price, qty: Qty(1), data: () }
    }

    /// Adds orders, each at its own level, until a bound is reached.
    fn fill(books: &mut FastBooks<()>, first: u64) -> Vec<OrderHandle> {
        (first..).map_while(|id| books.add(order(id)).ok()).collect()
    }

    #[test]
    fn books_with_lazy_memory_have_the_same_capacity() {
        for max in [0, 1, EXTENSION as u32 - 1, EXTENSION as u32, 3 * EXTENSION as u32 + 1] {
            let limits = BookLimits::new(InstrumentId(0), max);
            let (mut growing, mut touched) = (FastBooks::untouched(limits), FastBooks::new(limits));
            assert_eq!(fill(&mut growing, 1), fill(&mut touched, 1), "in the same places");
            assert_eq!((growing.order_count(), growing.level_count()), (max, max));
            let handles: Vec<_> = growing.orders(InstrumentId(0), Side::Buy).map(|(it, _)| it).collect();
            for handle in handles {
                growing.remove(handle);
            }
            assert_eq!(fill(&mut growing, 1_000).len(), max as usize, "what was used is used again");
        }
    }

    #[test]
    fn prefaulting_changes_no_order() {
        let limits = BookLimits::new(InstrumentId(0), 500);
        let mut books = FastBooks::untouched(limits);
        let handles: Vec<_> = (1..=200).map(|id| books.add(order(id)).unwrap()).collect();
        books.remove(handles[7]);
        books.prefault();
        assert_eq!(books.orders.len(), 501);
        assert_eq!(books.order(handles[8]).map(|order| order.id), Some(OrderId(9)));
        assert_eq!(fill(&mut books, 1_000).len(), 301);
    }
}
