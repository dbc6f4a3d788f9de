//! The fast books: records in flat arrays, linked by index.

mod ladder;

use tickpath_lockfree::cpu::{prefetch_index, prefetch_read};
use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

use crate::{AddError, BookLimits, Level, Order, OrderBooks, OrderHandle, QueuePosition};
use ladder::{Ladder, Ladders, Place};

/// Nobody's order and nobody's level: slot 0 of both pools. Links that lead nowhere lead here, and what
/// is written here is never read, which spares the hot path the question whether there is a neighbour.
const NIL: u32 = 0;

/// The side of a level that is not open.
const NO_SIDE: u32 = u32::MAX;

/// Books in which an order is one record of 32 bytes; the user's data are beside it, in an array of their own,
/// so that records share cache lines evenly and the order's neighbours are one line each.
///
/// The orders of a level are a list linked by index, so an order leaves it from anywhere without a
/// search. The levels of a side are sorted arrays that are searched only when an order comes to a price
/// that a direct-mapped table of recent levels does not know (which takes a fifth off the time of a feed's
/// messages over 500 books). Nothing is allocated after creation.
#[derive(Clone, Debug)]
pub struct FastBooks<T = ()> {
    limits: BookLimits,
    sides: Vec<BookSide>,
    orders: Vec<OrderRecord>,
    /// What the user keeps with each of `orders`.
    data: Vec<T>,
    levels: Vec<LevelRecord>,
    ladders: Ladders,
    /// Free orders, linked by `next`.
    free_order: u32,
    /// Free levels, linked by `head`.
    free_level: u32,
    order_count: u32,
    level_count: u32,
}

/// Entries of a side's table of recent levels; a power of two.
const RECENT_LEN: usize = 128;

/// One side of one book.
#[derive(Clone, Copy, Debug)]
struct BookSide {
    best: u32,
    ladder: Ladder,
    /// Levels by a hash of their key. An entry may be out of date: it counts only if the level it names
    /// is open for that key.
    recent: [u32; RECENT_LEN],
}

impl BookSide {
    const EMPTY: BookSide = BookSide { best: NIL, ladder: Ladder::EMPTY, recent: [NIL; RECENT_LEN] };

    /// Neighbouring prices differ by an unknown tick size. The uppermost bits of the product spread the
    /// multiples of any usual one so evenly that some fifty of them in a row seldom meet in an entry.
    #[inline]
    fn recent_entry(key: i64) -> usize {
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        (key.cast_unsigned().wrapping_mul(MULTIPLIER) >> (u64::BITS - RECENT_LEN.ilog2())) as usize
    }
}

/// An order, or a free slot when its level is nobody's.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct OrderRecord {
    id: OrderId,
    qty: u64,
    level: u32,
    prev: u32,
    next: u32,
}

/// A level, or a free slot when its side is nobody's.
#[derive(Clone, Copy, Debug)]
struct LevelRecord {
    key: i64,
    qty: u64,
    head: u32,
    tail: u32,
    order_count: u32,
    side: u32,
}

const _: () = assert!(size_of::<OrderRecord>() == 32 && size_of::<LevelRecord>() == 32);

/// A side's prices as numbers of which the greater is always the better: an ask's bits are inverted,
/// which reverses the order of integers without overflow. No branch: sides come in no order that a CPU
/// could predict.
const fn key(side: Side, price: Price) -> i64 {
    price.0 ^ -(side as i64)
}

const fn side_index(instrument: InstrumentId, side: Side) -> u32 {
    instrument.0 as u32 * 2 + side as u32
}

impl LevelRecord {
    const FREE: LevelRecord =
        LevelRecord { key: 0, qty: 0, head: NIL, tail: NIL, order_count: 0, side: NO_SIDE };

    fn side(&self) -> Side {
        Side::BOTH[(self.side & 1) as usize]
    }

    fn instrument(&self) -> InstrumentId {
        InstrumentId((self.side >> 1) as u16)
    }

    fn price(&self) -> Price {
        Price(key(self.side(), Price(self.key)))
    }

    fn view(&self) -> Level {
        Level { price: self.price(), qty: Qty(self.qty), order_count: self.order_count }
    }
}

impl<T: Copy> FastBooks<T> {
    fn side(&self, instrument: InstrumentId, side: Side) -> &BookSide {
        self.sides.get(side_index(instrument, side) as usize).unwrap_or(&BookSide::EMPTY)
    }

    /// The level that a price had lately, or another one, or nobody's.
    #[inline]
    fn recent(&self, instrument: InstrumentId, side: Side, price: Price) -> u32 {
        self.side(instrument, side).recent[BookSide::recent_entry(key(side, price))]
    }

    fn level(&self, index: u32) -> &LevelRecord {
        &self.levels[index as usize]
    }

    fn record(&self, slot: u32) -> &OrderRecord {
        &self.orders[slot as usize]
    }

    fn view(&self, slot: u32) -> Order<T> {
        let record = self.record(slot);
        let level = self.level(record.level);
        Order {
            id: record.id,
            instrument: level.instrument(),
            side: level.side(),
            price: level.price(),
            qty: Qty(record.qty),
            data: self.data[slot as usize],
        }
    }

    /// The orders of a level from `slot` on.
    fn queue(&self, slot: u32) -> impl Iterator<Item = u32> {
        let first = Some(slot).filter(|slot| *slot != NIL);
        std::iter::successors(first, |slot| Some(self.record(*slot).next).filter(|next| *next != NIL))
    }

    #[inline(always)]
    fn find_or_open_level(&mut self, side: u32, key: i64) -> Result<u32, AddError> {
        let recent = self.sides[side as usize].recent[BookSide::recent_entry(key)];
        let level = self.level(recent);
        if level.key == key && level.side == side {
            return Ok(recent);
        }
        self.search_or_open_level(side, key)
    }

    #[inline(never)]
    fn search_or_open_level(&mut self, side: u32, key: i64) -> Result<u32, AddError> {
        let level = match self.ladders.find(self.sides[side as usize].ladder, key) {
            Ok((level, _)) => level,
            Err(place) => self.open_level(side, key, place)?,
        };
        self.sides[side as usize].recent[BookSide::recent_entry(key)] = level;
        Ok(level)
    }

    fn open_level(&mut self, side: u32, key: i64, place: Place) -> Result<u32, AddError> {
        let level = self.free_level;
        if level == NIL {
            return Err(AddError::LevelsFull { max_levels: self.limits.max_levels });
        }
        self.free_level = self.level(level).head;
        self.levels[level as usize] = LevelRecord { key, side, ..LevelRecord::FREE };
        self.level_count += 1;
        let book = &mut self.sides[side as usize];
        self.ladders.insert(&mut book.ladder, place, key, level);
        book.best = self.ladders.best(book.ladder).unwrap_or(NIL);
        Ok(level)
    }

    #[inline(never)]
    fn close_level(&mut self, index: u32) {
        let LevelRecord { key, side, .. } = *self.level(index);
        let book = &mut self.sides[side as usize];
        self.ladders.remove(&mut book.ladder, key);
        book.best = self.ladders.best(book.ladder).unwrap_or(NIL);
        self.levels[index as usize] = LevelRecord { head: self.free_level, ..LevelRecord::FREE };
        self.free_level = index;
        self.level_count -= 1;
    }
}

// `inline(always)`: each of these has several callers, of which one is hot; left to itself the compiler makes calls
// of them, which took a fifth more instructions per command of the matching engine.
impl<T: Copy + Default> OrderBooks<T> for FastBooks<T> {
    fn new(limits: BookLimits) -> Self {
        let sides = (usize::from(limits.max_instrument.0) + 1) * 2;
        let (orders, levels) = (limits.max_orders as usize, limits.max_levels as usize);
        let free_list = |len: usize| if len > 0 { 1 } else { NIL };
        // Slot 0 is in no list.
        let next_free =
            |slot: usize, last: usize| if (1..last).contains(&slot) { slot as u32 + 1 } else { NIL };
        let free_order = |slot| OrderRecord {
            id: OrderId(0),
            qty: 0,
            level: NIL,
            prev: NIL,
            next: next_free(slot, orders),
        };
        let free_level = |slot| LevelRecord { head: next_free(slot, levels), ..LevelRecord::FREE };
        FastBooks {
            limits,
            sides: vec![BookSide::EMPTY; sides],
            orders: (0..=orders).map(free_order).collect(),
            // Zeroes would come from the allocator untouched, and page faults with the first orders.
            data: (0..=orders).map(|_| std::hint::black_box(T::default())).collect(),
            levels: (0..=levels).map(free_level).collect(),
            ladders: Ladders::new(sides, levels),
            free_order: free_list(orders),
            free_level: free_list(levels),
            order_count: 0,
            level_count: 0,
        }
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
            return Err(AddError::UnknownInstrument { instrument: order.instrument });
        }
        if order.qty.is_zero() {
            return Err(AddError::ZeroQty);
        }
        let slot = self.free_order;
        let Some(handle) = OrderHandle::new(slot) else {
            return Err(AddError::BookFull { max_orders: self.limits.max_orders });
        };
        let side = side_index(order.instrument, order.side);
        let index = self.find_or_open_level(side, key(order.side, order.price))?;
        let level = &mut self.levels[index as usize];
        let Some(qty) = level.qty.checked_add(order.qty.0) else {
            return Err(AddError::QtyOverflow { price: order.price });
        };
        level.qty = qty;
        level.order_count += 1;
        let tail = level.tail;
        level.tail = slot;
        // An empty level's tail is nobody, to whom the next line writes in vain.
        if tail == NIL {
            level.head = slot;
        }
        self.orders[tail as usize].next = slot;
        let record = &mut self.orders[slot as usize];
        self.free_order = record.next;
        *record = OrderRecord { id: order.id, qty: order.qty.0, level: index, prev: tail, next: NIL };
        self.data[slot as usize] = order.data;
        self.order_count += 1;
        Ok(handle)
    }

    #[inline]
    fn reduce(&mut self, handle: OrderHandle, qty: Qty) -> Qty {
        let record = &mut self.orders[handle.slot() as usize];
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

    #[inline(always)]
    fn remove(&mut self, handle: OrderHandle) -> Order<T> {
        let slot = handle.slot();
        let record = *self.record(slot);
        assert!(record.level != NIL, "the handle names an open order");
        let order = self.view(slot);
        // Where there is no neighbour these two write to nobody's record.
        self.orders[record.prev as usize].next = record.next;
        self.orders[record.next as usize].prev = record.prev;
        let level = &mut self.levels[record.level as usize];
        level.qty -= record.qty;
        level.order_count -= 1;
        level.head = if level.head == slot { record.next } else { level.head };
        level.tail = if level.tail == slot { record.prev } else { level.tail };
        if level.order_count == 0 {
            self.close_level(record.level);
        }
        let freed = &mut self.orders[slot as usize];
        freed.level = NIL;
        freed.next = self.free_order;
        self.free_order = slot;
        self.order_count -= 1;
        order
    }

    #[inline(always)]
    fn order(&self, handle: OrderHandle) -> Option<Order<T>> {
        let record = self.orders.get(handle.slot() as usize)?;
        if record.level == NIL {
            return None;
        }
        Some(self.view(handle.slot()))
    }

    #[inline]
    fn data_mut(&mut self, handle: OrderHandle) -> &mut T {
        let slot = handle.slot() as usize;
        assert!(self.orders[slot].level != NIL, "the handle names an open order");
        &mut self.data[slot]
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
        let best = self.side(instrument, other).best;
        best != NIL && self.level(best).key >= key(other, limit)
    }

    #[inline(always)]
    fn front(&self, instrument: InstrumentId, side: Side) -> Option<OrderHandle> {
        OrderHandle::new(self.level(self.side(instrument, side).best).head)
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Level> {
        self.ladders.iter(self.side(instrument, side).ladder).map(|level| self.level(level).view())
    }

    fn orders(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = (OrderHandle, Order<T>)> {
        self.ladders
            .iter(self.side(instrument, side).ladder)
            .flat_map(|level| self.queue(self.level(level).head))
            .filter_map(|slot| Some((OrderHandle::new(slot)?, self.view(slot))))
    }

    fn queue_position(&self, handle: OrderHandle) -> QueuePosition {
        let record = self.record(handle.slot());
        assert!(record.level != NIL, "the handle names an open order");
        let ahead = self.queue(self.level(record.level).head).take_while(|slot| *slot != handle.slot());
        ahead.fold(QueuePosition::default(), |position, slot| QueuePosition {
            orders_ahead: position.orders_ahead + 1,
            qty_ahead: Qty(position.qty_ahead.0 + self.record(slot).qty),
        })
    }

    #[inline]
    fn prefetch(&self, handle: Option<OrderHandle>) {
        let slot = handle.map_or(NIL, OrderHandle::slot) as usize;
        prefetch_index(&self.orders, slot);
        // Even if the order is only removed: the next order takes its slot and writes there.
        prefetch_index(&self.data, slot);
    }

    #[inline]
    fn prefetch_neighbours(&self, handle: Option<OrderHandle>) {
        if let Some(record) = self.orders.get(handle.map_or(NIL, OrderHandle::slot) as usize) {
            prefetch_index(&self.orders, record.prev as usize);
            prefetch_index(&self.orders, record.next as usize);
            prefetch_index(&self.levels, record.level as usize);
        }
    }

    #[inline]
    fn prefetch_side(&self, instrument: InstrumentId, side: Side, price: Price) {
        if let Some(book) = self.sides.get(side_index(instrument, side) as usize) {
            prefetch_read(&book.best);
            prefetch_read(&book.recent[BookSide::recent_entry(key(side, price))]);
        }
    }

    #[inline]
    fn prefetch_level(&self, instrument: InstrumentId, side: Side, price: Price) {
        prefetch_index(&self.levels, self.recent(instrument, side, price) as usize);
    }

    #[inline]
    fn prefetch_tail(&self, instrument: InstrumentId, side: Side, price: Price) {
        let level = self.level(self.recent(instrument, side, price));
        prefetch_index(&self.orders, level.tail as usize);
    }
}
